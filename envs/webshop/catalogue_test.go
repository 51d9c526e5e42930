package webshop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// The first and the last goal of each instruction, and a limit of its own for each that a person wrote.
func TestGoalsAtTheEdges(t *testing.T) {
	synthetic := Product{
		ASIN: "S", Prices: []float64{5}, Axes: []Axis{{"size", []string{"s", "l"}}, {"color", []string{"red", "tan"}}},
		Instructions: []Instruction{{Text: "i"}, {Text: "j"}},
	}
	empty := Product{ASIN: "E", Prices: []float64{5}, Axes: []Axis{{"size", nil}}, Instructions: []Instruction{{Text: "never"}}}
	people := Product{ASIN: "P", Prices: []float64{955}, Instructions: []Instruction{
		{Text: "k", Options: []string{}}, {Text: "l", Options: []string{"red", "s"}},
	}}
	plain := Product{ASIN: "N", Prices: []float64{980}, Instructions: []Instruction{{Text: "m"}}}
	shop := newCatalogue([]Product{{ASIN: "0", Prices: []float64{1}}, synthetic, empty, people, plain})
	list, err := shop.goals(func(*Product) bool { return true })
	require.NoError(t, err)
	require.Equal(t, 11, list.count)
	told := func(asin string, member int64, price float64) (float64, string) {
		return limit(price, draw.Address{Purpose: limitPurpose.With(draw.Purpose(asin)), Member: member})
	}
	sLimit, sTold := told("S", 0, 5)
	kLimit, kTold := told("P", 1, 955)
	lLimit, lTold := told("P", 2, 955)
	of := func(text, color, size string) Goal {
		return Goal{
			Product: 1, Instruction: text + " with color: " + color + ", and size: " + size + sTold,
			Options: []Choice{{"color", color}, {"size", size}},
			Paired:  true, Limit: sLimit,
		}
	}
	for number, want := range map[int]Goal{
		0: of("i", "red", "s"), 3: of("i", "tan", "l"), 4: of("j", "red", "s"), 7: of("j", "tan", "l"),
		8:  {Product: 3, Instruction: "k" + kTold, Limit: kLimit},
		9:  {Product: 3, Instruction: "l" + lTold, Options: []Choice{{Value: "red"}, {Value: "s"}}, Limit: lLimit},
		10: {Product: 4, Instruction: "m", Options: []Choice{}, Paired: true, Limit: 1000000},
	} {
		require.Equal(t, want, list.goal(number), "goal %d", number)
	}
	// Tens above the price, at most four and below 1000: two at least.
	for price, most := range map[float64][2]float64{
		0: {20, 40}, 9.99: {20, 40}, 10: {30, 50}, 959.99: {970, 990}, 960: {980, 990}, 970: {990, 990}, 979.99: {990, 990},
		980: {1e6, 1e6},
	} {
		least, greatest := 1e9, 0.0
		for i := range int64(300) {
			got, _ := limit(price, draw.Address{Group: i})
			least, greatest = min(least, got), max(greatest, got)
		}
		require.Equal(t, most, [2]float64{least, greatest}, price)
	}
	many := func(products ...int) error {
		var all []Product
		for i, n := range products {
			p := Product{ASIN: fmt.Sprint(i), Prices: []float64{1}, Instructions: []Instruction{{}}}
			for _, values := range []int{4096, n} {
				p.Axes = append(p.Axes, Axis{Values: make([]string, values)})
			}
			all = append(all, p)
		}
		_, err := (&Catalogue{Products: all}).goals(func(*Product) bool { return true })
		return err
	}
	require.NoError(t, many(4096), "as many goals as may be")
	require.EqualError(t, many(4097), "product 0: more than 16777216 goals")
	require.NoError(t, many(4095, 1))
	require.EqualError(t, many(4095, 2), "product 1: more than 16777216 goals")
	range3 := Product{ASIN: "R", Prices: []float64{3, 28}}
	share := draw.Address{Purpose: pricePurpose.With("R")}.Rand().Float64()
	require.InDelta(t, 3+25*share, range3.drawnPrice(), 1e-12)
	require.Equal(t, "$3.0 to $28.0", range3.tag())
}

// The products of B000 to B059 whose SHA-256 of "reprise/webshop/1 B…" begins with 64 bits that eight divides.
func TestSplitOfProducts(t *testing.T) {
	var test []string
	for i := range 60 {
		p := Product{ASIN: fmt.Sprintf("B%03d", i)}
		if p.split() == Test {
			test = append(test, p.ASIN)
		} else {
			require.Equal(t, Train, p.split())
		}
	}
	require.Equal(t, strings.Fields("B003 B009 B029 B035 B037 B042 B048 B054 B059"), test)
}

