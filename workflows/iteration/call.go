package iteration

import (
	"strings"

	"github.com/reprise-rl/reprise/activities/steps"
)

// Call is a step that may run now, with its input. The caller passes its result to
// [Iteration.Apply].
type Call struct {
	steps.Routing
	// Key distinguishes the call from all others of the iteration: the step, and its
	// number.
	Key string
	// Input is the step's input, of the type that package steps gives it.
	Input any
	// Summary is what the Web UI shows of the activity, Phase what the run's status
	// shows meanwhile; "" leaves the phase as it is.
	Summary, Phase string
	// Completes says that the step completes what the one before it began: a run does
	// not pause between the two.
	Completes bool
	// Beside says that the call needs no version in memory: another worker, or a host, does it while the
	// session does something else.
	Beside bool
	// Timing is the step's name in telemetry, as in State.Timings.
	Timing string
	// NewResult makes a pointer to the step's result, to be decoded into.
	NewResult func() any

	apply func(result any)
}

// call makes a call of a step. apply takes the result into the iteration's state.
func call[In, Out any](step steps.Activity[In, Out], key string, in In, apply func(Out)) Call {
	return Call{
		Routing: step.Routing, Key: step.Name + " " + key, Input: in, Timing: strings.ToLower(step.Name),
		NewResult: func() any { return new(Out) },
		apply:     func(result any) { apply(*result.(*Out)) },
	}
}

// shown adds what people see of a call.
func (c Call) shown(phase, summary string) Call {
	c.Phase, c.Summary = phase, summary
	return c
}

// timed names a call in telemetry.
func (c Call) timed(name string) Call {
	c.Timing = name
	return c
}

// completing marks a call that completes what the one before it began.
func (c Call) completing() Call {
	c.Completes = true
	return c
}
