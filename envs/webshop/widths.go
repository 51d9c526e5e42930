package webshop

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/envs"
)

// slack is how many tokens two texts may differ in the order of their widths, by what
// tokenizers merge at their ends.
const slack = 8

// Longest implements envs.Measured: under the widest instruction the widest of all pages of
// products, and a page of results with the widest titles. Pages of results are too many to
// be looked at, so theirs may be wider than any that a search finds.
func (w *WebShop) Longest(width func(string) (int, error)) ([]envs.Episode, error) {
	values, err := w.widestValues(width)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	goal, err := w.widestGoal(values, width)
	if err != nil {
		return nil, fmt.Errorf("instructions: %w", err)
	}
	episodes := []envs.Episode{w.episode(goal)}
	products := w.shop.Products
	entries := make([]string, len(products))
	for i := range products {
		p := &products[i]
		entries[i] = p.ASIN + " " + shortened(p.Title, w.options.form.titleBytes) + " " + p.tag()
	}
	widest, err := widest(len(products), w.options.form.results, func(i int) string { return entries[i] }, width)
	if err != nil {
		return nil, fmt.Errorf("titles: %w", err)
	}
	episodes = append(episodes, w.shownResults(goal, widest))
	pages := []page{itemPage, descriptionPage, featuresPage}
	if w.options.form.attributes {
		pages = append(pages, attributesPage)
	}
	for _, shown := range pages {
		at, err := widestOne(len(products), func(i int) string { return w.shownItem(goal, i, shown, values[i]).Observation() }, width)
		if err != nil {
			return nil, fmt.Errorf("pages of products: %w", err)
		}
		episodes = append(episodes, w.shownItem(goal, at, shown, values[at]))
	}
	return episodes, nil
}

// widestValues gives the place of the widest value of each axis of each product, axes by
// their names: [products][axes].
func (w *WebShop) widestValues(width func(string) (int, error)) ([][]int, error) {
	known := map[string]int{}
	places := make([][]int, len(w.shop.Products))
	for i := range w.shop.Products {
		for _, axis := range w.shop.Products[i].sortedAxes() {
			best := 0
			for k, value := range axis.Values {
				if _, ok := known[value]; !ok {
					n, err := width(" " + value)
					if err != nil {
						return nil, err
					}
					known[value] = n
				}
				if known[value] > known[axis.Values[best]] {
					best = k
				}
			}
			places[i] = append(places[i], best)
		}
	}
	return places, nil
}

// widestGoal is the goal with the widest instruction: of each product's, with the widest
// value of each axis.
func (w *WebShop) widestGoal(values [][]int, width func(string) (int, error)) (int, error) {
	var numbers []int
	for _, s := range w.goals.sources {
		p := &w.shop.Products[s.product]
		combination := 0
		if p.Instructions[s.instruction].Options == nil {
			for i, axis := range p.sortedAxes() {
				combination = combination*len(axis.Values) + values[s.product][i]
			}
		}
		numbers = append(numbers, s.first+combination)
	}
	at, err := widestOne(len(numbers), func(i int) string { return w.goals.goal(numbers[i]).Instruction }, width)
	if err != nil {
		return 0, err
	}
	return numbers[at], nil
}

// shownResults is a page of results with these products, in the middle of as many as there
// can be. It is only shown.
func (w *WebShop) shownResults(goal int, products []int) *episode {
	e := w.episode(goal)
	s, results := e.session, e.shop.options.form.results
	found := min(maxHits, len(w.shop.Products))
	pages := (found + results - 1) / results
	s.page, s.number, s.item = resultsPage, max(pages-1, min(pages, 2)), none
	for len(s.hits) < found {
		s.hits = append(s.hits, products[len(s.hits)%len(products)])
	}
	s.visited = products
	e.taken = 1
	return e
}

// shownItem is a page of a product with the widest values chosen, given by their places.
// It is only shown.
func (w *WebShop) shownItem(goal, product int, shown page, values []int) *episode {
	e := w.episode(goal)
	s := e.session
	s.page, s.item, s.number = shown, product, 1
	for i, axis := range w.shop.Products[product].sortedAxes() {
		if len(axis.Values) > 0 {
			s.chosen = append(s.chosen, Choice{Axis: axis.Name, Value: axis.Values[values[i]]})
		}
	}
	e.taken = 1
	return e
}

// widestOne is the first of n texts that no other is wider than.
func widestOne(n int, text func(int) string, width func(string) (int, error)) (int, error) {
	all, err := widest(n, 1, text, width)
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// widest gives the places of the k widest of n texts, the widest first. It measures no text
// that cannot be among them by its bytes.
func widest(n, k int, text func(int) string, width func(string) (int, error)) ([]int, error) {
	bounds, order := make([]int, n), make([]int, n)
	for i := range n {
		bounds[i], order[i] = envs.MostTokens(text(i)), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bounds[b] - bounds[a] })
	type measured struct{ at, width int }
	var best []measured
	for _, i := range order {
		if len(best) == k && bounds[i]+slack < best[k-1].width {
			break
		}
		wide, err := width(text(i))
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(best, func(m measured) bool { return m.width < wide })
		if at < 0 {
			at = len(best) // behind the equal ones
		}
		if best = slices.Insert(best, at, measured{i, wide}); len(best) > k {
			best = best[:k]
		}
	}
	places := make([]int, len(best))
	for i, m := range best {
		places[i] = m.at
	}
	return places, nil
}
