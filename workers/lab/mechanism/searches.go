package mechanism

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/search"
)

// searchesALake is how often each search is made in each lake.
const searchesALake = 4000

// Search is a way to roll out of which only some rows are kept.
type Search struct {
	Name, Setting string
	// keep rolls out one search and returns the rows that are kept.
	keep func(*grown) ([]episode, error)
}

// Searches are all ways to search, in the order of the table.
func Searches() []Search {
	return []Search{
		{"plain rollout", "", bestOf(1)},
		{"best of n", "n 2", bestOf(2)},
		{"best of n", "n 4", bestOf(4)},
		{"best of n", "n 8", bestOf(8)},
		{"greedy: TSR's code", "M 4", ahead(4, 1)},
		{"beam", "M 2, B 2, both kept", beam(2, 2)},
		{"beam", "M 4, B 2, both kept", beam(4, 2)},
		{"lookahead", "M 2, D 2", ahead(2, 2)},
		{"lookahead", "M 4, D 2", ahead(4, 2)},
		{"extremes: TSR's code", "8 of 16", extremes(16, 0.5)},
	}
}

// Gain is what a search's kept rows have above a plain rollout's. All are means of a kept row.
type Gain struct {
	Search Search
	// Return is the return, Plain the policy's own expected return.
	Return, Plain float64
	// Answers is the part of the gain that better answers give: the sum of the true advantages
	// of what the policy did. The rest is luck, the slips that were avoided by choosing those
	// rows in which the ice was kind.
	Answers float64
	// Tokens is the number of sampled tokens, those that were dropped included, for each that a
	// plain rollout samples.
	Tokens float64
}

// Luck is the part of the gain that the policy cannot learn.
func (g Gain) Luck() float64 { return g.Return - g.Plain - g.Answers }

// MeasureSearches gives the gains of all searches, in their order.
func MeasureSearches(ctx context.Context) ([]Gain, error) {
	lakes, err := newLakes()
	if err != nil {
		return nil, err
	}
	var gains []Gain
	plainTokens := 0.0 // of a row of the first search, the plain one
	for _, s := range Searches() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := Gain{Search: s}
		rows, tokens := 0, 0
		for of, l := range lakes {
			for i := range searchesALake {
				tree := &grown{lake: l, nodes: map[string]*node{}, address: draw.Address{Seed: seed, Iteration: int64(i), Group: int64(of)}}
				tree.root.of, tree.root.at = of, l.start
				kept, err := s.keep(tree)
				if err != nil {
					return nil, fmt.Errorf("%s (%s), lake %d, search %d: %w", s.Name, s.Setting, of, i, err)
				}
				for _, e := range kept {
					g.Return += credit.Returns([][]float64{e.rewards})[0]
					g.Plain += l.values[0][l.start]
					for _, d := range e.decisions {
						g.Answers += l.Advantage(d.Turn, d.Cell, d.Action)
					}
				}
				rows += len(kept)
				tokens += tree.tokens
			}
		}
		n := float64(rows)
		if plainTokens == 0 {
			plainTokens = float64(tokens) / n
		}
		g.Return, g.Plain, g.Answers, g.Tokens = g.Return/n, g.Plain/n, g.Answers/n, float64(tokens)/n/plainTokens
		gains = append(gains, g)
	}
	return gains, nil
}

// grown is a tree of turns, of which a search plays those that it looks at. A turn's draws
// come from its path: it is the same whenever it is looked at.
type grown struct {
	lake    *Lake
	root    episode
	nodes   map[string]*node
	address draw.Address
	// tokens counts the sampled tokens.
	tokens int
}

// node are the candidates after a prefix.
type node struct {
	children []episode
	rewards  []float64
}

// play plays one turn of an episode, or all that are left.
func (g *grown) play(e *episode, r *rand.Rand, whole bool) {
	from := len(e.spans)
	if e.turn(g.lake, r); whole {
		e.finish(g.lake, r)
	}
	for _, span := range e.spans[from:] {
		g.tokens += span.To - span.From
	}
}

// rand draws for a path.
func (g *grown) rand(path string) *rand.Rand {
	g.address.Purpose = draw.Purpose("sample/fork/" + path)
	return g.address.Rand()
}

// after plays m candidates after a prefix and returns their rewards.
func (g *grown) after(m int) search.Rewards {
	return func(prefix []int) []float64 {
		e := g.at(prefix)
		if e.over() {
			return nil
		}
		key := fmt.Sprint(prefix)
		n, ok := g.nodes[key]
		if !ok {
			n = &node{}
			for candidate := range m {
				child := e.first(len(e.rewards))
				g.play(&child, g.rand(fmt.Sprint(key, candidate)), false)
				n.children, n.rewards = append(n.children, child), append(n.rewards, child.rewards[len(child.rewards)-1])
			}
			g.nodes[key] = n
		}
		return n.rewards
	}
}

// at is the episode of a prefix that has been played.
func (g *grown) at(prefix []int) *episode {
	if len(prefix) == 0 {
		return &g.root
	}
	last := len(prefix) - 1
	return &g.nodes[fmt.Sprint(prefix[:last])].children[prefix[last]]
}

// whole plays n trajectories.
func (g *grown) whole(n int) (rows []episode, returns []float64) {
	for i := range n {
		e := g.root.first(0)
		g.play(&e, g.rand(fmt.Sprint(i)), true)
		rows, returns = append(rows, e), append(returns, credit.Returns([][]float64{e.rewards})[0])
	}
	return rows, returns
}

func bestOf(n int) func(*grown) ([]episode, error) {
	return func(g *grown) ([]episode, error) {
		rows, returns := g.whole(n)
		best, err := search.BestOfN(returns)
		return rows[best : best+1], err
	}
}

func extremes(n int, share float64) func(*grown) ([]episode, error) {
	return func(g *grown) ([]episode, error) {
		rows, returns := g.whole(n)
		at, err := search.Extremes(returns, share)
		var kept []episode
		for _, i := range at {
			kept = append(kept, rows[i])
		}
		return kept, err
	}
}

func ahead(m, depth int) func(*grown) ([]episode, error) {
	return func(g *grown) ([]episode, error) {
		taken, _, err := search.Lookahead(g.after(m), depth, Turns)
		if err != nil {
			return nil, err
		}
		return []episode{*g.at(taken.Path)}, nil
	}
}

func beam(m, width int) func(*grown) ([]episode, error) {
	return func(g *grown) ([]episode, error) {
		trace, err := search.Beam(g.after(m), width, Turns)
		if err != nil {
			return nil, err
		}
		var kept []episode
		for _, prefix := range trace[len(trace)-1] {
			kept = append(kept, *g.at(prefix.Path))
		}
		return kept, nil
	}
}

// SearchMarkdown is the table of the gains.
func SearchMarkdown(gains []Gain) string {
	var b strings.Builder
	b.WriteString("| search | with | return | above plain | by answers | by luck | tokens a kept row |\n|---|---|---|---|---|---|---|\n")
	for _, g := range gains {
		fmt.Fprintf(&b, "| %s | %s | %.2f | %s | %s | %s | %.1f |\n",
			g.Search.Name, g.Search.Setting, g.Return, signed(g.Return-g.Plain), signed(g.Answers), signed(g.Luck()), g.Tokens)
	}
	return b.String()
}

// signed writes a difference with its sign, and 0 without one.
func signed(x float64) string {
	return fmt.Sprintf("%+.2f", math.Round(100*x)/100+0) // -0 + 0 is 0
}
