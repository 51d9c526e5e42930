package webshop

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/draw"
)

// The starter's shop has every kind of thing with every look, each in two sizes. Its words
// are one token each of the starter's second tokenizer, so that a page has at most 120.
var (
	starterThings = []string{"hat", "cup", "lamp", "bag"}
	starterLooks  = []string{"red", "blue", "soft", "warm"}
	starterSizes  = []string{"small", "large"}
)

// starterPrice is above all limits, so that instructions have none.
const starterPrice = 990

// generateStarter makes the 16 products of the starter's shop. Products of one kind are
// twins in all but their look; catalogue numbers give other orders and names.
func generateStarter(number int) []Product {
	r := draw.Address{Purpose: cataloguePurpose.With("starter"), Seed: uint64(number)}.Rand()
	order := r.Perm(len(starterThings) * len(starterLooks))
	products := make([]Product, len(order))
	for i, at := range order {
		thing, look := starterThings[at/len(starterLooks)], starterLooks[at%len(starterLooks)]
		products[i] = Product{
			ASIN: fmt.Sprintf("p%02d", i), Title: look + " " + thing, Query: thing, Category: "shop › " + thing + " › all", Section: "shop",
			Prices: []float64{starterPrice}, Axes: []Axis{{Name: "size", Values: starterSizes}}, Attributes: []string{look}, Nouns: []string{thing},
			Instructions: []Instruction{{Text: "find a " + look + " " + thing, Attributes: []string{look}}},
		}
	}
	return products
}
