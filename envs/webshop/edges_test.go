package webshop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// play takes actions and gives the episode.
func play(t *testing.T, w *WebShop, actions ...string) *episode {
	t.Helper()
	e := w.episode(0)
	for _, action := range actions {
		canonical, ok := e.Legal(action)
		require.True(t, ok, action)
		e.Step(canonical)
	}
	return e
}

// A search of the starter's shop for a title finds 7 products: one to a page, a page that is just full, one product
// more and one less than that. Next is offered where another page follows, previous where one came before.
func TestPagesThatAreJustFull(t *testing.T) {
	for _, c := range []struct{ results, page, shown, next, previous int }{
		{1, 1, 1, 1, 0}, {1, 6, 1, 1, 1}, {1, 7, 1, 0, 1}, {2, 3, 2, 1, 1}, {2, 4, 1, 0, 1}, {3, 2, 3, 1, 1}, {3, 3, 1, 0, 1},
		{4, 1, 4, 1, 0}, {4, 2, 3, 0, 1}, {6, 1, 6, 1, 0}, {6, 2, 1, 0, 1}, {7, 1, 7, 0, 0}, {8, 1, 7, 0, 0}, {50, 1, 7, 0, 0},
	} {
		w := mustNew(t, fmt.Sprintf(`{"catalogue":"starter","results":%d}`, c.results))
		e := w.episode(0)
		e.Step("search[" + w.shop.Products[e.session.goal.Product].Title + "]")
		for range c.page - 1 {
			e.Step("click[next >]")
		}
		at := fmt.Sprintf("%d a page, page %d", c.results, c.page)
		require.Contains(t, e.Observation(), fmt.Sprintf("Page %d (Total results: 7)", c.page), at)
		count := map[string]int{}
		for _, choice := range e.Choices() {
			count[choice]++
		}
		require.Equal(t, c.next, count["click[next >]"], at)
		require.Equal(t, c.previous, count["click[< prev]"], at)
		require.Len(t, e.Choices(), 1+c.next+c.previous+c.shown, at)
		require.Len(t, e.session.listed(), c.shown, at)
	}
	none := play(t, mustNew(t, `{"catalogue":"starter"}`), "search[zebra]")
	require.Contains(t, none.Observation(), "Page 1 (Total results: 0) [SEP] Next >\n")
	require.Equal(t, []string{"click[back to search]"}, none.Choices())
	require.Nil(t, none.copy().Advice(1))
	require.Len(t, none.Advice(9), 5, "back, and the four of a purchase")
}

