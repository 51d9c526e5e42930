// Package watch follows a workflow (a run, an evaluation or a sweep) through its queries
// and prints its progress.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workflows"
)

// Watcher prints the progress of one workflow.
type Watcher struct {
	// Converter reads the failures of activities; [New] sets the SDK's default.
	Converter converter.DataConverter

	client client.Client
	run    string // the workflow's id
	out    io.Writer
	every  time.Duration
	bar    *progressbar.ProgressBar // nil outside a terminal
	phase  string
	// since is when the phase was first printed, remind after how long it is printed again.
	since  time.Time
	remind time.Duration
	// answered is when a worker last answered the query.
	answered time.Time
	retries  retries
	train    trainView
	evaluate evaluateView
	sweep    sweepView
}

// answerTimeout is how long queries may go unanswered before that is printed: a busy
// worker answers late.
const answerTimeout = 10 * time.Second

// New returns a watcher of the workflow with the id run that queries it at the given
// interval and prints to out.
func New(c client.Client, run string, out io.Writer, every time.Duration) *Watcher {
	w := &Watcher{Converter: converter.GetDefaultDataConverter(), client: c, run: run, out: out, every: every, answered: time.Now(),
		train: trainView{seen: -1, evaluated: -1}}
	if f := human.Terminal(out); f != nil {
		w.bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(run),
			progressbar.OptionFullWidth(), progressbar.OptionShowCount(), progressbar.OptionThrottle(200*time.Millisecond),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	}
	return w
}

// Follow prints the workflow's progress until it ends. Its error is the workflow's
// failure, or ctx's.
func (w *Watcher) Follow(ctx context.Context) error {
	for {
		d, err := w.client.DescribeWorkflowExecution(ctx, w.run, "")
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing):
			return fmt.Errorf("no workflow %q on this server (list them: reprise runs)", w.run)
		case ctx.Err() != nil:
			return ctx.Err()
		case permanent(err):
			return fmt.Errorf("look %s up: %w", w.run, err)
		case err != nil:
			w.tell("the Temporal server does not answer, trying again: " + human.Visible(err.Error()))
			if err := Sleep(ctx, 2*time.Second); err != nil {
				return err
			}
			continue
		}
		kind, state := d.WorkflowExecutionInfo.Type.GetName(), d.WorkflowExecutionInfo.Status
		refresh, end := w.refreshTrain, w.endTrain
		switch kind {
		case "Train":
		case "Evaluate":
			refresh, end = w.refreshEvaluate, w.endEvaluate
		case "Sweep":
			refresh, end = w.refreshSweep, w.endSweep
		default:
			return fmt.Errorf("%s is a workflow of type %s; only Train, Evaluate and Sweep can be watched", w.run, kind)
		}
		if err := refresh(ctx); err == nil {
			w.answered = time.Now()
		} else if ctx.Err() != nil {
			return ctx.Err()
		} else if errors.Is(err, codec.ErrUnreadable) {
			return fmt.Errorf("read the status of %s: %w", w.run, err)
		} else if state == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && time.Since(w.answered) > answerTimeout {
			w.tell("no worker answers (start one: reprise worker)")
		}
		w.showRetries(d.PendingActivities)
		switch state {
		case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		default:
			if w.bar != nil {
				_ = w.bar.Finish()
			}
			return w.ended(ctx, state, end)
		}
		if err := Sleep(ctx, w.every); err != nil {
			return err
		}
	}
}

// Last is the last status received from a run.
func (w *Watcher) Last() workflows.Status { return w.train.last }

// ask reads the answer to the query "status" into s.
func (w *Watcher) ask(ctx context.Context, s any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := w.client.QueryWorkflow(ctx, w.run, "", "status")
	if err != nil {
		return err
	}
	return v.Get(s)
}

