package rewards

import (
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/reward"
)

// The tags of VAGEN's protocol that are read, in a thought.
const (
	observation = "observation"
	prediction  = "prediction"
)

// state is VAGEN's reward for reasoning about the state, without a judge: what stands in the
// tags is read by a fixed grammar (see Relations). A turn that has both tags gets
// format_reward, and weight × the score of each: the observation against the state before
// the turn, the prediction against the state after it.
func state(o *envs.Options) Module {
	var format, weight float64
	var antiTemplate bool
	m := Module{Stage: OfTurn, Tags: []string{observation, prediction}, thinks: true, grids: true}
	o.Number("format_reward", &format, 0.5, 0, 100, "reward of a turn that has both tags")
	o.Number("weight", &weight, 0.5, 0, 100, "what the score of each tag is multiplied by")
	o.Bool("anti_template", &antiTemplate, true, "a text that was frequent in the iteration before and says little that is true scores −0.1")
	o.Int("frequent", &m.Frequent, 3, 1, 64, "how many texts of each tag are frequent: {range}")
	if !antiTemplate {
		m.Frequent = 0
	}
	m.score = byTurn(func(e Episode, past Past) float64 {
		t, l := e.Turns[len(e.Turns)-1], layouts[e.Environment]
		said := Tagged(t.Reply.Thought)
		if len(said) < 2 {
			return 0
		}
		return reward.StateTurn(true, format, weight,
			stateScore(l, said[0], t.Before.Grid, past), stateScore(l, said[1], t.After.Grid, past))
	})
	return m
}

// stateScore compares what a tag says with a state. Kinds that neither has are left out.
func stateScore(l layout, said Said, grid []string, past Past) float64 {
	claims, is := Relations(said.Text), truth(l, grid)
	var f1 []float64
	for _, k := range l.kinds {
		if has(claims, k.name) || has(is, k.name) {
			f1 = append(f1, reward.F1(k.name, claims, is))
		}
	}
	return reward.State(f1, past[said])
}

func has(relations []reward.Relation, object string) bool {
	for _, r := range relations {
		if r.Object == object {
			return true
		}
	}
	return false
}

// Tagged are the observation and the prediction of a thought; nil if one is missing. The
// first of each counts. Blanks are single, so that equal texts are equal.
func Tagged(thought string) []Said {
	var out []Said
	for _, tag := range []string{observation, prediction} {
		_, rest, opened := strings.Cut(thought, "<"+tag+">")
		text, _, closed := strings.Cut(rest, "</"+tag+">")
		if !opened || !closed {
			return nil
		}
		out = append(out, Said{Tag: tag, Text: strings.Join(strings.Fields(text), " ")})
	}
	return out
}

// relation is the grammar of a claim: an object, then a vertical and a horizontal side.
var relation = regexp.MustCompile(`(?i)\b(box|target|goal|hole)(?:\s+is)?(?:\s+at)?\s+(above|below|same)[\s,]+(left|right|same)\b`)

// Relations are the claims of a text, in its order: "box above left", "the goal is below,
// same". Case does not count.
func Relations(text string) []reward.Relation {
	var out []reward.Relation
	for _, m := range relation.FindAllStringSubmatch(text, -1) {
		out = append(out, reward.Relation{
			Object: strings.ToLower(m[1]), Vertical: strings.ToLower(m[2]), Horizontal: strings.ToLower(m[3]),
		})
	}
	return out
}
