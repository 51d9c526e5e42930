package webshop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

func mustNew(t testing.TB, options string) *WebShop {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env.(*WebShop)
}

func instance(group int64) draw.Address { return draw.Address{Purpose: draw.Instance, Group: group} }

// An episode from the first page to the purchase, with the detours that there are.
func TestWorkedEpisode(t *testing.T) {
	w := mustNew(t, `{"catalogue":"starter","results":3}`)
	e := w.episode(0)
	red := e.session.goal.Product
	asin := w.shop.Products[red].ASIN
	title := w.shop.Products[red].Title
	require.Equal(t, "WebShop [SEP] Instruction: [SEP] find a "+title+" with size: small [SEP] Search\nAvailable actions: search[words]", e.Observation())
	require.Len(t, e.Choices(), 4, "a search for each kind")
	take := func(action string) envs.Outcome {
		canonical, ok := e.Legal(action)
		require.True(t, ok, action)
		again, ok := e.Legal(canonical)
		require.True(t, ok)
		require.Equal(t, canonical, again)
		return e.Step(canonical)
	}
	illegal := func(actions ...string) {
		for _, action := range actions {
			_, ok := e.Legal(action)
			require.False(t, ok, action)
		}
	}
	illegal("", "search", "search[]", "search[  ]", "click[search]", "click[buy now]", "look[x]", "search[a [b] c]", "search[a", "[a]")
	require.Equal(t, envs.Outcome{Effective: true}, take(" SEARCH[ "+strings.ToUpper(title)+"  ] "))
	require.Contains(t, e.Observation(), "Page 1 (Total results: 7) [SEP] Next > [SEP] "+asin+" [SEP] "+title+" [SEP] $990.0 [SEP] ")
	require.Equal(t, []string{"click[back to search]", "click[next >]", "click[" + asin + "]"}, e.Choices()[:3])
	illegal("search[hat]", "click[< prev]")
	take("click[Next >]")
	take("click[next >]")
	illegal("click[next >]") // the last page
	require.Contains(t, e.Observation(), "Page 3 (Total results: 7)")
	take("click[< prev]")
	take("click[< prev]")
	take("click[" + asin + "]")
	take("click[description]")
	require.True(t, strings.HasPrefix(e.Observation(), "Instruction: [SEP] find a "+title+" with size: small [SEP] Back to Search [SEP] < Prev\n"))
	take("click[< prev]")
	require.Equal(t, envs.Outcome{Effective: true}, take("click[large]"))
	require.Equal(t, envs.Outcome{}, take("click[large]"), "chosen already")
	before := e.StateKey()
	take("click[features]")
	take("click[< prev]")
	require.Equal(t, before, e.StateKey(), "sub-pages keep what is chosen")
	take("click[small]")
	require.Equal(t, envs.Outcome{Reward: 1, Done: true, Effective: true, Success: true, Text: "Bought " + asin + "."}, take("click[buy now]"))
	require.True(t, e.Done() && e.Success())
	require.Empty(t, e.Choices())
	illegal("search[hat]", "click[buy now]", "click[back to search]")
	require.Panics(t, func() { e.Step("click[buy now]") })
}

// What a purchase pays under each option: of the wrong size, of a twin, of another kind.
func TestRewardOptions(t *testing.T) {
	for _, c := range []struct {
		reward              string
		right, size, look   float64
		kind, withoutChoice float64
	}{
		{Graded, 1, 2. / 3, 2. / 3, 0, 2. / 3},
		{Full, 1, 0, 0, 0, 0},
		{Strict, 1, 0, 0, 0, 0},
	} {
		w := mustNew(t, fmt.Sprintf(`{"catalogue":"starter","reward":%q}`, c.reward))
		target := &w.shop.Products[w.episode(0).session.goal.Product]
		other := func(same func(p *Product) bool) string {
			at := slices.IndexFunc(w.shop.Products, func(p Product) bool { return p.ASIN != target.ASIN && same(&p) })
			return w.shop.Products[at].ASIN
		}
		twin := other(func(p *Product) bool { return p.Query == target.Query })
		stranger := other(func(p *Product) bool { return p.Query != target.Query })
		buy := func(asin, size string) float64 {
			e := w.episode(0)
			e.Step("search[red blue soft warm]")
			for !slices.Contains(e.Choices(), "click["+asin+"]") {
				e.Step("click[next >]")
			}
			e.Step("click[" + asin + "]")
			if size != "" {
				e.Step("click[" + size + "]")
			}
			o := e.Step("click[buy now]")
			require.Equal(t, o.Reward >= 1, o.Success)
			return o.Reward
		}
		require.Equal(t, c.right, buy(target.ASIN, "small"), c.reward)
		require.InDelta(t, c.size, buy(target.ASIN, "large"), 1e-12, c.reward)
		require.InDelta(t, c.look, buy(twin, "small"), 1e-12, c.reward)
		require.InDelta(t, c.kind, buy(stranger, "small"), 1e-12, c.reward)
		require.InDelta(t, c.withoutChoice, buy(target.ASIN, ""), 1e-12, c.reward)
	}
}