// A training split has a test to hold out if some product of the test split has an instruction.
func TestHeldOutAtTheEdges(t *testing.T) {
	for _, c := range []struct{ options, split string }{
		{`{"size":600,"split":"train"}`, "test"}, {`{"size":600,"split":"test"}`, "test"}, {`{"size":600}`, "all"},
		{`{"catalogue":"starter","split":"train"}`, "test"},
	} {
		var held map[string]any
		require.NoError(t, json.Unmarshal(mustNew(t, c.options).HeldOut(), &held))
		require.Equal(t, c.split, held["split"], c.options)
	}
	w := &WebShop{shop: newCatalogue([]Product{
		{ASIN: "B000", Prices: []float64{1}, Instructions: []Instruction{{}}}, {ASIN: "B003", Prices: []float64{1}},
	})}
	w.options.Split = Train
	_, problems := envs.ReadOptions(nil, func(o *envs.Options) { w.list(o) })
	require.Empty(t, problems)
	require.False(t, w.held, "nobody asks for the product of the test split")
	// All goals there are, and one more.
	all := mustNew(t, `{"catalogue":"starter","instances":32}`)
	require.Len(t, all.pool, 32)
	require.Equal(t, board.Member(0, 0).Rand().Perm(32), all.pool)
	require.Nil(t, mustNew(t, `{"catalogue":"starter","instances":0}`).pool)
	require.Len(t, mustNew(t, `{"catalogue":"starter","instances":1}`).pool, 1)
}

// Four catalogues stay in memory, the one longest unused goes first.
func TestCataloguesKept(t *testing.T) {
	of := func(number int) *Catalogue {
		return mustNew(t, fmt.Sprintf(`{"size":16,"number":%d}`, 9000+number)).shop
	}
	var first []*Catalogue
	for n := range 4 {
		first = append(first, of(n))
	}
	require.Same(t, first[0], of(0), "the oldest of four; now 1 is")
	fifth := of(4)
	require.Same(t, first[0], of(0))
	require.Same(t, first[2], of(2))
	require.Same(t, first[3], of(3))
	require.Same(t, fifth, of(4))
	require.NotSame(t, first[1], of(1))
}

// Cases and examples are spread over all there are, or are all.
func TestCasesAndExamples(t *testing.T) {
	for goals, want := range map[int][]int{1: {0}, 63: {0, 1, 62}, 64: {0, 1, 63}, 65: {0, 1, 63}, 100: {0, 1, 98}, 128: {0, 2, 126}} {
		p := Product{ASIN: "A", Prices: []float64{990}, Axes: []Axis{{"a", make([]string, goals)}}, Instructions: []Instruction{{}}}
		w := &WebShop{shop: newCatalogue([]Product{p}), options: Options{form: form{results: 1}}}
		var err error
		w.goals, err = w.shop.goals(func(*Product) bool { return true })
		require.NoError(t, err)
		cases := w.Cases()
		require.Len(t, cases, min(goals, 64))
		at := func(i int) int { return cases[i].(*episode).number }
		require.Equal(t, want[0], at(0))
		if len(want) > 1 {
			require.Equal(t, want[1:], []int{at(1), at(len(cases) - 1)}, "%d goals", goals)
		}
		w.pool = []int{5}
		require.Len(t, w.Cases(), 1)
		require.Equal(t, 5, w.Cases()[0].(*episode).number)
		require.Equal(t, 5, w.Reset(instance(3), draw.Address{}).(*episode).number)
	}
	for _, c := range []struct {
		queries string
		want    string
	}{
		{"", "product"}, {"b,a,b", "a b"}, {"a [b] c,a", "a"}, {"h,g,f,e,d,c,b,a", "a b c d e f g h"},
		{"i,h,g,f,e,d,c,b,a", "a b c d e f g h"},
		{"p,o,n,m,l,k,j,i,h,g,f,e,d,c,b,a", "a c e g i k m o"},
	} {
		var products []Product
		for query := range strings.SplitSeq(c.queries, ",") {
			products = append(products, Product{ASIN: query, Query: query, Prices: []float64{1}})
		}
		var want []string
		for query := range strings.FieldsSeq(c.want) {
			want = append(want, "search["+query+"]")
		}
		require.Equal(t, want, newCatalogue(products).examples, c.queries)
	}
}

// The widest of texts: ties by their place, as many as are asked for, and none measured that cannot be among them.
func TestWidest(t *testing.T) {
	for _, c := range []struct {
		texts    string
		k        int
		want     []int
		measured int
	}{
		{"a", 1, []int{0}, 1}, {"a bb ccc", 1, []int{2}, 3}, {"ccc bb a", 2, []int{0, 1}, 3}, {"bb aa cc", 1, []int{0}, 3},
		{"bb aa cc", 2, []int{0, 1}, 3},
		{"a bb cc a", 3, []int{1, 2, 0}, 4}, {"a bb", 5, []int{1, 0}, 2},
		// A text may be wider by eight than its bytes say: of 10 the 2 is measured, the 1 is not.
		{"aaaaaaaaaa bb", 1, []int{0}, 2}, {"aaaaaaaaaa b", 1, []int{0}, 1}, {"b bb aaaaaaaaaa", 2, []int{2, 1}, 3},
	} {
		texts, measured := strings.Fields(c.texts), 0
		width := func(text string) (int, error) {
			measured++
			return len(text), nil
		}
		got, err := widest(len(texts), c.k, func(i int) string { return texts[i] }, width)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.texts)
		require.Equal(t, c.measured, measured, c.texts)
	}
	_, err := widestOne(1, func(int) string { return "a" }, func(string) (int, error) { return 0, fmt.Errorf("no width") })
	require.EqualError(t, err, "no width")
}

