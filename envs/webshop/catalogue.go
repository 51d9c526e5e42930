package webshop

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs/retrieve"
	"github.com/reprise-rl/reprise/model/draw"
)

// Product is a thing for sale, as the shop has it.
type Product struct {
	// ASIN is its name in searches and clicks, at most ten characters.
	ASIN               string
	Title, Description string
	Bullets            []string
	// Query is the search that it was found by.
	Query string
	// Category is a path of breadcrumbs, joined by ›; Section its first word in the file.
	Category, Section string
	// Prices are one, or the ends of a range.
	Prices []float64
	// Axes are what can be chosen, in the file's order.
	Axes       []Axis
	Attributes []string
	// Nouns are those of the title, in its order, with repetitions.
	Nouns []string
	// Instructions are the goals' sentences.
	Instructions []Instruction
}

// Axis is something to choose, such as the size.
type Axis struct {
	Name   string
	Values []string
}

// Instruction is a sentence that asks for a product, without a price.
type Instruction struct {
	Text       string
	Attributes []string
	// Options are the values that a person asked for; nil where every combination of
	// values is a goal of its own.
	Options []string
}

// Catalogue is a shop's products with an index to search them. It never changes.
type Catalogue struct {
	// Products in the file's order.
	Products []Product
	// Prices are what counts for the reward, of a range a draw from it: [products].
	Prices []float64
	index  *retrieve.Index
	places map[string]int // by ASIN
	// examples are searches of random play.
	examples []string
}

// newCatalogue indexes products.
func newCatalogue(products []Product) *Catalogue {
	c := &Catalogue{Products: products, Prices: make([]float64, len(products)), places: map[string]int{}}
	documents := make([]retrieve.Document, len(products))
	for i := range products {
		p := &products[i]
		documents[i] = retrieve.Document{ID: p.ASIN, Text: p.document()}
		c.places[p.ASIN] = i
		c.Prices[i] = p.drawnPrice()
	}
	c.index = retrieve.New(documents, retrieve.Anserini)
	c.examples = c.makeExamples()
	return c
}

// Purposes of draws. They are part of the bits of every run: never change them.
const (
	pricePurpose draw.Purpose = "webshop/price"
	limitPurpose draw.Purpose = "webshop/limit"
)

// drawnPrice is the price, or one from the range. WebShop draws it when it loads the
// file, so that it differs from process to process; here it depends on the product alone.
func (p *Product) drawnPrice() float64 {
	if len(p.Prices) == 1 {
		return p.Prices[0]
	}
	share := draw.Address{Purpose: pricePurpose.With(draw.Purpose(p.ASIN))}.Rand().Float64()
	return p.Prices[0] + float64(share*(p.Prices[1]-p.Prices[0]))
}

// document is the text by which a product is found.
func (p *Product) document() string {
	axes := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		axes[i] = a.Name + ": " + strings.Join(a.Values, ", ")
	}
	bullet := ""
	if len(p.Bullets) > 0 {
		bullet = p.Bullets[0]
	}
	return lowered(strings.Join([]string{p.Title, p.Description, bullet, strings.Join(axes, ", and ")}, " "))
}

// tag is the price as pages show it.
func (p *Product) tag() string {
	if len(p.Prices) == 1 {
		return "$" + pythonFloat(p.Prices[0])
	}
	return "$" + pythonFloat(p.Prices[0]) + " to $" + pythonFloat(p.Prices[1])
}

// pythonFloat writes a number as Python's repr does: 3.0, 32.15, 1e+16.
func pythonFloat(x float64) string {
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// parsePrices reads a price such as $1,249.00 or a range $3.00 - $28.00. Without a text
// it is 100.
func parsePrices(text string) ([]float64, error) {
	if text == "" {
		return []float64{100}, nil
	}
	_, after, _ := strings.Cut(text, "$")
	var prices []float64
	for part := range strings.SplitSeq(after, "$") {
		digits := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r == '.' {
				return r
			}
			return -1
		}, part)
		price, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return nil, fmt.Errorf("price %q: %w", part, err)
		}
		if prices = append(prices, price); len(prices) == 2 {
			break
		}
	}
	return prices, nil
}

