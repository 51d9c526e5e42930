package watch

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workflows"
)

// trainView is what a watcher has shown of a run.
type trainView struct {
	last      workflows.Status
	branch    int
	seen      int // iterations already shown
	evaluated int // newest version whose evaluation was shown
	pace      pace
}

func (w *Watcher) refreshTrain(ctx context.Context) error {
	var s workflows.Status
	if err := w.ask(ctx, &s); err != nil {
		return err
	}
	w.train.last = s
	w.showTrain(s)
	return nil
}

// showTrain prints what changed since the last status.
func (w *Watcher) showTrain(s workflows.Status) {
	v := &w.train
	if s.Branch > v.branch {
		// The run was rolled back: earlier iterations and evaluations follow again.
		w.phase = ""
		w.line(rollbackText(s))
		v.branch, v.seen, v.evaluated, v.pace = s.Branch, s.Iteration, s.Iteration, pace{}
	}
	v.pace.observe(s.Iteration)
	if w.bar != nil {
		if s.Iterations > 0 {
			w.bar.ChangeMax(s.Iterations)
		}
		_ = w.bar.Set(s.Iteration)
		w.bar.Describe(fmt.Sprintf("%s · %s%s", w.run, s.Phase, v.pace.remaining(s.Iteration, s.Iterations)))
	}
	w.showEvaluated(s.First)
	if s.Iteration > v.seen && s.Iteration > 0 && len(s.Metrics) > 0 {
		v.seen, w.phase = s.Iteration, ""
		w.line(fmt.Sprintf("iteration %*d/%d  reward %s  success %s  entropy %s  grad norm %s%s%s",
			len(fmt.Sprint(s.Iterations)), s.Iteration, s.Iterations, Value(s.Metrics, "reward/mean", "%6.3f"),
			Percent(s.Metrics, "success/mean"), Value(s.Metrics, "actor/entropy", "%.3f"),
			Value(s.Metrics, "actor/grad_norm", "%.2f"), lostText(s), v.pace.remaining(s.Iteration, s.Iterations)))
	}
	// A version is evaluated before the iteration that made it is committed.
	if s.Last != nil && s.Last.Version <= s.Iteration {
		w.showEvaluated(s.Last)
	}
	if s.PausedBy != nil {
		w.tell(pausedText(s.PausedBy))
	} else if s.Waiting != nil {
		w.tell(waitingText(s.Waiting))
	} else if s.Iteration == 0 || s.Paused {
		phase, _, _ := strings.Cut(s.Phase, " · turn")
		w.say(phase)
	}
}

// pausedText says why a run has paused by itself, and what to do.
func pausedText(p *workflows.PausedBy) string {
	return human.Visible(fmt.Sprintf("paused: %s (%s). %s", p.Text(), p.Kind, p.Do))
}

// rollbackText describes the last rollback and its reason.
func rollbackText(s workflows.Status) string {
	text := fmt.Sprintf("rolled back: branch %d goes on at iteration %d", s.Branch, s.Iteration)
	if n := len(s.Events); n > 0 {
		text += ": " + s.Events[n-1].Text
	}
	return text
}

// showEvaluated prints an evaluation, unless it was printed before.
func (w *Watcher) showEvaluated(e *workflows.Evaluated) {
	if e == nil || e.Version <= w.train.evaluated {
		return
	}
	w.train.evaluated = e.Version
	w.line(fmt.Sprintf("evaluation of version %d: %s", e.Version, evaluationLine(e)))
}

func lostText(s workflows.Status) string {
	if s.LostDevices == 0 {
		return ""
	}
	return fmt.Sprintf("  lost devices %d (recomputed %d updates)", s.LostDevices, s.Recomputed)
}

// endTrain prints how the run ended.
func (w *Watcher) endTrain(ctx context.Context, cancelled bool) error {
	if cancelled && w.train.last.Iteration == 0 {
		w.line(w.run + " was cancelled before an iteration was committed")
		return nil
	}
	if cancelled {
		w.line(fmt.Sprintf("%s was cancelled; its last committed iteration is %d", w.run, w.train.last.Iteration-1))
		return nil
	}
	var r workflows.TrainResult
	if err := w.result(ctx, &r); err != nil {
		return err
	}
	w.line(fmt.Sprintf("%s is done: %d iterations, state %s", w.run, r.Iterations, r.State))
	return nil
}
