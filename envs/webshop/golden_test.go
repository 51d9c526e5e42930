package webshop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// readGolden reads one of the files that the original program computed.
func readGolden(t *testing.T, file string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(golden.Read(t, "webshop", file, "testdata"), into))
}

// goldenCatalogue loads the golden's shop, with instructions of people or synthetic ones.
func goldenCatalogue(t *testing.T, human bool) []Product {
	t.Helper()
	var files shopFiles
	readGolden(t, "catalogue.json", &files)
	return files.read(t, human)
}

// goldenGoal is a goal as the original has it.
type goldenGoal struct {
	ASIN, Query, Name string
	Category          string          `json:"product_category"`
	Instruction       string          `json:"instruction_text"`
	Attributes        []string        `json:"attributes"`
	Limit             float64         `json:"price_upper"`
	Options           json.RawMessage `json:"goal_options"`
}

func (g goldenGoal) goal(t *testing.T, product int) Goal {
	t.Helper()
	out := Goal{Product: product, Instruction: g.Instruction, Attributes: g.Attributes, Limit: g.Limit}
	if g.Options[0] == '[' {
		var values []string
		require.NoError(t, json.Unmarshal(g.Options, &values))
		for _, value := range values {
			out.Options = append(out.Options, Choice{Value: value})
		}
		return out
	}
	out.Paired = true
	out.Options = goldenChoices(t, g.Options)
	return out
}

// goldenChoices reads a dictionary of options in its order.
func goldenChoices(t *testing.T, dictionary json.RawMessage) []Choice {
	t.Helper()
	var members orderedMap
	require.NoError(t, json.Unmarshal(dictionary, &members))
	var choices []Choice
	for _, m := range members {
		var value string
		require.NoError(t, json.Unmarshal(m.value, &value))
		choices = append(choices, Choice{Axis: m.key, Value: value})
	}
	return choices
}

func TestColorsGolden(t *testing.T) {
	var cases []struct{ In, Out any }
	readGolden(t, "colors.json", &cases)
	require.NotEmpty(t, cases)
	for _, c := range cases {
		if text, ok := c.In.(string); ok {
			require.Equal(t, c.Out, color(text), text)
			continue
		}
		pair := c.In.([]any)
		want, ok := c.Out.(string)
		if !ok { // no colour
			want = pair[0].(string) + " " + pair[1].(string)
		}
		require.Equal(t, want, pairColor(pair[0].(string), pair[1].(string)))
	}
}

func TestFuzzyGolden(t *testing.T) {
	var cases []struct {
		A     string
		B     any
		Score int
	}
	readGolden(t, "fuzzy.json", &cases)
	require.NotEmpty(t, cases)
	for _, c := range cases {
		b, ok := c.B.(string)
		if !ok {
			pair := c.B.([]any)
			b = pair[0].(string) + " " + pair[1].(string)
		}
		require.Equal(t, c.Score, tokenSetRatio(c.A, b), "%q, %q", c.A, b)
	}
}

// Every reward with its parts.
func TestRewardsGolden(t *testing.T) {
	var want struct {
		Products map[string]struct {
			ASIN, Query, Title, Description string
			Category                        string `json:"product_category"`
			BulletPoints, Attributes        []string
			Nouns                           []string `json:"title_nouns"`
		}
		Goals []goldenGoal
		Cases []struct {
			Goal    int
			Product string
			Options json.RawMessage
			Price   float64
			Reward  float64
			Info    map[string]any
		}
	}
	readGolden(t, "rewards.json", &want)
	require.NotEmpty(t, want.Cases)
	product := func(asin string) *Product {
		p, ok := want.Products[asin]
		require.True(t, ok, asin)
		return &Product{
			ASIN: p.ASIN, Title: p.Title, Description: p.Description, Bullets: p.BulletPoints,
			Query: p.Query, Category: p.Category, Attributes: p.Attributes, Nouns: p.Nouns,
		}
	}
	for i, c := range want.Cases {
		given := want.Goals[c.Goal]
		target := product(given.ASIN)
		target.Query, target.Category = given.Query, given.Category
		goal := given.goal(t, 0)
		got := score(&goal, target, product(c.Product), goldenChoices(t, c.Options), c.Price)
		at := fmt.Sprintf("case %d", i)
		require.Equal(t, c.Reward, got.Reward, at)
		parts := float64(len(goal.Attributes) + len(goal.Options) + 1)
		info := map[string]any{
			"r_type": got.Type, "r_att": float64(got.Attributes) / float64(len(goal.Attributes)), "w_att": float64(len(goal.Attributes)) / parts,
			"query_match": got.Query, "category_match": got.Category, "title_score": got.TitleScore, "r_price": got.Price, "w_price": 1 / parts,
		}
		if n := len(goal.Options); n > 0 {
			info["r_option"], info["w_option"] = float64(got.Options)/float64(n), float64(n)/parts
		}
		require.Equal(t, c.Info, info, at)
	}
}

