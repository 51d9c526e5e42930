package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// execution is one run of a workflow.
type execution struct{ id, run string }

// script makes something happen to a run.
type script struct {
	name string
	// play makes it happen and returns the runs whose histories are recorded.
	play func(context.Context, *recorder) ([]execution, error)
}

// scripts are all of them.
var scripts = []script{
	{"whole", whole},
	{"killed", killed},
	{"preempted", preempted},
	{"restarted", restarted},
	{"commanded", commanded},
	{"continued", continued},
	{"cancelled", cancelled},
	{"refused", refused},
	{"evaluate", evaluate},
	{"swept", swept},
	{"returned", returned},
	{"shared", shared},
	{"beside", beside},
	{"passes", passes},
	{"lagging", lagging},
}

func (r *recorder) train(ctx context.Context, id string) (client.WorkflowRun, error) {
	body, err := presets.Read("smoke")
	if err != nil {
		return nil, err
	}
	return r.start(ctx, id, "Train", json.RawMessage(body))
}

func (r *recorder) start(ctx context.Context, id, kind string, argument any) (client.WorkflowRun, error) {
	return r.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: activities.WorkflowQueue}, kind, argument)
}

// until waits for a status.
func (r *recorder) until(ctx context.Context, id string, is func(workflows.Status) bool) error {
	last := "nothing"
	for {
		st, err := watch.Status(ctx, r.Client, id)
		switch {
		case err == nil && is(st):
			return nil
		case err == nil:
			last = st.Phase
		case ctx.Err() == nil:
			last = err.Error()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("run %s did not get there, its status is %q: %w", id, last, ctx.Err())
		}
	}
}

func (r *recorder) update(ctx context.Context, id, name string, arguments ...any) error {
	h, err := r.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: arguments, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	return h.Get(ctx, nil)
}

func just(run client.WorkflowRun) []execution { return []execution{{run.GetID(), run.GetRunID()}} }

// whole is a run that nothing happens to.
func whole(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "whole")
	if err != nil {
		return nil, err
	}
	return just(run), run.Get(ctx, nil)
}

// killed loses its device when the snapshot of iteration 1 is written and
// nobody knows: the update before it is applied again elsewhere.
func killed(ctx context.Context, r *recorder) ([]execution, error) {
	return r.loses(ctx, "killed", "Snapshot/written/1", nil)
}

// beside loses its device in the first samples of iteration 1, beside the commit of iteration 0.
func beside(ctx context.Context, r *recorder) ([]execution, error) {
	return r.loses(ctx, "beside", "Generate/begin/3", nil)
}

// passes loses its device between two passes of the second update.
func passes(ctx context.Context, r *recorder) ([]execution, error) {
	return r.loses(ctx, "passes", "Score#1/begin/2", map[string]any{
		"environment": map[string]any{"name": "frozenlake", "options": map[string]any{"size": 2, "instances": 8, "max_actions": 4, "max_actions_per_turn": 1}},
		"rollout":     map[string]any{"turns": 3},
		"credit":      map[string]any{"algorithm": "seeupo"},
		"update":      map[string]any{"passes": map[string]any{"order": "turns_reversed"}},
		"evaluation":  map[string]any{"every": 0},
	})
}

// loses is a run whose device worker is killed at a place, and that another one continues: the
// smallest preset with changed fields.
func (r *recorder) loses(ctx context.Context, name, place string, change map[string]any) ([]execution, error) {
	if _, err := r.startWorker(nil, "--roles", "workflow,host"); err != nil {
		return nil, err
	}
	victim, err := r.startWorker([]string{faults.Env + "=" + place}, "--roles", "device")
	if err != nil {
		return nil, err
	}
	body, err := presets.With("smoke", change)
	if err != nil {
		return nil, err
	}
	run, err := r.start(ctx, name, "Train", json.RawMessage(body))
	if err != nil {
		return nil, err
	}
	if err := victim.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		return nil, fmt.Errorf("the device worker was to be killed: %w", err)
	}
	if _, err := r.startWorker(nil, "--roles", "device"); err != nil {
		return nil, err
	}
	return just(run), lost(ctx, run)
}

// lost waits for a run that must have lost a device.
func lost(ctx context.Context, run client.WorkflowRun) error {
	var result workflows.TrainResult
	if err := run.Get(ctx, &result); err != nil {
		return err
	}
	if result.LostDevices == 0 {
		return errors.New("no device was lost")
	}
	return nil
}