// How the parts of a reward turn at their thresholds.
func TestScoreAtTheEdges(t *testing.T) {
	nouns := func(n int) []string {
		var words []string
		for i := range n {
			words = append(words, fmt.Sprint("n", i))
		}
		return words
	}
	for _, c := range []struct {
		of, common      int
		query, category bool
		kind            float64
	}{
		// At most 0.2 of the nouns, another query and category: half. Below 0.1: a tenth, whatever the query. None: 0.
		{4, 1, false, false, 1}, {5, 1, false, false, .5}, {6, 1, false, false, .5}, {10, 1, false, false, .5}, {11, 1, false, false, .1},
		{5, 1, true, false, 1}, {5, 1, false, true, 1}, {10, 1, true, true, 1}, {11, 1, true, true, .1}, {5, 0, true, true, 0},
		{0, 0, false, false, .5},
		{0, 0, true, false, 1},
	} {
		target := Product{Query: "a", Category: "x › y", Nouns: nouns(c.of)}
		bought := Product{Query: "b", Category: "x › z", Nouns: nouns(c.common)}
		if c.query {
			bought.Query = "a"
		}
		if c.category {
			bought.Category = "y › x"
		}
		s := score(&Goal{Limit: 10}, &target, &bought, nil, 10)
		require.Equal(t, c.kind, s.Type, "%+v", c)
		require.Equal(t, c.kind, s.Reward, "the price alone is asked for: %+v", c)
	}
	twice := Product{Nouns: []string{"n0", "n0"}}
	require.Equal(t, .5, titleScore(&twice, &twice), "found once")
	require.Equal(t, .5, titleScore(&twice, &Product{Nouns: []string{"n0", "n1"}}))
	for price, within := range map[float64]bool{9.99: true, 10: true, 10.01: false} {
		require.Equal(t, within, score(&Goal{Limit: 10}, &Product{}, &Product{}, nil, price).Price, price)
		require.Equal(t, within, strictly(&Goal{Limit: 10}, 0, nil, price), price)
	}
	for categories, same := range map[[2]string]bool{
		{"x", "x"}: false, {"x › x", "x › x"}: false, {"x › y", "y › x"}: true, {"x › y › z", "x › w › v"}: false, {"", ""}: false,
	} {
		require.Equal(t, same, sameCategory(&Product{Category: categories[0]}, &Product{Category: categories[1]}), categories)
	}

	// 100 − 100·6/40 is 85, which is too little; 100 − 100·2/14 is 85.7.
	letters, three := "abcdefghijklmnopqrst", "abcdefghijklmnopq123"
	for _, c := range []struct {
		a, b  string
		score int
	}{
		{letters, three, 85}, {"abcdefg", "abcdefh", 86}, {"", "", 0}, {"a", "", 0}, {"", "a", 0}, {"--", "a", 0}, {"a", "a", 100},
		{"a", "A a", 100},
		{"a b", "a", 100}, {"a", "b", 0}, {"b a", "a c", 67}, {"\u007fa", "a", 100}, {"\u0080a", "a", 100}, {"aÿ", "a", 100},
		{"aĀ", "a", 67}, {"½a", "a", 100},
	} {
		require.Equal(t, c.score, tokenSetRatio(c.a, c.b), "%q, %q", c.a, c.b)
	}
	require.False(t, hasAttribute(&Product{Attributes: []string{letters}}, three))
	require.True(t, hasAttribute(&Product{Attributes: []string{"abcdefg"}}, "abcdefh"))
	require.False(t, isChosen(Choice{"", letters}, false, []Choice{{"", three}}))
	require.True(t, isChosen(Choice{"", "abcdefg"}, false, []Choice{{"", "abcdefh"}}))
	for _, p := range []Product{{Title: "X Soft y"}, {Bullets: []string{"SO", "FT", "soft"}}, {Description: "unSOFTened"}} {
		require.True(t, hasAttribute(&p, "soft"))
	}
	require.Equal(t, "red", pairColor("red", "x"))
	require.Equal(t, "blue", pairColor("x", "blue"))
	require.Equal(t, "dark red plain", pairColor("dark red", "plain"))

	// What people ask for is looked for among the target's values: the very value, or the first that is alike; an axis
	// is taken once.
	axes := []Axis{{"size", []string{letters, "abcdefg"}}, {"style", []string{"abcdefh", "plump"}}}
	shop := newCatalogue([]Product{{ASIN: "A", Prices: []float64{1}, Axes: axes}})
	for _, c := range []struct {
		options []string
		want    []Choice
	}{
		{[]string{"abcdefg"}, []Choice{{"size", "abcdefg"}}}, {[]string{"abcdefi"}, []Choice{{"size", "abcdefg"}}},
		{[]string{"abcdefg", "abcdefg"}, []Choice{{"size", "abcdefg"}, {"style", "abcdefh"}}},
		{[]string{letters}, []Choice{{"size", letters}}},
		{[]string{"plump"}, []Choice{{"style", "plump"}}}, {[]string{three}, nil}, {[]string{"plump", "plump"}, nil}, {nil, nil},
	} {
		goal := Goal{}
		for _, value := range c.options {
			goal.Options = append(goal.Options, Choice{Value: value})
		}
		got, ok := newSession(shop, &goal, form{}).wanted()
		require.Equal(t, c.want, got, "%v", c.options)
		require.Equal(t, c.want != nil || c.options == nil, ok, "%v", c.options)
	}
}

