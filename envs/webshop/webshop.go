// Package webshop is a shop of web pages in which a policy buys what an instruction asks
// for: WebShop (arXiv 2207.01206) without a browser, a search engine in Java or a
// tagger. Pages, transitions and rewards are the original's, but for what nobody wants
// of it: searches for reserved letters, pages of results past the end, and price limits and
// an order of goals that differ from process to process.
//
// Products are text from outside. Like every observation they are encoded without special
// tokens, so that none can imitate the system.
package webshop

import (
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "webshop"

func init() { envs.Register(Name, summary, New) }

// WebShop is the environment with its options resolved.
type WebShop struct {
	options Options
	table   *envs.Options
	shop    *Catalogue
	goals   *goalList
	pool    []int // goals by number; nil for all
	held    bool  // some product's goals are for tests
}

const instructions = "Buy the product that the instruction asks for. Search with search[words] on the search page; on the other pages use click[name] and select the options before you buy."

// Name implements envs.Environment.
func (w *WebShop) Name() string { return Name }

// Instructions implements envs.Environment.
func (w *WebShop) Instructions() string { return instructions }

// Actions implements envs.Environment: nil, since every page has its own.
func (w *WebShop) Actions() []string { return nil }

// ActionForm implements envs.FreeForm.
func (w *WebShop) ActionForm() string {
	return "a search or a click, such as search[red shoes] or click[buy now]"
}

// Examples implements envs.Exemplary: a search where it is legal, and a click that undoes one. They are
// the same in every shop.
func (w *WebShop) Examples(episode envs.Episode) []string {
	return envs.LegalOf(episode, "search[red shoes]", "click[back to search]")
}

// MaxActions implements envs.Environment.
func (w *WebShop) MaxActions() int { return w.options.MaxActions }

// MaxActionsPerTurn implements envs.Environment: the next page decides what can be clicked.
func (w *WebShop) MaxActionsPerTurn() int { return 1 }

// Certain implements envs.Certain.
func (*WebShop) Certain() bool { return true }

// Reset implements envs.Environment. The instance draws the goal; the chance is not looked
// at.
func (w *WebShop) Reset(instance, _ draw.Address) envs.Episode {
	if w.pool != nil {
		return w.episode(w.pool[board.Instance(instance, len(w.pool), w.options.Pool).Group])
	}
	return w.episode(board.Instance(instance, 0, 0).Rand().IntN(w.goals.count))
}

// episode begins the episode of a goal.
func (w *WebShop) episode(number int) *episode {
	goal := w.goals.goal(number)
	return &episode{shop: w, number: number, session: newSession(w.shop, &goal, w.options.form)}
}

// number is the number of the k-th goal that is asked for.
func (w *WebShop) number(k int) int {
	if w.pool != nil {
		return w.pool[k]
	}
	return k
}

// count is how many goals are asked for.
func (w *WebShop) count() int {
	if w.pool != nil {
		return len(w.pool)
	}
	return w.goals.count
}

// maxCases is how many goals are cases if there are more.
const maxCases = 64

// Cases implements envs.Environment: all goals, or 64 spread over them.
func (w *WebShop) Cases() []envs.Episode {
	n := min(w.count(), maxCases)
	cases := make([]envs.Episode, n)
	for i := range cases {
		cases[i] = w.episode(w.number(i * w.count() / n))
	}
	return cases
}

// maxExamples is how many searches are examples.
const maxExamples = 8

// examples are searches for kinds of products, the same whatever the goal: queries by
// which the shop's products were found, spread over all.
func (c *Catalogue) makeExamples() []string {
	var queries []string
	for i := range c.Products {
		if q := canonicalText(c.Products[i].Query); q != "" && searchable(q) {
			queries = append(queries, q)
		}
	}
	slices.Sort(queries)
	queries = slices.Compact(queries)
	if len(queries) == 0 {
		queries = []string{"product"}
	}
	n := min(len(queries), maxExamples)
	examples := make([]string, n)
	for i := range examples {
		examples[i] = "search[" + queries[i*len(queries)/n] + "]"
	}
	return examples
}

// searchable says that a search for a text is an action.
func searchable(text string) bool {
	action := "search[" + text + "]"
	name, argument, ok := parseAction(action)
	return ok && name == "search" && argument == text && envs.Writable(action)
}

// Staged implements envs.Staged: an episode searches, opens a product, chooses options and buys.
func (w *WebShop) Staged() {}

// Counters implements envs.Counting.
func (w *WebShop) Counters() []string {
	return []string{"searches", "clicks", "purchases", "cut_pages"}
}

// Count implements envs.Counting. A purchase is a click too. cut_pages are the pages whose
// texts were too long and were shown in part.
func (w *WebShop) Count(actions, states []string) []int {
	var searches, clicks, purchases, cuts int
	for _, action := range actions {
		switch {
		case strings.HasPrefix(action, "search["):
			searches++
		case action == "click[buy now]":
			purchases++
			clicks++
		default:
			clicks++
		}
	}
	for _, key := range states {
		if strings.HasSuffix(key, cutMark) {
			cuts++
		}
	}
	return []int{searches, clicks, purchases, cuts}
}

// canonicalText is a text in lower case, trimmed, with single blanks.
func canonicalText(text string) string {
	if isCanonical(text) {
		return text
	}
	return strings.Join(strings.Fields(lowered(strings.ToValidUTF8(text, "\uFFFD"))), " ")
}

// isCanonical says of most texts that are canonical that they are: of those in ASCII.
func isCanonical(text string) bool {
	last := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c <= ' ' && (c != ' ' || last == ' ') || c >= 0x7f || c >= 'A' && c <= 'Z' {
			return false
		}
		last = c
	}
	return last != ' ' || text == ""
}
