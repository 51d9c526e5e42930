package webshop

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/reprise-rl/reprise/model/draw"
)

// The starter's catalogue has words that are one token each of a tokenizer that knows
// Words: every kind of thing with every look, and two sizes of all.
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

// Words are what a starter's tokenizer should have as one token each, with a space before
// it, to write the starter's shop: the words of its pages, actions and instructions, the
// marks between texts, and the beginnings of the actions. With them a page has at most 120
// tokens. The turn protocol's own words are not among them.
func Words() []string {
	distinct := []string{"[SEP]", "search[", "click["}
	for _, text := range []string{
		strings.Join(starterThings, " "), strings.Join(starterLooks, " "), strings.Join(starterSizes, " "),
		"find a with size",
		"WebShop Instruction Search Back to Page Total results Prev Next Price Rating Description Features Reviews Buy Now",
		"search click back to prev next description features reviews buy now words Available actions",
		instructions,
	} {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
			if !slices.Contains(distinct, word) {
				distinct = append(distinct, word)
			}
		}
	}
	return distinct
}