// Texts that just fit, and texts of one byte more.
func TestTextsThatJustFit(t *testing.T) {
	for _, c := range []struct {
		content string
		most    int
		want    string
	}{
		{"ab cd", 0, "ab cd"}, {"ab cd", -1, "ab cd"}, {"ab cd", 6, "ab cd"}, {"ab cd", 5, "ab cd"}, {"ab cd", 4, "ab"}, {"ab cd", 3, "ab"},
		{"ab cd", 2, "ab"},
		{"ab cd", 1, "a"}, {" abc", 2, " a"}, {"a  bc", 3, "a"}, {"a\nb", 2, "a"}, {"é", 1, ""}, {"ab", 1, "a"}, {"", 1, ""},
	} {
		require.Equal(t, c.want, shortened(c.content, c.most), "%q, %d bytes", c.content, c.most)
	}
	axes := []Axis{{"size", []string{"aa", "bb", "c"}}, {"color", []string{"ddd", "e"}}, {"none", nil}}
	for _, c := range []struct {
		most  int
		shown []int
		cut   bool
	}{
		{0, []int{3, 2, 0}, false}, {15, []int{3, 2, 0}, false}, {14, []int{2, 2, 0}, true}, {11, []int{1, 1, 0}, true},
		{12, []int{2, 2, 0}, true}, {1, []int{1, 1, 0}, true},
	} {
		shown, cut := shownAxes(axes, c.most)
		var counts []int
		for i, axis := range shown {
			require.Equal(t, axes[i].Name, axis.Name)
			counts = append(counts, len(axis.Values))
		}
		require.Equal(t, c.shown, counts, "%d bytes", c.most)
		require.Equal(t, c.cut, cut, "%d bytes", c.most)
	}
	for text, want := range map[string]string{
		"": `""`, "a b": `"a b"`, "\"\\\n\r\t\b\f": `"\"\\\n\r\t\b\f"`, "\x1f~\x7f\u0080": `"\u001f~\u007f\u0080"`,
		"é😀": `"\u00e9\ud83d\ude00"`,
	} {
		require.Equal(t, want, pythonText(text), "%q", text)
	}
	for x, want := range map[float64]string{
		1e-4: "0.0001", 9.9e-5: "9.9e-05", 9999999999999998: "9999999999999998.0", 1e16: "1e+16", -1e-5: "-1e-05", -2: "-2.0", .1: "0.1",
	} {
		require.Equal(t, want, pythonFloat(x))
	}
	for text, canonical := range map[string]bool{
		"": true, "a": true, "a b": true, " a": false, "a ": false, "a  b": false, "a\tb": false, "aB": false, "A": false, "Z": false,
		"@[`{~": true,
		"\x7f":  false, "é": false, "!": true, "\x1f": false, "z9": true,
	} {
		require.Equal(t, canonical, isCanonical(text), "%q", text)
		require.Equal(t, strings.Join(strings.Fields(strings.ToLower(text)), " "), canonicalText(text), "%q", text)
	}
	for text, may := range map[string]bool{
		"red": true, "a]": true, "[a": false, "": false, "a||b": false, "a [b] c": false, "a\nb": false, "red hat": true,
	} {
		require.Equal(t, may, searchable(text), "%q", text)
	}
	for text, want := range map[string]string{"": "", "[a] || B": "a b", "[]": "", "a\nB": "a b"} {
		require.Equal(t, want, plainWords(text), "%q", text)
	}
	for name, may := range map[string]bool{"a": true, "": false, "  ": false, "a[": false, "]": false} {
		require.Equal(t, may, nameable(name), "%q", name)
	}
}

