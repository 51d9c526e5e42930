package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// SetParallel is the argument of the update "set-parallel".
type SetParallel struct {
	// Parallel is how many trials run at once from now on.
	Parallel int `json:"parallel"`
}

// DropTrial is the argument of the update "drop-trial".
type DropTrial struct {
	// Trial is the trial's label, or its workflow id.
	Trial string `json:"trial"`
}

// StopEarly is the argument of the update "stop-early".
type StopEarly struct {
	// Running says what happens to the open trials: "finish", which is the default,
	// or "cancel", at their last committed iterations.
	Running string `json:"running,omitempty"`
}

// errSweepNotReady is the answer to a command before the sweep is resolved.
var errSweepNotReady = errors.New("the sweep is not resolved yet: try again in a moment")

// errSweepOver is the answer to a command when nothing can be changed any more.
var errSweepOver = errors.New("the sweep is ending: nothing can be changed any more")

// handle registers the queries and the commands.
func (s *sweeping) handle(ctx workflow.Context) error {
	queries := []command{
		question("status", func(nothing) (SweepStatus, error) {
			status := s.status()
			status.Warnings = append(slices.Clip(status.Warnings), unheard(ctx)...)
			return status, nil
		}, "how many trials there are in which state, and what was decided", ""),
		question("table", s.page, "a page of the table, a line a trial", `{"offset": 0, "limit": 50}`),
	}
	return register(ctx, queries, []command{
		{"add-trials", s.addTrials, s.validMore, "add trials over the sweep's base: {\"grid\": {\"selection.keep\": [0.75]}, \"seeds\": [1, 2]}"},
		update("drop-trial", s.dropTrial, s.validDrop, "take a trial out", `{"trial": "selection.keep=1,seed=2"}`),
		update("set-parallel", func(_ workflow.Context, p SetParallel) (string, error) {
			s.Parallel = p.Parallel
			s.changed++
			return fmt.Sprintf("at most %d trials run at once; those that run go on", p.Parallel), nil
		}, s.validParallel, "how many trials run at once", `{"parallel": 8}`),
		order("report", s.report, s.validReport, "write the sweep's page for people to the store"),
		update("stop-early", s.stopEarly, s.validStopEarly, "begin no more trials, and let those that run finish, or cancel them", `{"running": "finish"}`),
	})
}

// validReport accepts the command also while the sweep ends, because it changes nothing.
func (s *sweeping) validReport(workflow.Context) error {
	if !s.ready {
		return errSweepNotReady
	}
	return nil
}

// changeable returns an error if no command can change the sweep now.
func (s *sweeping) changeable() error {
	switch {
	case !s.ready:
		return errSweepNotReady
	case s.over || s.cancelled:
		return errSweepOver
	}
	return nil
}

func (s *sweeping) validParallel(_ workflow.Context, p SetParallel) error {
	if err := s.changeable(); err != nil {
		return err
	}
	if p.Parallel < 1 || p.Parallel > sweep.MaxParallel {
		return fmt.Errorf("parallel: found %d; allowed: an integer from 1 to %d", p.Parallel, sweep.MaxParallel)
	}
	return nil
}

// validMore checks what can be checked without the environments; the handler's activity
// checks the rest.
func (s *sweeping) validMore(_ workflow.Context, input json.RawMessage) error {
	if err := s.changeable(); err != nil {
		return err
	}
	if s.Closing != "" {
		return fmt.Errorf("no more trials begin (%s)", s.Closing)
	}
	_, err := sweep.More(s.definition, s.list(), input, spec.Known{})
	return err
}

func (s *sweeping) list() []sweep.Trial {
	out := make([]sweep.Trial, len(s.trials))
	for i, t := range s.trials {
		out[i] = t.of
	}
	return out
}

func (s *sweeping) addTrials(ctx workflow.Context, input json.RawMessage) (string, error) {
	// The main loop may wait for this call alone, also if it fails.
	defer func() { s.changed++ }()
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	// Two calls at once would each extend the same trials.
	if err := s.adding.Lock(ctx); err != nil {
		return "", err
	}
	defer s.adding.Unlock()
	before := len(s.trials)
	r, err := steps.ExtendSweep.Do(s.onHost(ctx, 0), "add trials", activities.ExtendSweepInput{ID: s.id, Sweep: s.Written, Input: input})
	if err != nil {
		return "", err
	}
	s.Written = r.Sweep
	if err := s.readTrials(ctx); err != nil {
		return "", err
	}
	if s.Closing != "" { // meanwhile
		s.close(s.Closing, false)
	}
	s.newPoints = true
	return fmt.Sprintf("%d trials were added; there are %d", len(s.trials)-before, len(s.trials)), nil
}

// named is the trial of a label or a workflow id.
func (s *sweeping) named(name string) *trial {
	if t := s.find(name); t != nil {
		return t
	}
	return s.find(strings.TrimPrefix(name, sweep.ID(s.id, "")))
}

func (s *sweeping) validDrop(_ workflow.Context, d DropTrial) error {
	if err := s.changeable(); err != nil {
		return err
	}
	t := s.named(d.Trial)
	switch {
	case t == nil:
		return fmt.Errorf("there is no trial %q: query the table for the labels", d.Trial)
	case t.State == sweep.Dropped || t.Final == sweep.Dropped:
		return fmt.Errorf("trial %q is dropped already", t.of.Label)
	}
	return nil
}

func (s *sweeping) dropTrial(_ workflow.Context, d DropTrial) (string, error) {
	t := s.named(d.Trial)
	if t == nil {
		return "", temporal.NewNonRetryableApplicationError("there is no trial "+d.Trial, activities.KindNotFound, nil)
	}
	s.changed++
	switch {
	case t.State == sweep.Pending:
		t.State, t.Summarized = sweep.Dropped, true
		s.newPoints = true
		return "it will not begin", nil
	case t.State.Final():
		t.State = sweep.Dropped
		return "it counts in no setting's mean any more", nil
	}
	t.Final = sweep.Dropped
	s.cancel(t)
	return "it ends at its last committed iteration, and counts in no setting's mean", nil
}

func (s *sweeping) validStopEarly(_ workflow.Context, e StopEarly) error {
	if err := s.changeable(); err != nil {
		return err
	}
	if e.Running != "" && e.Running != "finish" && e.Running != "cancel" {
		return fmt.Errorf("running: found %q; allowed: \"finish\" or \"cancel\"", e.Running)
	}
	return nil
}

func (s *sweeping) stopEarly(_ workflow.Context, e StopEarly) (string, error) {
	s.close("stopped early", e.Running == "cancel")
	return fmt.Sprintf("no more trials begin; %d are open", len(s.open)), nil
}
