package webshop

import (
	"slices"
	"strings"
)

// page is a kind of page.
type page int

// The pages of the shop.
const (
	searchPage page = iota
	resultsPage
	itemPage
	descriptionPage
	featuresPage
	reviewsPage
	attributesPage
	donePage
)

// maxHits is the most products that a search finds.
const maxHits = 50

// session is a visit to the shop: which page is shown, and what has been chosen.
type session struct {
	shop *Catalogue
	goal *Goal
	form form

	page     page
	keywords []string // of the last search; nil on the search page
	hits     []int    // products found, best first
	number   int      // of the results page, from 1
	item     int      // product; none on the search and results pages
	chosen   []Choice // by axis, in the order of the first choice
	visited  []int    // products since the last search page
	score    Score    // of the purchase
}

// none stands for no product.
const none = -1

// newSession begins on the search page.
func newSession(shop *Catalogue, goal *Goal, f form) *session {
	s := &session{shop: shop, goal: goal, form: f}
	s.forget()
	return s
}

// clone is a copy that may go on by itself.
func (s *session) clone() *session {
	c := *s
	c.chosen, c.visited = slices.Clone(s.chosen), slices.Clone(s.visited)
	return &c
}

// forget goes to the search page.
func (s *session) forget() { *s = session{shop: s.shop, goal: s.goal, form: s.form, item: none} }

// button is something to click.
type button struct {
	// name is what the click names, in lower case.
	name string
	// kind says what it does; product and choice belong to two kinds.
	kind    buttonKind
	product int
	choice  Choice
}

// buttonKind says what a button does.
type buttonKind int

const (
	toSearch buttonKind = iota
	toPrevious
	toNext
	toProduct
	toDescription
	toFeatures
	toReviews
	toAttributes
	toBuy
	toChoose
	toNothing // the search page's own button
)

var kindsOfPage = map[buttonKind]page{
	toDescription: descriptionPage, toFeatures: featuresPage, toReviews: reviewsPage, toAttributes: attributesPage,
}

// kindsOfNames are the buttons' names that an item's value may have too. A click of such a value does what the button of
// that name does, even where the page has no such button, because the original goes by the name.
var kindsOfNames = map[string]buttonKind{
	"search": toNothing, "back to search": toSearch, "< prev": toPrevious, "description": toDescription, "features": toFeatures,
	"reviews": toReviews, "attributes": toAttributes, "buy now": toBuy,
}

// buttons are what can be clicked, in their order. Of two with one name the later one is
// clicked, in the place of the first.
func (s *session) buttons() []button {
	var all []button
	add := func(b button) {
		if at := slices.IndexFunc(all, func(other button) bool { return other.name == b.name }); at >= 0 {
			all[at] = b
			return
		}
		all = append(all, b)
	}
	switch s.page {
	case searchPage:
		return []button{{name: "search", kind: toNothing}}
	case donePage:
		return nil
	}
	add(button{name: "back to search", kind: toSearch})
	if s.page != resultsPage || s.number > 1 {
		add(button{name: "< prev", kind: toPrevious})
	}
	switch s.page {
	case resultsPage:
		add(button{name: "next >", kind: toNext})
		for _, product := range s.listed() {
			add(button{name: lowered(s.shop.Products[product].ASIN), kind: toProduct, product: product})
		}
	case itemPage:
		add(button{name: "description", kind: toDescription})
		add(button{name: "features", kind: toFeatures})
		add(button{name: "reviews", kind: toReviews})
		if s.form.attributes {
			add(button{name: "attributes", kind: toAttributes})
		}
		add(button{name: "buy now", kind: toBuy})
		for _, axis := range s.shop.Products[s.item].Axes {
			for _, value := range axis.Values {
				kind, named := kindsOfNames[value]
				if !named {
					kind = toChoose
				}
				add(button{name: value, kind: kind, choice: Choice{Axis: axis.Name, Value: value}})
			}
		}
	}
	return all
}

// listed are the products of the results page.
func (s *session) listed() []int {
	from := min((s.number-1)*s.form.results, len(s.hits))
	return s.hits[from:min(from+s.form.results, len(s.hits))]
}

// parseAction takes an action apart by WebShop's pattern (.+)\[(.+)\], which begins at the
// first character, ends in the first line and takes the last brackets that fit. The
// argument is in lower case.
func parseAction(action string) (name, argument string, ok bool) {
	line, _, _ := strings.Cut(action, "\n")
	end := strings.LastIndexByte(line, ']')
	for begin := strings.LastIndexByte(line, '['); begin > 0; begin = strings.LastIndexByte(line[:begin], '[') {
		if end >= begin+2 {
			return line[:begin], lowered(line[begin+1 : end]), true
		}
	}
	return "", "", false
}

// search shows the first page of what a text finds.
func (s *session) search(text string) {
	s.keywords = strings.Split(text, " ")
	found := s.shop.index.Search(text, maxHits)
	s.hits = make([]int, len(found))
	for i, hit := range found {
		s.hits[i] = hit.Document
	}
	s.page, s.number, s.item, s.chosen = resultsPage, 1, none, nil
}

// click follows a button of the page.
func (s *session) click(b button) bool {
	switch b.kind {
	case toNothing:
		return false
	case toSearch:
		s.forget()
	case toNext:
		s.number++
		s.item, s.chosen = none, nil
	case toPrevious:
		switch s.page {
		case resultsPage:
			s.number--
			s.item, s.chosen = none, nil
		case itemPage:
			s.page, s.item, s.chosen = resultsPage, none, nil
		default:
			s.page = itemPage
		}
	case toProduct:
		s.page, s.item, s.chosen = itemPage, b.product, nil
		if !slices.Contains(s.visited, b.product) {
			s.visited = append(s.visited, b.product)
		}
	case toChoose:
		if at := slices.IndexFunc(s.chosen, func(c Choice) bool { return c.Axis == b.choice.Axis }); at >= 0 {
			s.chosen[at] = b.choice
		} else {
			s.chosen = append(s.chosen, b.choice)
		}
	case toBuy:
		s.page = donePage
		s.score = score(s.goal, &s.shop.Products[s.goal.Product], &s.shop.Products[s.item], s.chosen, s.shop.Prices[s.item])
	default:
		s.page = kindsOfPage[b.kind]
	}
	return true
}