// WebShop's leniency, and how strict leaves it out: a value matches by its words, any axis
// and any colour in it will do.
func TestLeniency(t *testing.T) {
	p := Product{Title: "Lamp", Query: "lamp", Nouns: []string{"lamp"}, Prices: []float64{5}}
	goal := Goal{Options: []Choice{{"size", "x-large"}, {"color", "light blue"}}, Paired: true, Limit: 10}
	for _, c := range []struct {
		chosen  []Choice
		matched int
		strict  bool
	}{
		{[]Choice{{"size", "x-large"}, {"color", "light blue"}}, 2, true},
		{[]Choice{{"size", "large"}, {"color", "light blue"}}, 2, false},
		{[]Choice{{"style", "x-large"}, {"color", "light blue"}}, 2, false},
		{[]Choice{{"color", "size"}}, 1, false},
		{[]Choice{{"color", "light red"}}, 1, false}, // which is "light"
		{nil, 0, false},
	} {
		s := score(&goal, &p, &p, c.chosen, 5)
		require.Equal(t, c.matched, s.Options, "%v", c.chosen)
		require.Equal(t, float64(c.matched+1)/3, s.Reward)
		require.Equal(t, c.strict, strictly(&goal, 0, c.chosen, 5), "%v", c.chosen)
	}
	require.False(t, strictly(&goal, 0, goal.Options, 10.5), "too dear")
	require.False(t, strictly(&goal, 1, goal.Options, 5), "another product")
	people := Goal{Options: []Choice{{Value: "x-large"}}, Limit: 10}
	require.True(t, strictly(&people, 0, []Choice{{"style", "x-large"}}, 5), "people name no axes")
}

// Wherever random play leads, its choices are legal by their canonical names, equal keys
// show the same, a replay shows the same, and no observation is wider than the cases.
func TestRandomPlay(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for _, options := range []string{
		`{"size":60,"max_actions":30}`,
		`{"size":60,"max_actions":30,"observation":"text_rich","wrapper":"ragen","search_anywhere":true,"show_attributes":true}`,
		`{"size":40,"results":50,"wrapper":"bare","split":"train"}`,
		`{"catalogue":"starter","results":3,"max_actions":30,"observation":"text_rich"}`,
		`{"size":60,"max_actions":20,"title_bytes":12,"options_bytes":20,"description_bytes":10,"features_bytes":15,"instances":7,"pool":3}`,
	} {
		w := mustNew(t, options)
		_, err := envs.MaxPromptTokens(w, tok, envs.Protocol{}, 2, 16)
		require.NoError(t, err, options)
		width := func(text string) (int, error) {
			ids, err := tok.Continuation(text)
			return len(ids), err
		}
		longest, err := w.Longest(width)
		require.NoError(t, err)
		most := 0
		for _, e := range longest {
			n, err := width(e.Observation())
			require.NoError(t, err)
			most = max(most, n)
		}
		shown := map[string]string{}
		for group := range int64(40) {
			e := w.Reset(instance(group), draw.Address{Purpose: draw.Chance})
			r := draw.Address{Purpose: draw.Sample, Group: group}.Rand()
			var actions []string
			for !e.Done() && len(actions) < w.MaxActions() {
				n, err := width(e.Observation())
				require.NoError(t, err)
				require.LessOrEqual(t, n, most, e.Observation())
				again, ok := shown[e.StateKey()]
				require.True(t, !ok || again == e.Observation())
				shown[e.StateKey()] = e.Observation()
				choices := e.Choices()
				require.NotEmpty(t, choices)
				action := choices[r.IntN(len(choices))]
				canonical, ok := e.Legal(strings.ToUpper(action))
				require.True(t, ok, action)
				require.Equal(t, action, canonical)
				require.True(t, envs.Writable(action))
				key := e.StateKey()
				require.Equal(t, e.Step(action).Effective, e.StateKey() != key || strings.Contains(key, "first"), action)
				actions = append(actions, action)
			}
			replayed, _, err := envs.Replay(w, instance(group), draw.Address{Purpose: draw.Chance}, [][]string{actions})
			require.NoError(t, err)
			require.Equal(t, e.Observation(), replayed.Observation())
			require.Equal(t, e.StateKey(), replayed.StateKey())
		}
	}
}

