// Package twins trains a run whose worker processes are killed again and again, for a comparison
// with its twin that nothing disturbs. Every kill must have left its mark in the run's history.
package twins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
)

// Committed is what an iteration left.
type Committed struct {
	// Success is the mean success of the sampled episodes, a share.
	Success float64 `json:"success"`
	// State is the state fingerprint after the iteration.
	State string `json:"state"`
}

// Kill is one death of a worker process by SIGKILL.
type Kill struct {
	// Activity is the activity that the worker died in, Phase where in it: see package faults.
	Activity string `json:"activity"`
	Phase    string `json:"phase"`
	// Iteration is the one under way, from 0.
	Iteration int `json:"iteration"`
	// Witness is what the run's history says of the activity that was lost.
	Witness string `json:"witness"`
}

// Death is a Kill with the process that died and the time of its death.
type Death struct {
	Kill
	PID  int       `json:"pid"`
	Died time.Time `json:"died"`
}

// Run is a run on a dev stack whose workers die one after the other. Without faults it is the
// undisturbed twin. What Train adds to it is enough to continue later on the same stack.
type Run struct {
	ID string `json:"id"`
	// Faults are those of each worker that dies. It dies of the first that strikes; all are of one activity.
	Faults [][]faults.Fault `json:"-"`
	// First is the workflow execution that the run began with; "" before its start.
	First string `json:"first,omitempty"`
	// Deaths are the deaths so far, one for each of the first workers.
	Deaths []Death `json:"deaths,omitempty"`
}

// Kills are the deaths so far without what only their witnesses need.
func (r *Run) Kills() []Kill {
	out := make([]Kill, len(r.Deaths))
	for i, d := range r.Deaths {
		out[i] = d.Kill
	}
	return out
}

// Train starts the run with the spec text, or continues it, with one worker process at a time, and
// returns when it has ended and each death has its witness. processes has no workers before and one
// after. save, unless it is nil, is called after each change of the run. follow, unless it is nil, is called
// when all deaths are over; its context ends with the run.
//
// If ctx ends before, its error is returned, and another call goes on.
func (r *Run) Train(ctx context.Context, on stack.Servers, processes *crew.Crew, text []byte, save func() error,
	follow func(context.Context), progress io.Writer) error {
	saved := func() error {
		if save == nil {
			return nil
		}
		return save()
	}
	if r.First == "" {
		w, err := stack.StartTrain(ctx, on.Client, r.ID, text)
		if err != nil {
			return err
		}
		r.First = w.GetRunID()
		if err := saved(); err != nil {
			return err
		}
	}
	for n := len(r.Deaths); n < len(r.Faults); n++ {
		d, err := r.die(ctx, on, processes, r.Faults[n])
		if err != nil {
			return fmt.Errorf("kill %d of %d, in %s: %w", n+1, len(r.Faults), r.Faults[n][0], err)
		}
		r.Deaths = append(r.Deaths, d)
		fmt.Fprintf(progress, "%-22s kill %d of %d: worker %d died in %s, in iteration %d\n", r.ID, n+1, len(r.Faults), d.PID, d.Activity, d.Iteration)
		if err := saved(); err != nil {
			return err
		}
	}
	processes.Fault = ""
	if err := processes.Start(ctx); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	if follow != nil {
		go follow(following)
	}
	if err := on.Client.GetWorkflow(ctx, r.ID, "").Get(ctx, nil); err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	if len(r.Deaths) == 0 {
		return nil
	}
	lost, err := lostIn(ctx, on.Client, r.ID, r.First)
	if err != nil {
		return err
	}
	if err := testify(r.Deaths, lost); err != nil {
		return err
	}
	return saved()
}

// die starts a worker that dies of one of the faults, and waits for its death.
func (r *Run) die(ctx context.Context, on stack.Servers, processes *crew.Crew, of []faults.Fault) (Death, error) {
	words := make([]string, len(of))
	for i, f := range of {
		words[i] = f.String()
	}
	processes.Fault = strings.Join(words, ",")
	if err := processes.Start(ctx); err != nil {
		return Death{}, err
	}
	pid, err := dies(ctx, on.Client, processes, r.ID)
	if err != nil {
		return Death{}, err
	}
	activity, _, _ := strings.Cut(of[0].Kind, "#")
	d := Death{Kill: Kill{Activity: activity, Phase: of[0].Phase}, PID: pid, Died: time.Now()}
	if head, err := store.Head(ctx, on.Bucket, r.ID); err == nil {
		d.Iteration = head.Manifest.Iteration + 1
	}
	return d, nil
}

// deadline bounds the wait for one kill.
const deadline = 2 * time.Hour

// errEnded says that a run had ended before its last kill.
var errEnded = errors.New("the run has ended before: it needs more iterations, or more snapshots")

// dies waits until the only worker process has ended by itself, resumes the run if it paused
// because of the kills before, and returns the process's id.
func dies(ctx context.Context, c client.Client, processes *crew.Crew, run string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	pid := processes.PIDs()[0]
	ended, err := processes.Ended(pid)
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- c.GetWorkflow(ctx, run, "").Get(ctx, nil) }()
	for {
		select {
		case <-ended:
			return pid, processes.Kill(pid)
		case err := <-done:
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, errors.Join(errEnded, err)
		case <-time.After(time.Second):
		}
		s, err := watch.Status(ctx, c, run)
		if err != nil || s.PausedBy == nil {
			continue
		}
		if err := resume(ctx, c, run); err != nil {
			return 0, err
		}
	}
}

func resume(ctx context.Context, c client.Client, run string) error {
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run, UpdateName: "resume", WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("resume run %s: %w", run, err)
	}
	return nil
}

// Chain reads the manifests of a run up to its newest.
func Chain(ctx context.Context, s store.Store, run string) (store.Chain, error) {
	head, err := store.Head(ctx, s, run)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	chain, err := store.LoadChain(ctx, s, head.Ref)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return chain, nil
}

// Curve reads what each iteration of a run left, up to the newest that is committed. The error is a
// store.ErrNotFound if there is none.
func Curve(ctx context.Context, s store.Store, run string) ([]Committed, error) {
	chain, err := Chain(ctx, s, run)
	if err != nil {
		return nil, err
	}
	out := make([]Committed, len(chain))
	for i, link := range chain {
		out[i] = Committed{Success: float64(link.Manifest.Metrics["success/mean"]), State: link.Manifest.StateAfter}
	}
	return out, nil
}
