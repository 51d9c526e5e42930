package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/term"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows"
)

func watchCommand() *cobra.Command {
	var every time.Duration
	var conn connection
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "follow a run live in the terminal",
		Long: `Follows a run until it ends: progress, reward, success, entropy, time left.
Outside a terminal it prints one line an iteration. Ctrl-C stops watching, not
the run.`,
		Example: `  reprise watch bandit-1
  reprise watch bandit-1 > bandit-1.log`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := conn.temporal(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			w := newWatcher(c, args[0], cmd.OutOrStdout(), every)
			_, err = w.follow(cmd.Context())
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(cmd.ErrOrStderr(), "\nstopped watching; the run goes on")
				return nil
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&every, "every", 500*time.Millisecond, "how often the status is asked for")
	conn.addTemporalFlags(cmd)
	return cmd
}

// watcher follows one run by its status query.
type watcher struct {
	client client.Client
	run    string
	out    io.Writer
	every  time.Duration
	bar    *progressbar.ProgressBar // nil outside a terminal
	seen   int                      // iterations already shown
	phase  string
	began  time.Time
	beganN int
	// answered is when a worker last answered the query.
	answered time.Time
}

// silence is how long no worker may answer before it is said: a busy one is late.
const silence = 10 * time.Second

func newWatcher(c client.Client, run string, out io.Writer, every time.Duration) *watcher {
	w := &watcher{client: c, run: run, out: out, every: every, seen: -1, answered: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w.bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(run),
			progressbar.OptionFullWidth(), progressbar.OptionShowCount(), progressbar.OptionThrottle(200*time.Millisecond),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	}
	return w
}

// follow shows the run until it has ended; it gives the last status.
func (w *watcher) follow(ctx context.Context) (workflows.Status, error) {
	var last workflows.Status
	for {
		d, err := w.client.DescribeWorkflowExecution(ctx, w.run, "")
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing):
			return last, fmt.Errorf("no workflow %q on this server (list them: temporal workflow list)", w.run)
		case ctx.Err() != nil:
			return last, ctx.Err()
		case err != nil:
			w.say("the Temporal server does not answer; trying again")
			if err := sleep(ctx, 2*time.Second); err != nil {
				return last, err
			}
			continue
		}
		state := d.WorkflowExecutionInfo.Status
		if s, err := w.ask(ctx); err == nil {
			last, w.answered = s, time.Now()
			w.show(s)
		} else if ctx.Err() != nil {
			return last, ctx.Err()
		} else if state == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && time.Since(w.answered) > silence {
			w.say("no worker answers (start one: reprise worker)")
		}
		switch state {
		case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		default:
			return last, w.end(ctx, state, last)
		}
		if err := sleep(ctx, w.every); err != nil {
			return last, err
		}
	}
}

func (w *watcher) ask(ctx context.Context) (workflows.Status, error) {
	var s workflows.Status
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := w.client.QueryWorkflow(ctx, w.run, "", "status")
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// show prints what is new in a status.
func (w *watcher) show(s workflows.Status) {
	if w.began.IsZero() && s.Iteration > 0 {
		w.began, w.beganN = time.Now(), s.Iteration
	}
	if w.bar != nil {
		if s.Iterations > 0 {
			w.bar.ChangeMax(s.Iterations)
		}
		_ = w.bar.Set(s.Iteration)
		w.bar.Describe(fmt.Sprintf("%s · %s%s", w.run, s.Phase, w.left(s)))
	}
	if s.Waiting != nil {
		w.say(waitingText(s.Waiting))
	} else if w.bar == nil && s.Iteration == w.seen {
		return
	} else if s.Iteration == 0 || s.Paused {
		w.say(s.Phase)
	}
	if s.Iteration > w.seen && s.Iteration > 0 && len(s.Metrics) > 0 {
		w.seen = s.Iteration
		w.line(fmt.Sprintf("iteration %*d/%d  reward %s  success %s  entropy %s  grad norm %s%s%s",
			len(fmt.Sprint(s.Iterations)), s.Iteration, s.Iterations, value(s.Metrics, "reward/mean", "%6.3f"),
			percent(s.Metrics, "success/mean"), value(s.Metrics, "actor/entropy", "%.3f"),
			value(s.Metrics, "actor/grad_norm", "%.2f"), lostText(s), w.left(s)))
	}
}

func waitingText(wait *workflows.Waiting) string {
	there := "none is there"
	if len(wait.Present) > 0 {
		there = "there are " + strings.Join(wait.Present, ", ")
	}
	return fmt.Sprintf("waiting for a device with fingerprint %s; %s", wait.Wanted, there)
}

func lostText(s workflows.Status) string {
	if s.LostDevices == 0 {
		return ""
	}
	return fmt.Sprintf("  lost devices %d (recomputed %d updates)", s.LostDevices, s.Recomputed)
}

// left estimates the time to the end from what was seen so far.
func (w *watcher) left(s workflows.Status) string {
	done := s.Iteration - w.beganN
	if w.began.IsZero() || done < 1 || s.Iterations <= s.Iteration {
		return ""
	}
	each := time.Since(w.began) / time.Duration(done)
	return fmt.Sprintf("  %.1f s/it, %s left", each.Seconds(), (each * time.Duration(s.Iterations-s.Iteration)).Round(time.Second))
}

// say prints a phase once.
func (w *watcher) say(phase string) {
	if phase == w.phase {
		return
	}
	w.phase = phase
	if w.bar == nil {
		w.line(phase)
	}
}

func (w *watcher) line(text string) {
	if w.bar != nil {
		_ = w.bar.Clear()
	}
	fmt.Fprintln(w.out, text)
}

// end says how the run ended.
func (w *watcher) end(ctx context.Context, state enumspb.WorkflowExecutionStatus, last workflows.Status) error {
	if w.bar != nil {
		_ = w.bar.Finish()
	}
	switch state {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		w.line(fmt.Sprintf("%s is done: %d iterations, state %s", w.run, last.Iteration, last.State))
		return nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		w.line(fmt.Sprintf("%s was cancelled; its last committed iteration is %d", w.run, last.Iteration-1))
		return nil
	}
	err := w.client.GetWorkflow(ctx, w.run, "").Get(ctx, nil)
	return fmt.Errorf("%s ended %s: %w", w.run, strings.ToLower(state.String()), err)
}

func value(m activities.Metrics, name, format string) string {
	v, ok := m[name]
	if !ok {
		return "–"
	}
	return fmt.Sprintf(format, float64(v))
}

func percent(m activities.Metrics, name string) string {
	v, ok := m[name]
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%3.0f %%", 100*float64(v))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
