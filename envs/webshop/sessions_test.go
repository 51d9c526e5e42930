package webshop

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	asked = flag.String("asked", "", "a file with a catalogue and queries, of testdata/make_sessions.py")
	told  = flag.String("told", "", "where the hits of those queries are written")
)

// shopFiles is a shop in the form of WebShop's files.
type shopFiles struct {
	Products, Attributes, Human json.RawMessage
	Nouns                       json.RawMessage `json:"title_nouns"`
}

// read gives the products, with instructions of people or synthetic ones.
func (f *shopFiles) read(t *testing.T, human bool) []Product {
	t.Helper()
	products, err := readProducts(f.Products)
	require.NoError(t, err)
	require.NoError(t, addAttributes(products, f.Attributes))
	require.NoError(t, addNouns(products, f.Nouns))
	if human {
		require.NoError(t, setPeoplesInstructions(products, f.Human))
	}
	return products
}

// TestHitsForScript is make_sessions.py's search: it tells the hits of queries.
func TestHitsForScript(t *testing.T) {
	if *asked == "" {
		t.Skip("make_sessions.py asks by -asked and -told")
	}
	content, err := os.ReadFile(*asked)
	require.NoError(t, err)
	var files struct {
		shopFiles
		Queries []string
	}
	require.NoError(t, json.Unmarshal(content, &files))
	shop := newCatalogue(files.read(t, false))
	hits := map[string][]string{}
	for _, query := range files.Queries {
		hits[query] = []string{}
		for _, hit := range shop.index.Search(query, maxHits) {
			hits[query] = append(hits[query], shop.Products[hit.Document].ASIN)
		}
	}
	content, err = json.Marshal(hits)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*told, content, 0o600))
}

// seen is what the original shows at the start of a session: a page and what can be clicked.
type seen struct{ page, clicks int }

// UnmarshalJSON implements json.Unmarshaler.
func (s *seen) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&s.page, &s.clicks}) }

// seenStep is an action and what the original makes of it.
type seenStep struct {
	action string
	seen
	reward float64
	done   bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *seenStep) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.action, &s.page, &s.clicks, &s.reward, &s.done})
}

// seenSession is a session of the original's.
type seenSession struct {
	Rich, Attributes, Human bool
	Goal                    goldenGoal
	Start                   seen
	Steps                   []seenStep
}

// seenSessions is what make_sessions.py writes.
type seenSessions struct {
	shopFiles
	Prices     map[string]float64
	Pages      []string
	Clickables [][]string
	Sessions   []seenSession
	Differs    []struct {
		seenSession
		What string `json:"differs"`
	}
}

// shops are the catalogue with synthetic instructions and with those of people.
func (w *seenSessions) shops(t *testing.T) map[bool]*Catalogue {
	t.Helper()
	shops := map[bool]*Catalogue{}
	for _, human := range []bool{false, true} {
		shop := newCatalogue(w.read(t, human))
		require.Len(t, w.Prices, len(shop.Products))
		for i, p := range shop.Products {
			require.Contains(t, w.Prices, p.ASIN)
			shop.Prices[i] = w.Prices[p.ASIN]
		}
		shops[human] = shop
	}
	return shops
}

// begin is the episode of a session; its state is the original's as long as the actions are taken by act.
func (s *seenSession) begin(t *testing.T, shops map[bool]*Catalogue) *episode {
	t.Helper()
	shop := shops[s.Human]
	place, known := shop.places[s.Goal.ASIN]
	require.True(t, known)
	goal := s.Goal.goal(t, place)
	f := form{rich: s.Rich, results: 10, attributes: s.Attributes}
	options := Options{Reward: Graded, Wrapper: Bare, SearchAnywhere: true, form: f}
	return &episode{shop: &WebShop{shop: shop, options: options}, session: newSession(shop, &goal, f)}
}

// Random sessions among awkward products: every page, what can be clicked, every reward and end are the original's, of the
// pages by themselves and of an episode, which takes the same actions but for those that the table of docs/environments.md
// names.
func TestSessionsGolden(t *testing.T) {
	var want seenSessions
	readGolden(t, "sessions.json", &want)
	shops := want.shops(t)
	pages, rewards, refused := map[page]int{}, map[float64]int{}, 0
	for i, session := range want.Sessions {
		e := session.begin(t, shops)
		s := e.session.clone()
		same := func(original seen, at string) {
			shown, cut := s.render()
			require.Equal(t, want.Pages[original.page], shown, at)
			require.Equal(t, strings.TrimRight(want.Pages[original.page], "\n"), e.Observation(), "episode: "+at)
			require.False(t, cut, at)
			names := []string{}
			for _, b := range s.buttons() {
				names = append(names, b.name)
			}
			require.Equal(t, want.Clickables[original.clicks], names, at)
			pages[s.page]++
		}
		same(session.Start, fmt.Sprintf("session %d", i))
		for k, step := range session.Steps {
			at := fmt.Sprintf("session %d, step %d: %q", i, k+1, step.action)
			before := s.page
			took := s.act(step.action)
			canonical, legal := e.Legal(step.action)
			switch {
			case took && legal:
				outcome := e.Step(canonical)
				require.Equal(t, step.reward, outcome.Reward, at)
				require.Equal(t, step.done, outcome.Done, at)
			case took: // a search for blanks, a name that ends in a bracket
				_, argument, _ := parseAction(step.action)
				require.True(t, argument == " " || strings.HasSuffix(argument, "]"), at)
				e.session = s.clone()
				refused++
			case legal: // capitals or blanks where the original wants none
				name, argument, _ := parseAction(step.action)
				require.True(t, name != strings.TrimSpace(strings.ToLower(name)) || strings.Contains(argument, "  ") || step.action[0] == '\n', at)
			}
			same(step.seen, at)
			bought := before != donePage && s.page == donePage
			require.Equal(t, step.done, bought, at)
			require.Equal(t, step.reward, map[bool]float64{true: s.score.Reward}[bought], at)
			if bought {
				rewards[step.reward]++
			}
		}
	}
	for p := searchPage; p <= donePage; p++ {
		require.Greater(t, pages[p], 10, "page %d", p)
	}
	require.Greater(t, len(rewards), 6)
	require.Greater(t, refused, 0)
	t.Logf("pages %v, rewards %v", pages, rewards)
}

// What differs on purpose, by the table of docs/environments.md: after the last action of each session the original shows
// another page.
func TestSessionsThatDiffer(t *testing.T) {
	var want seenSessions
	readGolden(t, "sessions.json", &want)
	shops := want.shops(t)
	require.NotEmpty(t, want.Differs)
	for _, session := range want.Differs {
		e := session.begin(t, shops)
		for k, step := range session.Steps {
			if canonical, ok := e.Legal(step.action); ok {
				e.Step(canonical)
			}
			shown := strings.TrimRight(want.Pages[step.page], "\n")
			if k < len(session.Steps)-1 {
				require.Equal(t, shown, e.Observation(), "%s: %q", session.What, step.action)
			} else {
				require.NotEqual(t, shown, e.Observation(), session.What)
			}
		}
	}
}
