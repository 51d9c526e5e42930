package iteration

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// An update may have several passes: a pass updates one turn, and the next begins with the policy
// that it made. Between two passes
//
//	Score   scores the selected rows again, by the policy of now
//	Credit  compares the scores before and after, and makes the next pass's batch
//
// so each pass is an update like any other: of a state, by a batch and the settings.

// Pass is a pass that is done.
type Pass struct {
	store.Pass
	Counts  store.UpdateCounts `json:"counts"`
	Metrics activities.Metrics `json:"metrics"`
}

// Passing is how far the preparation of a pass after the first is.
type Passing struct {
	Scoring     []store.Ref `json:"scoring,omitempty"` // pieces of Score, until it is done
	Scores      *store.Ref  `json:"scores,omitempty"`
	Batch       *store.Ref  `json:"batch,omitempty"`
	Corrections *store.Ref  `json:"corrections,omitempty"`
}

// passOn is the turn of the running pass; 0 if the iteration has one update.
func (it *Iteration) passOn() int {
	if it.Credited == nil || len(it.Passes) >= len(it.Credited.Turns) {
		return 0
	}
	return it.Credited.Turns[len(it.Passes)]
}

// ofPass names a pass to people; "" for the one update of an iteration.
func (it *Iteration) ofPass(turn int) string {
	if turn == 0 {
		return ""
	}
	return fmt.Sprintf(" · turn %d", turn)
}

// passed is the version that the running pass begins with.
func (it *Iteration) passed() activities.Version {
	v := it.before()
	if n := len(it.Passes); n > 0 {
		v.State = it.Passes[n-1].State
	}
	return v
}

// batch is that of the running pass, or of the one update.
func (s *State) batch() *store.Ref {
	if s.Passing != nil {
		return s.Passing.Batch
	}
	return s.Credited.Batch
}

// beforePass is what prepares the running pass; nil if it can begin.
func (it *Iteration) beforePass() []Call {
	switch p := it.Passing; {
	case p == nil || p.Batch != nil:
		return nil
	case p.Scores == nil:
		return it.scoreAgain()
	default:
		return it.correct()
	}
}

// scoreAgain scores the selected rows by the policy that the pass before has made.
func (it *Iteration) scoreAgain() []Call {
	piece, of := pieceAfter(it.Passing.Scoring), it.ofPass(it.passOn())
	return []Call{call(steps.Score, of+piece, activities.ScoreInput{
		Policy: it.passed(), Iteration: it.Number, Settings: it.Settings, Trajectories: it.Selected.Trajectories, Pieces: it.Passing.Scoring,
		Reference: it.tables().Ref(activities.ReferenceTable),
	}, func(out activities.ScoreResult) {
		it.Record("score", out.Telemetry)
		if out.More {
			it.Passing.Scoring = append(it.Passing.Scoring, out.Scores)
			return
		}
		it.Passing.Scores, it.Passing.Scoring = &out.Scores, nil
	}).shown(it.label("score"), it.label(fmt.Sprintf("log-probs before the pass%s%s", of, piece)))}
}

// correct makes the running pass's batch from what the pass before has changed.
func (it *Iteration) correct() []Call {
	last, of := it.Passes[len(it.Passes)-1], it.ofPass(it.passOn())
	before := it.scores()
	if last.Scores != nil {
		before = last.Scores
	}
	in := it.creditInput().Of(*it.Selected, it.Shared)
	in.Pass = &activities.CreditPass{
		Turn: it.passOn(), Updated: last.Turn, Before: *before, After: *it.Passing.Scores, Corrections: last.Corrections,
	}
	return []Call{call(steps.Credit, of, in, func(out activities.CreditResult) {
		it.Record("credit", out.Telemetry)
		it.add(&out.Metrics)
		it.Passing.Batch, it.Passing.Corrections = out.Batch, out.Corrections
	}).shown(it.label("credit"), it.label("advantages"+of))}
}

// lastPass takes the result of a pass, and reports whether it was the last one. Then the result
// becomes that of the whole update.
func (it *Iteration) lastPass(out *activities.UpdateResult) bool {
	done := Pass{Pass: store.Pass{Turn: it.passOn(), Batch: *it.batch(), State: out.State}, Counts: out.Counts, Metrics: out.Metrics}
	if p := it.Passing; p != nil {
		done.Scores, done.Corrections = p.Scores, p.Corrections
	}
	it.Passes, it.Passing = append(it.Passes, done), nil
	if it.passOn() > 0 {
		it.Passing = &Passing{}
		return false
	}
	out.Counts, out.Metrics = together(it.Passes)
	for i := range it.Passes {
		it.Passes[i].Metrics = nil // the iteration has them
	}
	return true
}

// together are the counts and metrics of an update from those of its passes: sums of what is
// counted, the largest ratio, and the means of the rest.
func together(passes []Pass) (store.UpdateCounts, activities.Metrics) {
	counts, metrics := store.UpdateCounts{Skipped: true}, activities.Metrics{}
	for _, p := range passes {
		c := p.Counts
		counts.Skipped = counts.Skipped && c.Skipped
		counts.SkippedTotal += c.SkippedTotal
		counts.Steps += c.Steps
		counts.Rows = max(counts.Rows, c.Rows)
		counts.Tokens += c.Tokens
		counts.MicroBatches += c.MicroBatches
	}
	for _, name := range slices.Sorted(maps.Keys(passes[0].Metrics)) {
		sum, most := 0.0, math.Inf(-1)
		for _, p := range passes {
			v := float64(p.Metrics[name])
			sum, most = sum+v, math.Max(most, v)
		}
		switch name {
		case "actor/ratio_max", "actor/trajectory_kl":
			metrics[name] = canon.Float(most)
		case "actor/skipped", "actor/steps_left_out":
			metrics[name] = canon.Float(sum)
		default:
			metrics[name] = canon.Float(sum / float64(len(passes)))
		}
	}
	return counts, metrics
}

// recorded are the passes as the manifest has them; nil if the iteration has one update.
func (it *Iteration) recorded() []store.Pass {
	var out []store.Pass
	for _, p := range it.Passes {
		out = append(out, p.Pass)
	}
	return out
}

// Made is what a worker must apply to the version before the iteration to continue it: the passes
// that are done, or the one update if it is; and of what it may hold a part, the update or the
// pass that is on the way.
func (s *State) Made() (passed []activities.PendingUpdate, pending, updating *activities.PendingUpdate) {
	for _, p := range s.Passes {
		passed = append(passed, activities.PendingUpdate{Batch: p.Batch, Settings: s.Settings, State: p.State})
	}
	if s.Updated != nil && s.Credited != nil && s.Credited.Batch != nil && len(passed) == 0 {
		pending = &activities.PendingUpdate{Batch: *s.Credited.Batch, Settings: s.Settings, State: s.Updated.State}
	}
	if s.Updating != nil {
		updating = &activities.PendingUpdate{Batch: *s.batch(), Settings: s.Settings}
	}
	return passed, pending, updating
}