// goalSource is where goals come from: a product's instruction, which a synthetic goal
// completes with one combination of values.
type goalSource struct {
	product, instruction int
	// first is the number of its first goal, of all goals.
	first int
}

// goalList is the goals of some products, made one by one when they are asked for.
type goalList struct {
	catalogue *Catalogue
	sources   []goalSource
	count     int
}

// maxGoals is the most goals of a catalogue: options multiply.
const maxGoals = 1 << 24

// goals lists the goals of the products that keep accepts, in the catalogue's order.
func (c *Catalogue) goals(keep func(*Product) bool) (*goalList, error) {
	l := &goalList{catalogue: c}
	for i := range c.Products {
		p := &c.Products[i]
		if !keep(p) {
			continue
		}
		for k, instruction := range p.Instructions {
			n := 1
			if instruction.Options == nil {
				n = p.combinations()
			}
			if n == 0 {
				continue
			}
			if l.count+n > maxGoals {
				return nil, fmt.Errorf("product %s: more than %d goals", p.ASIN, maxGoals)
			}
			l.sources = append(l.sources, goalSource{product: i, instruction: k, first: l.count})
			l.count += n
		}
	}
	return l, nil
}

// combinations is how many ways there are to choose one value of each axis, at most
// maxGoals + 1.
func (p *Product) combinations() int {
	n := 1
	for _, a := range p.Axes {
		n = min(n*len(a.Values), maxGoals+1)
	}
	return n
}

// goal makes the goal of a number, counted from 0.
func (l *goalList) goal(number int) Goal {
	at, found := slices.BinarySearchFunc(l.sources, number, func(s goalSource, n int) int { return s.first - n })
	if !found {
		at--
	}
	s := l.sources[at]
	p := &l.catalogue.Products[s.product]
	instruction := p.Instructions[s.instruction]
	g := Goal{Product: s.product, Instruction: instruction.Text, Attributes: instruction.Attributes}
	purpose := limitPurpose.With(draw.Purpose(p.ASIN))
	member := 0
	if instruction.Options == nil {
		g.Paired = true
		g.Options = p.combination(number - s.first)
		for i, o := range g.Options {
			joint := " with "
			if i > 0 {
				joint = ", and "
			}
			g.Instruction += joint + o.Axis + ": " + o.Value
		}
	} else {
		for _, value := range instruction.Options {
			g.Options = append(g.Options, Choice{Value: value})
		}
		member = s.instruction + 1
	}
	var told string
	g.Limit, told = limit(l.catalogue.Prices[s.product], draw.Address{Purpose: purpose, Member: int64(member)})
	g.Instruction += told
	return g
}

// combination chooses one value of each axis, axes by their names; the last axis changes
// first from number to number.
func (p *Product) combination(number int) []Choice {
	axes := p.sortedAxes()
	choices := make([]Choice, len(axes))
	for i := len(axes) - 1; i >= 0; i-- {
		n := len(axes[i].Values)
		choices[i] = Choice{Axis: axes[i].Name, Value: axes[i].Values[number%n]}
		number /= n
	}
	return choices
}

// sortedAxes are the axes by their names.
func (p *Product) sortedAxes() []Axis {
	axes := slices.Clone(p.Axes)
	slices.SortStableFunc(axes, func(a, b Axis) int { return strings.Compare(a.Name, b.Name) })
	return axes
}

// limit draws a price limit above a price, and how an instruction tells it. Of the first
// four tens above the price, two different ones are drawn, and the greater counts. Prices
// beyond those have no limit.
func limit(price float64, address draw.Address) (limit float64, told string) {
	var tens []float64
	for ten := 10.0; ten < 1000 && len(tens) < 4; ten += 10 {
		if ten > price {
			tens = append(tens, ten)
		}
	}
	if len(tens) < 2 {
		return noLimit, ""
	}
	r := address.Rand()
	a, b := r.IntN(len(tens)), r.IntN(len(tens)-1)
	if b >= a {
		b++ // another one
	}
	limit = tens[max(a, b)]
	return limit, fmt.Sprintf(", and price lower than %.2f dollars", limit)
}