// What is too long is cut at a word or a value, and said to be; hidden values stay legal.
func TestCuts(t *testing.T) {
	p := Product{
		ASIN: "A", Title: "one two three four", Description: "five six seven", Bullets: []string{"eight nine", "ten eleven"}, Prices: []float64{1},
		Axes: []Axis{{"size", []string{"small", "medium", "large"}}}, Nouns: []string{"one"},
	}
	w := &WebShop{shop: newCatalogue([]Product{p}), options: Options{Wrapper: Listed}}
	show := func(shown page, f form) (string, bool) {
		w.options.form = f
		e := &episode{shop: w, session: newSession(w.shop, &Goal{Instruction: "buy"}, f)}
		e.session.page, e.session.item = shown, 0
		for _, value := range []string{"small", "medium", "large"} {
			_, ok := e.Legal("click[" + value + "]")
			require.Equal(t, shown == itemPage, ok)
		}
		return e.Observation(), e.Cut()
	}
	for _, c := range []struct {
		page  page
		form  form
		parts []string
		cut   bool
	}{
		{itemPage, form{}, []string{" one two three four ", " small [SEP] medium [SEP] large ", "click[large]"}, false},
		{itemPage, form{titleBytes: 18, optionsBytes: 16}, []string{" one two three four ", " small [SEP] medium [SEP] large "}, false},
		{itemPage, form{titleBytes: 12}, []string{" one two [SEP] Price: $1.0 "}, true},
		{itemPage, form{titleBytes: 13}, []string{" one two three [SEP] Price: $1.0 "}, true},
		{itemPage, form{optionsBytes: 11}, []string{" small [SEP] medium [SEP] one two", "click[small], click[medium]"}, true},
		{itemPage, form{optionsBytes: 1}, []string{" size [SEP] small [SEP] one two", "click[buy now], click[small]"}, true},
		{descriptionPage, form{descriptionBytes: 9}, []string{"< Prev [SEP] five six\n"}, true},
		{descriptionPage, form{descriptionBytes: 3}, []string{"< Prev [SEP] fiv\n"}, true},
		{descriptionPage, form{}, []string{"five six seven\n"}, false},
		{featuresPage, form{featuresBytes: 13}, []string{"eight nine [SEP] ten\n"}, true},
		{featuresPage, form{featuresBytes: 10}, []string{"eight nine\n"}, true},
		{featuresPage, form{featuresBytes: 20}, []string{"eight nine [SEP] ten eleven\n"}, false},
	} {
		shown, cut := show(c.page, c.form)
		for _, part := range c.parts {
			require.Contains(t, shown, part, "%+v", c.form)
		}
		require.Equal(t, c.cut, cut, "%+v: %s", c.form, shown)
	}
	require.Equal(t, "caf", shortened("café", 4), "no half characters")
	require.Equal(t, "café", shortened("café", 5))
}

// What an episode counts, from its record alone.
func TestCount(t *testing.T) {
	w := mustNew(t, `{"size":60,"title_bytes":12}`)
	require.Equal(t, []string{"searches", "clicks", "purchases", "cut_pages"}, w.Counters())
	require.Equal(t, []int{0, 0, 0, 0}, w.Count(nil, nil))
	e := w.episode(0)
	plan := e.Advice(9)
	var states []string
	cut := 0
	for _, action := range plan {
		states = append(states, e.StateKey())
		if e.Cut() {
			cut++
		}
		e.Step(action)
	}
	require.Equal(t, len(plan)-1, cut, "all but the search page")
	require.Equal(t, []int{1, len(plan) - 1, 1, cut}, w.Count(plan, states))
}

// Demonstrations in a window of one turn show each stage of a purchase about equally often, and no
// context is wider than a run's.
func TestWindowsShowEveryStage(t *testing.T) {
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	w, p := mustNew(t, `{"catalogue":"starter","results":3,"wrapper":"bare","max_actions":4}`), envs.Protocol{ContextTurns: 1}
	widths, err := envs.MaxPromptTokens(w, tok, p, 4, 24)
	require.NoError(t, err)
	rows, err := starter.Transcripts(tok, w, p, starter.Options{Turns: 4, Window: 1, Demonstrations: 1}, 200, draw.Address{Purpose: draw.WarmStart, Seed: 4})
	require.NoError(t, err)
	stages := map[string]int{}
	for _, row := range rows {
		require.LessOrEqual(t, len(row.IDs), widths[3]+24)
		text := tok.Decode(row.IDs)
		require.Equal(t, 1, strings.Count(text, "Turn "), text)
		_, said, _ := strings.Cut(text[strings.LastIndex(text, "<answer>"):], "<answer> ")
		for _, stage := range []string{"search[", "click[p", "click[small]", "click[large]", "click[buy now]"} {
			if strings.HasPrefix(said, stage) {
				stages[strings.Trim(stage, "[]")]++
			}
		}
	}
	require.Equal(t, 200, stages["search"]+stages["click[p"]+stages["click[small"]+stages["click[large"]+stages["click[buy now"])
	for _, stage := range []string{"search", "click[p", "click[buy now"} {
		require.Greater(t, stages[stage], 25, stages)
	}
	require.Greater(t, stages["click[small"]+stages["click[large"], 25, stages)
}