// What RAGEN's wrapper shows first and after, and how its states are told apart.
func TestRAGENsWrapper(t *testing.T) {
	w := mustNew(t, `{"catalogue":"starter","wrapper":"ragen"}`)
	e := w.episode(0)
	instruction := e.session.goal.Instruction
	require.Equal(t, "Instruction: "+instruction+"\n"+advice+"\nAvailable actions: search[words]", e.Observation())
	require.Equal(t, 9, strings.Count(advice, "\n")+1)
	require.True(t, strings.HasPrefix(e.StateKey(), "goal=0 first page=0/0 item=-1 "), e.StateKey())
	e.Step("search[hat]")
	e.Step("click[back to search]")
	shown := "WebShop [SEP] Instruction: [SEP] " + instruction + " [SEP] Search"
	require.Equal(t, shown+"\n"+advice+"\nAvailable actions: search[words]", e.Observation())
	require.True(t, strings.HasPrefix(e.StateKey(), "goal=0 page=0/0 "), e.StateKey())
	for _, wrapper := range []string{Bare, Listed} {
		other := mustNew(t, `{"catalogue":"starter","wrapper":"`+wrapper+`"}`).episode(0)
		require.NotContains(t, other.Observation(), advice[:20])
		require.Equal(t, wrapper == Listed, strings.Contains(other.Observation(), "Available actions"))
		require.True(t, strings.HasPrefix(other.StateKey(), "goal=0 page="))
	}
	for _, action := range e.Advice(9) {
		e.Step(action)
	}
	require.Contains(t, e.Observation(), "Thank you for shopping")
	require.NotContains(t, e.Observation(), "Available actions", "nothing is legal any more")
	require.Empty(t, e.Choices())
}

// Sessions that differ in one thing alone, and a copy that goes its own way.
func TestSessionsDiffer(t *testing.T) {
	shop := newCatalogue([]Product{{ASIN: "A", Prices: []float64{1}}})
	of := func() *session {
		s := newSession(shop, &Goal{}, form{results: 1})
		s.number, s.keywords, s.chosen, s.visited = 1, []string{"a"}, []Choice{{"a", "b"}}, []int{0}
		return s
	}
	require.False(t, of().differs(of()))
	for name, change := range map[string]func(*session){
		"page": func(s *session) { s.page = itemPage }, "number": func(s *session) { s.number = 2 },
		"item":   func(s *session) { s.item = 0 },
		"chosen": func(s *session) { s.chosen[0].Value = "c" }, "visited": func(s *session) { s.visited[0] = 1 },
		"keywords": func(s *session) { s.keywords[0] = "b" },
	} {
		s := of()
		change(s)
		require.True(t, s.differs(of()), name)
		require.True(t, of().differs(s), name)
		require.NotEqual(t, of().key(), s.key(), name)
	}
	s := of()
	c := s.clone()
	c.chosen[0].Value, c.visited[0] = "c", 7
	require.Equal(t, of().key(), s.key())
}

