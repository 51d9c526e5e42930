package sweep

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

// purpose marks the streams of random settings; a field's path is added, so that
// what one field draws does not depend on which others there are.
const purpose draw.Purpose = "sweep"

// again is how often a setting that was drawn before is drawn again.
const again = 100

// random draws settings.
type random struct {
	draws int
	seed  uint64
	over  []ranged
}

// ranged is how a field's value is drawn.
type ranged struct {
	path      string
	kind      string
	low, high float64
	choice    []json.RawMessage
}

const rangeAllowed = `one of {"uniform": [low, high]}, {"log_uniform": [low, high]}, {"int": [low, high]}, {"choice": [value, …]}`

func (r *reader) random(n strict.Node) *random {
	if n.Kind() != strict.Object {
		r.add("random", found(n), "an object with the keys draws, seed, over", `{"draws": 20, "over": {"update.learning_rate": {"log_uniform": [1e-5, 1e-3]}}}`)
		return &random{}
	}
	out := &random{}
	over := false
	for _, m := range n.Members() {
		switch m.Key {
		case "draws":
			out.draws = r.integer("random.draws", m.Value, 1, MaxTrials)
		case "seed":
			out.seed = uint64(r.integer("random.seed", m.Value, 0, maxSeed))
		case "over":
			over = true
			out.over = r.over(m.Value)
		default:
			r.unknown("random", m.Key, []string{"draws", "seed", "over"})
		}
	}
	if out.draws == 0 {
		r.add("random.draws", "nothing", fmt.Sprintf("an integer from 1 to %d", MaxTrials), "")
	}
	if !over {
		r.add("random.over", "nothing", "an object of fields and how each is drawn", "")
	}
	return out
}

func (r *reader) over(n strict.Node) []ranged {
	m := n.Members()
	if len(m) == 0 {
		r.add("random.over", found(n), "an object of fields and how each is drawn", `{"update.learning_rate": {"log_uniform": [1e-5, 1e-3]}}`)
		return nil
	}
	var out []ranged
	var paths []string
	for _, m := range m {
		at := within("random.over", m.Key)
		if !r.path(at, m.Key) {
			continue
		}
		how := m.Value.Members()
		if len(how) != 1 {
			r.add(at, found(m.Value), rangeAllowed, "")
			continue
		}
		g := ranged{path: m.Key, kind: how[0].Key}
		if r.ranged(within(at, g.kind), &g, how[0].Value) {
			out, paths = append(out, g), append(paths, m.Key)
		}
	}
	r.apart("random.over", paths)
	return out
}

// ranged reads the bounds, or the choice.
func (r *reader) ranged(at string, g *ranged, n strict.Node) bool {
	list := n.Items()
	before := len(r.problems)
	switch g.kind {
	case "choice":
		if len(list) == 0 {
			r.add(at, found(n), "an array of at least one value", "")
			return false
		}
		for _, v := range list {
			g.choice = append(g.choice, canonical(v.Raw()))
		}
		return true
	case "uniform", "log_uniform", "int":
	default:
		r.add(at, strict.Quote(g.kind), rangeAllowed, strict.DidYouMean(g.kind, []string{"uniform", "log_uniform", "int", "choice"}))
		return false
	}
	if len(list) != 2 {
		r.add(at, found(n), "two numbers, the lower first", "")
		return false
	}
	if g.kind == "int" {
		g.low = float64(r.integer(at+"[0]", list[0], -maxSeed, maxSeed))
		g.high = float64(r.integer(at+"[1]", list[1], -maxSeed, maxSeed))
	} else {
		g.low = r.number(at+"[0]", list[0])
		g.high = r.number(at+"[1]", list[1])
	}
	if len(r.problems) > before {
		return false
	}
	if !(g.low < g.high) || g.kind == "log_uniform" && g.low <= 0 || math.IsInf(g.high-g.low, 0) {
		allowed := "two numbers, the lower first"
		if g.kind == "log_uniform" {
			allowed += ", both above 0"
		}
		r.add(at, string(canonical(n.Raw())), allowed, "")
		return false
	}
	return true
}

// settings draws them; each draw has an address of its own, so that more draws
// leave the first ones as they were. A setting that came before is drawn again.
func (v *random) settings(r *reader) []setting {
	var out []setting
	seen := map[string]bool{}
	for i := range v.draws {
		var s setting
		for try := 0; ; try++ {
			s = v.draw(i, try)
			if s.label = labelOf(s.changes); !seen[s.label] {
				break
			}
			if try == again {
				r.add("random.draws", strconv.Itoa(v.draws), fmt.Sprintf("as many as there are different settings: %d were found", len(out)), "fewer draws, or wider ranges")
				return nil
			}
		}
		seen[s.label] = true
		out = append(out, s)
	}
	return out
}

func (v *random) draw(i, try int) setting {
	var s setting
	for _, g := range v.over {
		a := draw.Address{Seed: v.seed, Purpose: purpose.With(draw.Purpose(g.path)), Group: int64(i), Step: int64(try)}
		s.changes = append(s.changes, change{g.path, g.value(a)})
	}
	return s
}

// value draws a field's value. Numbers keep six digits: a label has them all.
func (g ranged) value(a draw.Address) json.RawMessage {
	rand := a.Rand()
	switch g.kind {
	case "choice":
		return g.choice[rand.IntN(len(g.choice))]
	case "int":
		n := int64(g.low) + rand.Int64N(int64(g.high)-int64(g.low)+1)
		return json.RawMessage(strconv.FormatInt(n, 10))
	case "log_uniform":
		low, high := math.Log(g.low), math.Log(g.high)
		return round(math.Exp(low+float64(rand.Float64()*(high-low))), g.low, g.high)
	}
	return round(g.low+float64(rand.Float64()*(g.high-g.low)), g.low, g.high)
}