// ended prints how the workflow ended, or returns its failure.
func (w *Watcher) ended(ctx context.Context, state enumspb.WorkflowExecutionStatus,
	end func(ctx context.Context, cancelled bool) error) error {
	switch state {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return end(ctx, false)
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return end(ctx, true)
	}
	err := w.client.GetWorkflow(ctx, w.run, "").Get(ctx, nil)
	// The cause alone: the activities and ids around it are in the Web UI.
	if cause, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		err = cause
	}
	return fmt.Errorf("%s ended, %s: %w", w.run, strings.ToLower(state.String()), err)
}

// result reads what the workflow returned.
func (w *Watcher) result(ctx context.Context, into any) error {
	if err := w.client.GetWorkflow(ctx, w.run, "").Get(ctx, into); err != nil {
		return fmt.Errorf("read the result of %s: %w", w.run, err)
	}
	return nil
}

func waitingText(wait *workflows.Waiting) string {
	if wait.Reason != "" {
		return programsText(wait)
	}
	if slices.Contains(wait.Present, wait.Wanted) {
		return "waiting for a device: " + human.Visible(wait.InLine())
	}
	there := "none is there"
	if len(wait.Present) > 0 {
		there = "there are " + strings.Join(wait.Present, ", ")
	}
	return fmt.Sprintf("waiting for a device with fingerprint %s; %s", wait.Wanted, there)
}

// programsText names the programs that a worker would have to have, and those it has.
func programsText(wait *workflows.Waiting) string {
	text := "waiting for a worker with the run's programs: " + human.Visible(wait.Reason)
	for _, p := range wait.Programs {
		text += fmt.Sprintf("\n  %s: wanted %s, there %s", p.Name, p.Recorded, p.Present)
	}
	return text
}

// say prints a phase, and again with the time that it has taken after 5 seconds, 10, 20 and so on, so that a long one does not look
// like a hang: the first steps of a model compile its programs. In a terminal the bar shows the phase instead. Why a workflow ended is
// printed once, with its end.
func (w *Watcher) say(phase string) {
	if w.bar != nil || strings.HasPrefix(phase, "ended: ") {
		return
	}
	if lasts := time.Since(w.since); phase != "" && phase == w.phase && lasts >= w.remind {
		w.remind *= 2
		w.line(fmt.Sprintf("%s (for %s)", phase, lasts.Round(time.Second)))
	}
	w.tell(phase)
}

// firstReminder is how long a phase lasts before it is printed again.
const firstReminder = 5 * time.Second

// tell prints a text unless it is the one printed last.
func (w *Watcher) tell(text string) {
	if text != w.phase {
		w.phase, w.since, w.remind = text, time.Now(), firstReminder
		w.line(text)
	}
}

func (w *Watcher) line(text string) {
	if w.bar != nil {
		_ = w.bar.Clear()
	}
	fmt.Fprintln(w.out, text)
}

// Status queries a run's status.
func Status(ctx context.Context, c client.Client, run string) (workflows.Status, error) {
	var s workflows.Status
	v, err := c.QueryWorkflow(ctx, run, "", "status")
	if err == nil {
		err = v.Get(&s)
	}
	return s, err
}

// Until queries a run's status at the given interval until is returns true. A query that
// fails is repeated; its last error is part of the result when ctx ends.
func Until(ctx context.Context, c client.Client, run string, every time.Duration, is func(workflows.Status) bool) error {
	for {
		s, err := Status(ctx, c, run)
		if err == nil && is(s) {
			return nil
		}
		if waited := Sleep(ctx, every); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

// Value formats a metric, or gives a dash if it was not recorded.
func Value(m activities.Metrics, name, format string) string {
	v, ok := m[name]
	if !ok {
		return "–"
	}
	return human.Number(format, float64(v))
}

// Percent formats a share as a percentage, or gives a dash if it was not recorded.
func Percent(m activities.Metrics, name string) string {
	v, ok := m[name]
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%3.0f %%", 100*float64(v))
}

// Sleep waits for d. If ctx ends first it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