// The pages of a product, under every option, and the clicks that lead to them and back.
func TestPagesOfAProduct(t *testing.T) {
	p := Product{
		ASIN: "A1", Title: "Lamp", Description: "Bright", Bullets: []string{"one", "two"}, Prices: []float64{1, 2},
		Attributes: []string{"soft", "warm"},
		Section:    "shop", Query: "lamp", Category: "a › b", Axes: []Axis{{"size", []string{"small", "reviews", "a[b"}}},
	}
	for _, attributes := range []bool{false, true} {
		f := form{results: 10, attributes: attributes}
		w := &WebShop{shop: newCatalogue([]Product{p}), options: Options{Wrapper: Listed, form: f}}
		e := &episode{shop: w, session: newSession(w.shop, &Goal{Instruction: "buy"}, f)}
		require.False(t, e.session.act("click[search]"), "the page's own button")
		require.False(t, e.session.act("look[lamp]"))
		require.False(t, e.session.act("lamp"))
		require.True(t, e.session.act("search[lamp]"))
		require.Equal(t, []string{"lamp"}, e.session.keywords)
		require.True(t, e.session.act("click[a1]"))
		require.False(t, e.session.act("click[a1]"), "no such button here")
		names := func() (all []string) {
			for _, b := range e.session.buttons() {
				all = append(all, b.name)
			}
			return all
		}
		want := []string{"back to search", "< prev", "description", "features", "reviews", "buy now", "small", "a[b"}
		shown := "Instruction: [SEP] buy [SEP] Back to Search [SEP] < Prev [SEP] size [SEP] small [SEP] reviews [SEP] a[b" +
			" [SEP] Lamp [SEP] Price: $1.0 to $2.0 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews"
		if attributes {
			want = slices.Insert(want, 5, "attributes")
			shown += " [SEP] Attributes"
		}
		require.Equal(t, want, names(), "a value of the name of a button has its place")
		got, cut := e.session.render()
		require.Equal(t, shown+" [SEP] Buy Now", got)
		require.False(t, cut)
		require.NotContains(t, e.Choices(), "click[a[b]")
		require.True(t, e.session.act("click[small]"))
		require.Equal(t, []Choice{{"size", "small"}}, e.session.chosen, "one of an axis")
		for name, texts := range map[string]string{
			"description": "Bright", "features": "one [SEP] two", "attributes": "soft [SEP] warm [SEP] shop [SEP] lamp [SEP] a › b",
		} {
			if name == "attributes" && !attributes {
				require.False(t, e.session.act("click[attributes]"))
				continue
			}
			require.True(t, e.session.act("click["+name+"]"))
			got, _ := e.session.render()
			require.Equal(t, "Instruction: [SEP] buy [SEP] Back to Search [SEP] < Prev [SEP] "+texts, got)
			require.Equal(t, []string{"back to search", "< prev"}, names())
			require.True(t, e.session.act("click[< prev]"))
			require.Equal(t, []Choice{{"size", "small"}}, e.session.chosen)
		}
		require.True(t, e.session.act("click[< prev]"))
		require.Empty(t, e.session.chosen, "the results forget what is chosen")
		require.Equal(t, none, e.session.item)
		require.True(t, e.session.act("click[a1]"))
		require.Equal(t, []int{0}, e.session.visited, "once")
		require.Equal(t, 1, e.toPurchase())
		e.session.act("click[description]")
		require.Equal(t, 2, e.toPurchase())
		e.session.act("search[lamp]")
		require.Equal(t, 2, e.toPurchase())
		require.Equal(t, []int{0}, e.session.visited, "a search on the way keeps what was looked at")
		e.session.act("click[back to search]")
		require.Equal(t, 3, e.toPurchase())
		require.Empty(t, e.session.visited)
		e.session.page = donePage
		require.False(t, e.session.act("search[lamp]"))
		require.Nil(t, e.session.buttons())
	}
}

// In rich pages bullets and attributes have a blank before them, as the templates write them.
func TestBlanksBeforeTexts(t *testing.T) {
	shop := newCatalogue([]Product{{ASIN: "A", Prices: []float64{1}, Bullets: []string{"one", ""}, Attributes: []string{"soft", ""}, Section: "all"}})
	for shown, want := range map[page]string{featuresPage: " one\n \n", attributesPage: " soft\n \nall\n"} {
		s := newSession(shop, &Goal{Instruction: "buy"}, form{rich: true})
		s.page, s.item = shown, 0
		got, _ := s.render()
		require.Equal(t, "Instruction:\nbuy\n[button] Back to Search [button_]\n[button] < Prev [button_]\n"+want, got)
	}
}

// Texts that are white space alone, as BeautifulSoup and the original's observation leave them: of a line's end nothing,
// of others a blank.
func TestTextsOfWhiteSpace(t *testing.T) {
	for description, want := range map[string]string{
		"": "", " ": " \n", "\n": "", " \n ": "", "\t\r\n": "", "\t\r": " \n", "\f": " \n", "\v": "\v\n", "\u00a0": "\u00a0\n", " a\n": " a\n\n",
	} {
		for _, rich := range []bool{true, false} {
			s := newSession(newCatalogue([]Product{{ASIN: "A", Prices: []float64{1}, Description: description}}), &Goal{Instruction: "buy"}, form{rich: rich})
			s.page, s.item = descriptionPage, 0
			got, _ := s.render()
			if rich {
				require.Equal(t, "Instruction:\nbuy\n[button] Back to Search [button_]\n[button] < Prev [button_]\n"+want, got, "%q", description)
				continue
			}
			line := "Instruction: [SEP] buy [SEP] Back to Search [SEP] < Prev"
			if want != "" {
				line += " [SEP] " + strings.TrimSpace(want)
			}
			require.Equal(t, line, got, "%q", description)
		}
	}
}