// lagging has another worker make the next rollout beside the update, in which the run's own worker is
// killed.
func lagging(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil, "--roles", "workflow,host"); err != nil {
		return nil, err
	}
	victim, err := r.startWorker([]string{faults.Env + "=Publish/stall:3000/1,Update/inside/2"}, "--roles", "device")
	if err != nil {
		return nil, err
	}
	body, err := presets.With("smoke", map[string]any{
		"iterations": 4, "evaluation": map[string]any{"every": 0},
		"rollout": map[string]any{"pass_rows": 2, "block_rows": 4, "workers": 2, "lag": 1}, "update": map[string]any{"mismatch": map[string]any{"regime": spec.Decoupled}},
	})
	if err != nil {
		return nil, err
	}
	run, err := r.start(ctx, "lagging", "Train", json.RawMessage(body))
	if err != nil {
		return nil, err
	}
	if err := r.until(ctx, "lagging", func(st workflows.Status) bool { return strings.HasPrefix(st.Phase, "iteration") }); err != nil {
		return nil, err
	}
	if _, err := r.startWorker(nil, "--roles", "device"); err != nil {
		return nil, err
	}
	if err := victim.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		return nil, fmt.Errorf("the device worker was to be killed: %w", err)
	}
	return just(run), lost(ctx, run)
}

// restarted has the process that computes killed during iteration 1: its worker says so, and starts another one.
func restarted(ctx context.Context, r *recorder) ([]execution, error) {
	worker, err := r.startWorker([]string{faults.Env + "=Generate#1/stall:500/1"})
	if err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "restarted")
	if err != nil {
		return nil, err
	}
	if err := r.until(ctx, "restarted", func(st workflows.Status) bool { return st.Iteration >= 1 }); err != nil {
		return nil, err
	}
	computes, err := crew.Computes(worker.Process.Pid)
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(computes, syscall.SIGKILL); err != nil {
		return nil, err
	}
	return just(run), lost(ctx, run)
}

// preempted has its device worker terminated during iteration 1.
func preempted(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil, "--roles", "workflow,host"); err != nil {
		return nil, err
	}
	victim, err := r.startWorker(nil, "--roles", "device")
	if err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "preempted")
	if err != nil {
		return nil, err
	}
	if err := r.until(ctx, "preempted", func(st workflows.Status) bool { return st.Iteration >= 1 }); err != nil {
		return nil, err
	}
	if err := victim.Process.Signal(syscall.SIGTERM); err != nil {
		return nil, err
	}
	if _, err := r.startWorker(nil, "--roles", "device"); err != nil {
		return nil, err
	}
	return just(run), run.Get(ctx, nil)
}

// commanded is paused before its first commit, gets another learning rate, resumes and
// ends one iteration early.
func commanded(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "commanded")
	if err != nil {
		return nil, err
	}
	// Until the spec is resolved it is refused.
	for err := r.update(ctx, "commanded", "pause"); err != nil; err = r.update(ctx, "commanded", "pause") {
		if ctx.Err() != nil {
			return nil, err
		}
	}
	if err := r.until(ctx, "commanded", func(st workflows.Status) bool { return st.Phase == "paused" }); err != nil {
		return nil, err
	}
	rate := spec.Change{Path: "update.learning_rate", Value: json.RawMessage("0.0001")}
	if err := r.update(ctx, "commanded", "change-knob", rate); err != nil {
		return nil, err
	}
	if err := r.update(ctx, "commanded", "stop-after", workflows.StopAfter{Iteration: 1}); err != nil {
		return nil, err
	}
	if err := r.update(ctx, "commanded", "stop-after", workflows.StopAfter{Iteration: 99}); err == nil {
		return nil, errors.New("a stop after the end was accepted")
	}
	if err := r.update(ctx, "commanded", "resume"); err != nil {
		return nil, err
	}
	return just(run), run.Get(ctx, nil)
}

// continued continues as new after every iteration.
func continued(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil, "--continue-as-new-after", "1"); err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "continued")
	if err != nil {
		return nil, err
	}
	runs := just(run)
	if err := run.Get(ctx, nil); err != nil {
		return nil, err
	}
	for {
		closing := r.GetWorkflowHistory(ctx, "continued", runs[len(runs)-1].run, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		if !closing.HasNext() {
			return nil, errors.New("a run has no end")
		}
		event, err := closing.Next()
		if err != nil {
			return nil, err
		}
		again := event.GetWorkflowExecutionContinuedAsNewEventAttributes()
		if again == nil {
			return runs, nil
		}
		runs = append(runs, execution{"continued", again.GetNewExecutionRunId()})
	}
}

