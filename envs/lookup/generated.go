package lookup

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// generated are the questions about a generated world.
type generated struct {
	world   *world
	options Options
	splits  []int // places in a path's starts
	// paths are those that begin somewhere in the split: [hops]; none of fewer or more hops than the options'.
	paths [maxHops + 1][]path
}

func newGenerated(w *world, o Options) *generated {
	g := &generated{world: w, options: o, splits: map[string][]int{Train: {0}, Test: {1}, All: {0, 1}}[o.Split]}
	for hops := o.HopsMin; hops <= o.HopsMax; hops++ {
		for _, p := range w.pathsOf(hops) {
			if g.count(p) > 0 {
				g.paths[hops] = append(g.paths[hops], p)
			}
		}
	}
	return g
}

// at draws the number of hops, then a path of so many, then where it begins, then the words: each with equal chances. So
// rare kinds of questions are as frequent as those that many people have.
func (g *generated) at(instance draw.Address) question {
	r := instance.Rand()
	hops := g.options.HopsMin + r.IntN(g.options.HopsMax-g.options.HopsMin+1)
	paths := g.paths[hops]
	p := paths[r.IntN(len(paths))]
	at := r.IntN(g.count(p))
	for _, split := range g.splits {
		if n := len(p.starts[split]); at >= n {
			at -= n
			continue
		}
		return g.question(p.starts[split][at], p.relations, r.IntN(g.world.schema.wordings))
	}
	panic("lookup: a path without a beginning") // newGenerated leaves them out
}

// count is how many beginnings a path has in the split.
func (g *generated) count(p path) int {
	n := 0
	for _, split := range g.splits {
		n += len(p.starts[split])
	}
	return n
}

func (g *generated) question(start int32, relations []int, wording int) question {
	chain, _ := g.world.follow(start, relations)
	last := len(chain) - 1
	answer := g.world.entities[chain[last]]
	q := question{
		text: g.world.ask(start, relations, wording), right: []string{Normalize(answer.name)},
		about: start, asks: answer.kind,
	}
	for _, at := range chain[:last] {
		q.seek = append(q.seek, g.world.entities[at].name)
	}
	return q
}

func (g *generated) cases() []question {
	var out []question
	for _, addr := range board.Cases(g.options.Instances, g.options.Pool) {
		out = append(out, g.at(addr))
	}
	return out
}

func (g *generated) held() bool { return g.world.asks(g.options, 1) }

func (g *generated) answers(q question, r *rand.Rand, n int) []string {
	all := g.world.ofKind[q.asks]
	var out []string
	for _, at := range r.Perm(len(all))[:min(n, len(all))] {
		out = append(out, Normalize(g.world.entities[all[at]].name))
	}
	return out
}

func (g *generated) solves(answer, reward string) bool {
	return slices.ContainsFunc(g.world.entities, func(e entity) bool {
		_, solved := score(reward, answer, []string{Normalize(e.name)})
		return solved
	})
}

// slack is how many tokens two texts may differ in the order of their widths, by what tokenizers merge at their ends.
const slack = 4

// asked is a path in one wording.
type asked struct {
	path    path
	wording int
}

// longest measures each path in each wording with a name that is widest of its kind, and then the widest of these with all
// names that are nearly as wide.
func (g *generated) longest(width func(string) (int, error)) ([]question, error) {
	names, err := g.widestNames(width)
	if err != nil {
		return nil, err
	}
	var all []measured[asked]
	for hops := g.options.HopsMin; hops <= g.options.HopsMax; hops++ {
		for _, p := range g.paths[hops] {
			from := names[g.world.schema.kindOf(g.world.schema.relations[p.relations[0]].from)]
			for wording := range g.world.schema.wordings {
				n, err := width(g.world.ask(from[0], p.relations, wording))
				if err != nil {
					return nil, err
				}
				all = append(all, measured[asked]{asked{p, wording}, n})
			}
		}
	}
	// What stands around a question in a message meets its first word and its last character, which is the same in all: so
	// of those that begin in one way the widest is the widest in every context.
	best := map[string]measured[question]{}
	var begins []string
	for _, a := range widest(all) {
		for _, start := range names[g.world.schema.kindOf(g.world.schema.relations[a.path.relations[0]].from)] {
			q := question{text: g.world.ask(start, a.path.relations, a.wording), right: []string{"?"}, about: start}
			n, err := width(q.text)
			if err != nil {
				return nil, err
			}
			begin, _, _ := strings.Cut(q.text, " ")
			was, known := best[begin]
			if !known {
				begins = append(begins, begin)
			}
			if n > was.width {
				best[begin] = measured[question]{q, n}
			}
		}
	}
	questions := make([]question, len(begins))
	for i, begin := range begins {
		questions[i] = best[begin].of
	}
	return questions, nil
}

// widestNames are the entities of each kind whose names are widest, the widest first: [kinds].
func (g *generated) widestNames(width func(string) (int, error)) ([][]int32, error) {
	out := make([][]int32, len(g.world.ofKind))
	for kind, entities := range g.world.ofKind {
		names := make([]measured[int32], len(entities))
		for i, at := range entities {
			n, err := width("Who is " + g.world.entities[at].name + "?")
			if err != nil {
				return nil, err
			}
			names[i] = measured[int32]{at, n}
		}
		slices.SortStableFunc(names, func(a, b measured[int32]) int { return cmp.Compare(b.width, a.width) })
		out[kind] = widest(names)
	}
	return out, nil
}

// measured is something with its width in tokens.
type measured[T any] struct {
	of    T
	width int
}

// widest are those that may be the widest in another context, in their order.
func widest[T any](all []measured[T]) []T {
	most := 0
	for _, m := range all {
		most = max(most, m.width)
	}
	var out []T
	for _, m := range all {
		if m.width+slack >= most {
			out = append(out, m.of)
		}
	}
	return out
}