// What looks chosen in rich pages: the original looks for the value in quotes in the page's address, which has the search,
// its blanks as plus signs, and the choices.
func TestWhatLooksChosen(t *testing.T) {
	values := []string{"red", "dark red", "a+b", "size", "5\"", "é"}
	shop := newCatalogue([]Product{{ASIN: "A", Title: "lamp", Prices: []float64{1}, Axes: []Axis{{"size", values}}}})
	for _, c := range []struct {
		search, click string
		chosen        []string
	}{
		{"lamp", "", nil}, {"lamp", "dark red", []string{"size", "dark red"}}, {"lamp", "5\"", []string{"size"}}, {"lamp", "é", []string{"size"}},
		{`lamp "red"`, "", []string{"red"}}, {`lamp "dark red"`, "", nil}, {`lamp "a b"`, "", []string{"a+b"}}, {`lamp "size"`, "", []string{"size"}},
		{`lamp "red"`, "dark red", []string{"size", "dark red", "red"}}, {"lamp 'red'", "", nil}, {`lamp "é"`, "", []string{"é"}},
	} {
		s := newSession(shop, &Goal{Instruction: "buy"}, form{rich: true, results: 10})
		s.act("search[" + c.search + "]")
		s.act("click[a]")
		s.act("click[" + c.click + "]")
		shown, _ := s.render()
		before, _, _ := strings.Cut(shown, "Instruction:")
		want := ""
		for _, value := range c.chosen {
			want += "You have clicked " + value + ".\n"
			require.Contains(t, shown, "  [clicked button] "+value+" [clicked button_]\n", "%v", c)
		}
		require.Equal(t, want, before, "%v", c)
		require.Equal(t, len(values)-len(c.chosen), strings.Count(shown, "  [button] "), "%v", c)
	}
}

// A value of the name of a button does what the button does, on a page without the button too; next is no button of an
// item, so it can be chosen. A goal that asks for another of them has no plan.
func TestValuesNamedAsButtons(t *testing.T) {
	values := []string{"back to search", "< prev", "next >", "description", "features", "reviews", "attributes", "search", "buy now", "red"}
	shop := newCatalogue([]Product{{ASIN: "A", Title: "lamp", Prices: []float64{1}, Nouns: []string{"lamp"}, Axes: []Axis{{"style", values}}}})
	for name, leadsTo := range map[string]page{
		"back to search": searchPage, "< prev": resultsPage, "next >": itemPage, "description": descriptionPage, "features": featuresPage,
		"reviews": reviewsPage, "attributes": attributesPage, "search": itemPage, "buy now": donePage, "red": itemPage,
	} {
		f := form{results: 10}
		w := &WebShop{shop: shop, options: Options{Reward: Graded, form: f}}
		goal := Goal{Attributes: []string{"lamp"}, Options: []Choice{{"style", name}}, Paired: true, Limit: noLimit}
		e := &episode{shop: w, session: newSession(shop, &goal, f)}
		e.Step("search[lamp]")
		e.Step("click[a]")
		chosen := name == "next >" || name == "red"
		require.Equal(t, chosen, len(e.Advice(9)) > 0, name)
		require.Equal(t, name != "search", slices.Contains(e.Choices(), "click["+name+"]"), name)
		require.Equal(t, name != "search", e.session.act("click["+name+"]"), name)
		require.Equal(t, leadsTo, e.session.page, name)
		require.Equal(t, chosen, len(e.session.chosen) == 1, name)
	}
}