// The goals of the original are ours, but for the price limits, which it draws without a seed.
func TestGoalsGolden(t *testing.T) {
	var want struct{ Goals []goldenGoal }
	readGolden(t, "rewards.json", &want)
	products := map[string]bool{}
	made := map[string][]Goal{} // sentences may repeat
	for _, human := range []bool{false, true} {
		catalogue := newCatalogue(goldenCatalogue(t, human))
		list, err := catalogue.goals(func(*Product) bool { return true })
		require.NoError(t, err)
		for i := range list.count {
			g := list.goal(i)
			asin := catalogue.Products[g.Product].ASIN
			products[asin] = true
			text, _, _ := strings.Cut(g.Instruction, ", and price lower than ")
			made[asin+" "+text] = append(made[asin+" "+text], g)
		}
	}
	checked := 0
	for _, g := range want.Goals {
		if !products[g.ASIN] {
			continue // made for the rewards alone
		}
		text, _, _ := strings.Cut(g.Instruction, ", and price lower than ")
		wanted := g.goal(t, 0)
		require.True(t, slices.ContainsFunc(made[g.ASIN+" "+text], func(got Goal) bool {
			return slices.Equal(wanted.Options, got.Options) && slices.Equal(wanted.Attributes, got.Attributes)
		}), "%s: %s", g.ASIN, g.Instruction)
		checked++
	}
	require.NotZero(t, checked)
}

// The texts by which products are found.
func TestDocumentsGolden(t *testing.T) {
	var want struct {
		Documents []struct{ ID, Contents string }
	}
	require.NoError(t, json.Unmarshal(golden.Read(t, "webshop", "search.json", "../retrieve/testdata"), &want))
	documents := map[string]string{}
	for _, d := range want.Documents {
		documents[d.ID] = d.Contents
	}
	compared := 0
	for _, p := range goldenCatalogue(t, false) {
		if contents, ok := documents[p.ASIN]; ok {
			require.Equal(t, contents, p.document())
			compared++
		}
	}
	t.Logf("%d of the %d documents are of this catalogue", compared, len(documents))
}

// Every page, what can be clicked on it, every transition and every purchase.
func TestEpisodesGolden(t *testing.T) {
	type available struct {
		Search     bool     `json:"has_search_bar"`
		Clickables []string `json:"clickables"`
	}
	var want struct {
		Prices   map[string]float64
		Episodes []struct {
			Mode  string
			Human bool
			Goal  goldenGoal
			Start struct {
				Observation string
				Available   available
			}
			Steps []struct {
				Action, Observation string
				Reward              float64
				Done                bool
				Available           available
				Session             struct {
					Page     *int
					ASIN     *string
					Options  json.RawMessage
					Keywords []string
				}
			}
		}
	}
	readGolden(t, "episodes.json", &want)
	require.NotEmpty(t, want.Episodes)
	shops := map[bool]*Catalogue{}
	for _, human := range []bool{false, true} {
		shops[human] = newCatalogue(goldenCatalogue(t, human))
		require.Len(t, want.Prices, len(shops[human].Products))
		for i, p := range shops[human].Products {
			require.Contains(t, want.Prices, p.ASIN)
			shops[human].Prices[i] = want.Prices[p.ASIN]
		}
	}
	for i, e := range want.Episodes {
		shop := shops[e.Human]
		goal := e.Goal.goal(t, shop.places[e.Goal.ASIN])
		s := newSession(shop, &goal, form{rich: e.Mode == "text_rich", results: 10})
		check := func(observation string, buttons available, at string) {
			shown, cut := s.render()
			require.Equal(t, observation, shown, at)
			require.False(t, cut, at)
			names := []string{}
			for _, b := range s.buttons() {
				names = append(names, b.name)
			}
			require.Equal(t, buttons.Clickables, names, at)
			require.Equal(t, buttons.Search, s.page == searchPage, at)
		}
		check(e.Start.Observation, e.Start.Available, fmt.Sprintf("episode %d", i))
		for k, step := range e.Steps {
			at := fmt.Sprintf("episode %d, step %d: %s", i, k+1, step.Action)
			s.act(step.Action)
			check(step.Observation, step.Available, at)
			require.Equal(t, step.Done, s.page == donePage, at)
			require.Equal(t, step.Reward, s.score.Reward, at)
			if step.Session.Page == nil {
				require.Equal(t, searchPage, s.page, at)
			} else {
				require.Equal(t, *step.Session.Page, s.number, at)
			}
			if step.Session.ASIN == nil {
				require.Equal(t, none, s.item, at)
			} else {
				require.Equal(t, *step.Session.ASIN, shop.Products[s.item].ASIN, at)
			}
			require.Equal(t, goldenChoices(t, step.Session.Options), s.chosen, at)
			require.Equal(t, step.Session.Keywords, s.keywords, at)
		}
	}
}

// act takes an action as WebShop takes it: a search on every page, any other by its
// button. It reports whether the action did anything. The score is set by a purchase.
func (s *session) act(action string) bool {
	name, argument, ok := parseAction(action)
	switch {
	case !ok || s.page == donePage:
		return false
	case name == "search":
		s.search(argument)
		return true
	case name != "click":
		return false
	}
	for _, b := range s.buttons() {
		if b.name == argument {
			return s.click(b)
		}
	}
	return false
}