// cancelled is cancelled during iteration 1.
func cancelled(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "cancelled")
	if err != nil {
		return nil, err
	}
	if err := r.until(ctx, "cancelled", func(st workflows.Status) bool { return st.Iteration >= 1 }); err != nil {
		return nil, err
	}
	if err := r.CancelWorkflow(ctx, "cancelled", ""); err != nil {
		return nil, err
	}
	if err := run.Get(ctx, nil); !temporal.IsCanceledError(err) {
		return nil, fmt.Errorf("it was to be cancelled: %w", err)
	}
	return just(run), nil
}

// refused has a spec with problems.
func refused(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil, "--roles", "workflow,host"); err != nil {
		return nil, err
	}
	run, err := r.start(ctx, "refused", "Train", json.RawMessage(`{"environment": {"name": "bandi"}, "seed": -1}`))
	if err != nil {
		return nil, err
	}
	var app *temporal.ApplicationError
	if err := run.Get(ctx, nil); !errors.As(err, &app) || app.Type() != activities.KindSpecInvalid {
		return nil, fmt.Errorf("it was to be refused: %w", err)
	}
	return just(run), nil
}

// evaluate makes a short run and measures its second version.
func evaluate(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	trained, err := r.train(ctx, "trained")
	if err != nil {
		return nil, err
	}
	if err := trained.Get(ctx, nil); err != nil {
		return nil, err
	}
	run, err := r.start(ctx, "evaluate", "Evaluate", json.RawMessage(
		`{"policy": {"run": "trained", "version": 2}, "samples": 2, "suites": ["in-distribution", {"suite": "bandit-test", "instances": 16}]}`))
	if err != nil {
		return nil, err
	}
	return just(run), run.Get(ctx, nil)
}

// swept is a sweep of two trials, one after the other, and a third that is added and
// dropped; the first trial's history is kept beside it.
func swept(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	run, err := r.start(ctx, "swept", "Sweep", json.RawMessage(
		`{"base": "smoke", "grid": {"selection.keep": [0.5, 1]}, "parallel": 1, "early_stopping": {"method": "median", "first": 1, "min_trials": 1}}`))
	if err != nil {
		return nil, err
	}
	const first = "swept/selection.keep=0.5"
	if err := r.until(ctx, first, func(st workflows.Status) bool { return st.Iteration > 0 }); err != nil {
		return nil, err
	}
	for _, u := range []struct {
		name     string
		argument any
	}{
		{"add-trials", json.RawMessage(`{"grid": {"selection.keep": [0.75]}}`)},
		{"drop-trial", workflows.DropTrial{Trial: "selection.keep=0.75"}},
		{"set-parallel", workflows.SetParallel{Parallel: 2}},
	} {
		if err := r.update(ctx, "swept", u.name, u.argument); err != nil {
			return nil, err
		}
	}
	if err := run.Get(ctx, nil); err != nil {
		return nil, err
	}
	trial := r.GetWorkflow(ctx, first, "")
	return append(just(run), just(trial)...), trial.Get(ctx, nil)
}

// returned goes back to its first iteration, as a person asked, and on from there.
func returned(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	run, err := r.train(ctx, "returned")
	if err != nil {
		return nil, err
	}
	if err := r.until(ctx, "returned", func(st workflows.Status) bool { return st.Iteration >= 2 }); err != nil {
		return nil, err
	}
	if err := r.update(ctx, "returned", "roll-back", workflows.RollTo{Iteration: 0}); err != nil {
		return nil, err
	}
	var result workflows.TrainResult
	if err := run.Get(ctx, &result); err != nil {
		return nil, err
	}
	if result.Branch != 1 {
		return nil, fmt.Errorf("it ended on branch %d", result.Branch)
	}
	return just(run), nil
}

// shared has a critic and a reference, rollouts that serve two iterations, and
// diagnoses them.
func shared(ctx context.Context, r *recorder) ([]execution, error) {
	if _, err := r.startWorker(nil); err != nil {
		return nil, err
	}
	body, err := presets.Read("smoke")
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	document["iterations"] = 4
	document["credit"] = map[string]any{"algorithm": "gae"}
	document["freshness"] = map[string]any{"online": 2}
	document["diagnostics"] = map[string]any{"every": 1, "samples": 4}
	run, err := r.start(ctx, "shared", "Train", document)
	if err != nil {
		return nil, err
	}
	return just(run), run.Get(ctx, nil)
}