// The bounds of best play on every page, with the fewest actions that suffice and one less.
func TestBestOnEveryPage(t *testing.T) {
	w := mustNew(t, `{"catalogue":"starter","results":3,"search_anywhere":true}`)
	target := "click[" + w.shop.Products[w.episode(0).session.goal.Product].ASIN + "]"
	title := "search[" + w.shop.Products[w.episode(0).session.goal.Product].Title + "]"
	for _, c := range []struct {
		actions []string
		plan    int
		least   int
	}{
		{nil, 4, 3}, {[]string{title}, 3, 2}, {[]string{title, "click[next >]"}, 4, 2},
		{[]string{title, "click[next >]", "click[next >]"}, 4, 2},
		{[]string{title, target}, 2, 1}, {[]string{title, target, "click[small]"}, 1, 1}, {[]string{title, target, "click[large]"}, 2, 1},
		{[]string{title, target, "click[small]", "click[features]"}, 2, 2}, {[]string{"search[zebra]"}, 4, 2},
		{[]string{title, target, "click[description]"}, 3, 2},
	} {
		e := play(t, w, c.actions...)
		require.Len(t, e.Advice(c.plan), c.plan, "%v", c.actions)
		require.Nil(t, e.Advice(c.plan-1), "%v", c.actions)
		require.Equal(t, 1.0, e.BestSuccess(c.plan))
		require.Equal(t, c.least, e.toPurchase(), "%v", c.actions)
		require.Equal(t, 0.0, e.BestSuccess(c.least-1), "%v", c.actions)
		require.NotEqual(t, 0.0, e.BestSuccess(c.least), "%v", c.actions)
		before := e.StateKey()
		e.Advice(9)
		require.Equal(t, before, e.StateKey(), "to ask changes nothing")
		for _, action := range e.Advice(9) {
			e.Step(action)
		}
		require.True(t, e.Success())
		require.Equal(t, 1.0, e.BestSuccess(0))
	}
	wrong := play(t, w, title, target, "click[large]", "click[buy now]")
	require.Equal(t, 0.0, wrong.BestSuccess(9))
	require.Nil(t, wrong.plan())
	require.Equal(t, []int{1, 3, 1, 0}, w.Count([]string{title, target, "click[large]", "click[buy now]"}, nil))
	require.Equal(t, []string{"search[red shoes]"}, w.Examples(w.episode(0)))
	require.ElementsMatch(t, []string{"search[red shoes]", "click[back to search]"}, w.Examples(play(t, w, title)))
}

// The actions that an observation lists are the legal ones, but for values that are not shown.
func TestListedActions(t *testing.T) {
	axes := []Axis{{"size", []string{"Small One", "medium"}}, {"color", []string{"red", "blue"}}}
	p := Product{ASIN: "A", Title: "Lamp", Prices: []float64{1}, Axes: axes}
	for most, hidden := range map[int][]string{0: nil, 8: {"medium", "blue"}, 18: {"medium"}, 30: nil} {
		f := form{results: 10, optionsBytes: most}
		w := &WebShop{shop: newCatalogue([]Product{p}), options: Options{Wrapper: Listed, form: f}}
		e := &episode{shop: w, session: newSession(w.shop, &Goal{}, f)}
		e.Step("search[lamp]")
		e.Step("click[a]")
		want := slices.DeleteFunc(e.Choices(), func(choice string) bool {
			return slices.Contains(hidden, strings.TrimSuffix(strings.TrimPrefix(choice, "click["), "]"))
		})
		require.Equal(t, want, e.listed(), "%d bytes", most)
		require.Equal(t, hidden != nil, e.Cut())
		require.Equal(t, hidden != nil, strings.HasSuffix(e.StateKey(), " cut"))
	}
}

// The page of a purchase has its options as Jinja's tojson writes them, whatever the order of the clicks. Jinja 3 renders
// {{ options | tojson }} of the first case so.
func TestTemplateDict(t *testing.T) {
	for want, choices := range map[string][]Choice{
		`{"Style": "a", "color": "men\u0027s \u003cb\u003e \u0026 \u00e9", "size": "6\" x 9\""}`: {
			{Axis: "size", Value: `6" x 9"`}, {Axis: "color", Value: "men's <b> & é"}, {Axis: "Style", Value: "a"},
		},
		`{}`: nil,
	} {
		before := slices.Clone(choices)
		require.Equal(t, want, templateDict(choices))
		require.Equal(t, before, choices, "the order of the clicks stays")
	}
}
