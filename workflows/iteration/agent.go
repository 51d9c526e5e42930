package iteration

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
)

// Recorded are the turns of an iteration that is computed again: agents are not asked for what is in them.
type Recorded struct {
	Turns       []store.TurnRefs
	Evaluations []store.EvaluationRef
}

// of are the turns of an evaluation of a version; nil if there is none.
func (r Recorded) of(version int, suite string) []store.TurnRefs {
	for _, e := range r.Evaluations {
		if e.Version == version && e.Suite == suite {
			return e.Turns
		}
	}
	return nil
}

// roundOf are the turns of a round.
func roundOf(turns []store.TurnRefs, round int) (out []store.TurnRefs) {
	for _, t := range turns {
		if t.Round == round {
			out = append(out, t)
		}
	}
	return out
}

// converse takes calls of agents and answers them, until all episodes are over; then it makes turns of them.
func (r rolling) converse() []Call {
	p := r.progress
	key := fmt.Sprintf("%s · calls %d", r.label, len(p.Taken)+1)
	switch {
	case p.Running != nil:
		return r.answer(key)
	case len(p.Taken) > 0 && !p.Playing:
		return []Call{call(steps.Arrange, r.label, activities.ArrangeInput{
			Run: r.Run, Branch: r.Branch, Rollout: r.what, Taken: p.Taken,
		}, func(out activities.ArrangeResult) {
			r.Record(r.timing+"arrange", out.Telemetry)
			p.Turns, p.Taken, p.Waits, p.Alive = out.Turns, nil, 0, 0
			r.end(true)
		}).shown(r.label+" · arrange", r.label+" · turns of the calls").timed(r.timing + "arrange").completing()}
	}
	after := ""
	if p.Waits > 0 {
		after = fmt.Sprintf(" · waited %d times", p.Waits)
	}
	return []Call{call(steps.TakeCalls, key+after, activities.TakeCallsInput{
		Run: r.Run, Branch: r.Branch, Rollout: r.what, Settings: r.settings, Taken: p.Taken, Recorded: r.recorded,
	}, func(out activities.TakeCallsResult) {
		if r.begun != nil {
			r.begun()
		}
		r.Record(r.timing+"agent", out.Telemetry)
		if out.Table == nil {
			p.Waits++
			return
		}
		p.Waits, p.Playing = 0, out.Playing > 0
		if taken := (activities.Taken{Calls: *out.Table}); out.Calls > 0 {
			p.Running = &taken
		} else {
			p.Taken = append(p.Taken, taken)
		}
	}).shown(key+" · agent", key+" · agents"+after).timed(r.timing + "agent")}
}

// answer samples the calls that were taken, or a piece of them.
func (r rolling) answer(key string) []Call {
	p := r.progress
	piece := pieceAfter(p.Pieces)
	return []Call{call(steps.Generate, key+piece, activities.GenerateInput{
		Policy: r.policy, Rollout: r.what, Settings: r.settings, Turn: len(p.Taken) + 1, Pieces: p.Pieces, Calls: &p.Running.Calls,
	}, func(out activities.GenerateResult) {
		r.Record(r.timing+"generate", out.Telemetry)
		if out.More {
			p.Pieces = append(p.Pieces, out.Table)
			return
		}
		p.Running.Samples = &out.Table
		p.Taken, p.Running, p.Pieces = append(p.Taken, *p.Running), nil, nil
	}).shown(key+" · generate", fmt.Sprintf("%s · %d rows%s", key, r.rows, piece)).timed(r.timing + "generate")}
}
