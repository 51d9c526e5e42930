package webshop

import (
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
)

// Advice implements envs.Advised: look for the target, choose its options, buy. What is
// searched for is the instruction, or else the target's title.
func (e *episode) Advice(n int) []string {
	plan := e.plan()
	if plan == nil || len(plan) > n {
		return nil
	}
	return plan
}

// BestSuccess implements envs.Advised. It is not known where the plan does not do and a
// purchase is possible: another product might pass.
func (e *episode) BestSuccess(n int) float64 {
	switch {
	case e.Done():
		return map[bool]float64{true: 1}[e.Success()]
	case len(e.Advice(n)) > 0:
		return 1
	case n < e.toPurchase():
		return 0
	}
	return math.NaN()
}

// BestReward implements envs.Valued: no purchase pays more than 1.
func (e *episode) BestReward(n int) float64 {
	if e.Done() {
		return 0
	}
	return e.BestSuccess(n)
}

// toPurchase is the least number of actions to any purchase.
func (e *episode) toPurchase() int {
	switch e.session.page {
	case searchPage:
		return 3
	case resultsPage:
		return 2
	case itemPage:
		return 1
	}
	return 2
}

// plan is the shortest of the ways that are tried, nil if none of them earns all.
func (e *episode) plan() []string {
	if e.Done() {
		return nil
	}
	wanted, ok := e.session.wanted()
	if !ok {
		return nil
	}
	var best []string
	consider := func(way []string, from *episode) {
		if from == nil {
			return
		}
		rest, ok := from.buy(wanted)
		if ok && (best == nil || len(way)+len(rest) < len(best)) {
			best = append(slices.Clone(way), rest...)
		}
	}
	if e.session.item == e.session.goal.Product {
		consider(nil, e.copy())
	}
	if e.session.page == resultsPage {
		way, there := e.copy().open()
		consider(way, there)
	}
	target := &e.session.shop.Products[e.session.goal.Product]
	for _, text := range []string{e.session.goal.Instruction, target.Title, target.Query + " " + target.Title} {
		c := e.copy()
		var way []string
		if !c.maySearch() {
			way = c.follow(way, "click[back to search]")
		}
		if text = plainWords(text); text == "" {
			continue
		}
		way = c.follow(way, "search["+text+"]")
		if c.session.page != resultsPage {
			continue
		}
		more, there := c.open()
		consider(append(way, more...), there)
		if there != nil && there.session.number == 1 {
			break // no search finds it sooner
		}
	}
	return best
}

// copy is an episode in the same state. What is done to it does not change the original.
func (e *episode) copy() *episode {
	c := *e
	c.session = e.session.clone()
	return &c
}

// follow takes an action if it is legal, and adds it to the way.
func (e *episode) follow(way []string, action string) []string {
	if canonical, b, ok := e.legal(action); ok {
		e.take(canonical, b)
		return append(way, canonical)
	}
	return way
}

// open goes from a page of results to the target's, by the pages between.
func (e *episode) open() (way []string, there *episode) {
	place := slices.Index(e.session.hits, e.session.goal.Product)
	if place < 0 {
		return nil, nil
	}
	for want := place/e.session.form.results + 1; e.session.number != want; {
		turn, before := "click[next >]", e.session.number
		if e.session.number > want {
			turn = "click[< prev]"
		}
		if way = e.follow(way, turn); e.session.number == before {
			return nil, nil
		}
	}
	asin := e.session.shop.Products[e.session.goal.Product].ASIN
	if way = e.follow(way, "click["+asin+"]"); e.session.item != e.session.goal.Product {
		return nil, nil
	}
	return way, e
}

// buy chooses what is wanted and not yet chosen, and buys, if that earns all.
func (e *episode) buy(wanted []Choice) (way []string, ok bool) {
	if e.session.page != itemPage {
		way = e.follow(way, "click[< prev]")
	}
	for _, choice := range wanted {
		if !slices.Contains(e.session.chosen, choice) {
			way = e.follow(way, "click["+choice.Value+"]")
		}
	}
	way = e.follow(way, "click[buy now]")
	return way, e.Success()
}

// wanted are the values of the target that a goal asks for: its own, or those that are like
// what a person wrote, one an axis.
func (s *session) wanted() (choices []Choice, ok bool) {
	if s.goal.Paired {
		return s.goal.Options, true
	}
	for _, option := range s.goal.Options {
		found := false
		for _, axis := range s.shop.Products[s.goal.Product].Axes {
			if found || slices.ContainsFunc(choices, func(c Choice) bool { return c.Axis == axis.Name }) {
				continue
			}
			at := slices.Index(axis.Values, option.Value)
			if at < 0 {
				at = slices.IndexFunc(axis.Values, func(value string) bool {
					return tokenSetRatio(color(value), color(option.Value)) > matches
				})
			}
			if found = at >= 0; found {
				choices = append(choices, Choice{Axis: axis.Name, Value: axis.Values[at]})
			}
		}
		if !found {
			return nil, false
		}
	}
	return choices, true
}

// plainWords is a text that a search can have: without brackets, separators and tags.
func plainWords(text string) string {
	for _, mark := range []string{"[", "]", envs.Separator} {
		text = strings.ReplaceAll(text, mark, " ")
	}
	text = canonicalText(text)
	if !searchable(text) {
		return ""
	}
	return text
}