// The widest values are chosen on the widest pages, under the goal that asks for them.
func TestLongestPages(t *testing.T) {
	products := []Product{
		{
			ASIN: "A", Title: "t", Prices: []float64{990},
			Axes:         []Axis{{"size", []string{"x", "xxx", "yyy", "x"}}, {"color", []string{"red", "r"}}},
			Instructions: []Instruction{{Text: "i"}},
		},
		{ASIN: "B", Title: "title", Description: "long", Prices: []float64{990}, Axes: []Axis{{"none", nil}}},
		{
			ASIN: "C", Title: "title", Bullets: []string{"one"}, Attributes: []string{"soft"}, Prices: []float64{990},
			Instructions: []Instruction{{Text: "i", Options: []string{"a"}}},
		},
	}
	width := func(text string) (int, error) { return len(text), nil }
	for _, c := range []struct {
		results    int
		attributes bool
		page       string
		listed     []int
	}{
		// Three products on pages of one, two, three: the middle page of three, the second of two, the only one.
		{1, false, "Page 2 (Total results: 3)", []int{1}}, {2, true, "Page 2 (Total results: 3)", []int{1}},
		{3, false, "Page 1 (Total results: 3)", []int{1, 2, 0}},
	} {
		f := form{results: c.results, attributes: c.attributes}
		w := &WebShop{shop: newCatalogue(products), options: Options{Wrapper: RAGEN, form: f}}
		var err error
		w.goals, err = w.shop.goals(func(*Product) bool { return true })
		require.NoError(t, err)
		values, err := w.widestValues(width)
		require.NoError(t, err)
		require.Equal(t, [][]int{{0, 1}, {0}, nil}, values, "the first of the widest, by the axes' names")
		pages, err := w.Longest(width)
		require.NoError(t, err)
		require.Len(t, pages, map[bool]int{false: 5, true: 6}[c.attributes])
		for _, page := range pages {
			require.Contains(t, page.Observation(), "i with color: red, and size: xxx")
		}
		require.Contains(t, pages[1].Observation(), c.page)
		results := pages[1].(*episode).session
		require.Equal(t, c.listed, results.listed())
		require.Len(t, results.hits, 3)
		require.Equal(t, none, results.item)
		require.NotContains(t, results.visited, 9)
		for i, want := range map[int]page{2: itemPage, 3: descriptionPage, 4: featuresPage} {
			s := pages[i].(*episode).session
			require.Equal(t, want, s.page)
			require.Equal(t, 1, s.number)
		}
		item := pages[2].(*episode)
		require.Equal(t, 0, item.session.item)
		require.Equal(t, []Choice{{"color", "red"}, {"size", "xxx"}}, item.session.chosen)
		require.Equal(t, 1, pages[3].(*episode).session.item, "the longest description")
		require.Empty(t, pages[3].(*episode).session.chosen, "an axis without values")
		require.Equal(t, 2, pages[4].(*episode).session.item, "the longest features")
		if c.attributes {
			require.Equal(t, attributesPage, pages[5].(*episode).session.page)
			require.Equal(t, 2, pages[5].(*episode).session.item)
		}
		require.True(t, strings.HasPrefix(pages[0].Observation(), "Instruction: i with"), "RAGEN's first")
		require.NotContains(t, pages[1].StateKey(), "first")
	}
}

// What is made from maps is the same fifty times: a shop, its pins, what it holds out, what a search finds.
func TestFiftyTimesTheSame(t *testing.T) {
	options, _ := write(t, map[string]any{"goals": "human", "split": "train"})
	of := func() string {
		w := mustNew(t, options)
		pinned, err := w.Pin()
		require.NoError(t, err)
		shop := newCatalogue(generate(40, 7))
		goals, err := shop.goals(func(*Product) bool { return true })
		require.NoError(t, err)
		goal := goals.goal(3)
		s := newSession(shop, &goal, form{results: 40})
		s.search("red and black shoes")
		shown, _ := s.render()
		return fmt.Sprint(string(pinned), string(w.HeldOut()), shop.examples, goal, shown, w.Reset(instance(1), instance(0)).Observation())
	}
	first := of()
	for range 50 {
		require.Equal(t, first, of())
	}
}
