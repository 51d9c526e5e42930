package watch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workflows"
)

// trainView is what a watcher has shown of a run.
type trainView struct {
	last      workflows.Status
	branch    int
	seen      int // iterations already shown
	evaluated int // newest version whose evaluation was shown
	suite     string
	lost      int // devices lost, as last shown
	pace      pace
	warmStart pace // of its steps
	// paceFrom is the iteration that was running when the watch began, or when the last of
	// paceLost devices was lost: it is not part of the pace.
	paceFrom, paceLost int
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
		v.branch, v.seen, v.evaluated = s.Branch, s.Iteration, s.Iteration
		v.pace, v.paceFrom = pace{}, s.Iteration
	}
	v.observe(s)
	if w.bar != nil {
		if s.Iterations > 0 {
			w.bar.ChangeMax(s.Iterations)
		}
		_ = w.bar.Set(s.Iteration)
		w.bar.Describe(fmt.Sprintf("%s · %s%s", w.run, s.Phase, v.pace.remaining(s.Iteration, s.Iterations)))
	}
	w.showEvaluated(s.First)
	// An iteration's line stands between the evaluations of the versions before and
	// after it. A version is evaluated before the iteration that made it is committed.
	if s.Last != nil && s.Last.Version < s.Iteration {
		w.showEvaluated(s.Last)
	}
	if s.Iteration > v.seen && s.Iteration > 0 && len(s.Metrics) > 0 {
		v.seen, w.phase = s.Iteration, ""
		width := len(fmt.Sprint(s.Iterations))
		w.line(fmt.Sprintf("iteration %*d (%*d of %d)  reward %s  success %s  entropy %s  grad norm %s%s%s",
			width, s.Iteration-1, width, s.Iteration, s.Iterations, Value(s.Metrics, "reward/mean", "%6.3f"),
			Percent(s.Metrics, "success/mean"), Value(s.Metrics, "actor/entropy", "%.3f"),
			Value(s.Metrics, "actor/grad_norm", "%.2f"), v.lostText(s), v.pace.remaining(s.Iteration, s.Iterations)))
	}
	if s.Last != nil && s.Last.Version <= s.Iteration {
		w.showEvaluated(s.Last)
	}
	if s.PausedBy == nil {
		for _, of := range s.Failing {
			if of.Silent > 0 {
				w.tell(human.Visible(of.Text()))
			}
		}
	}
	if s.PausedBy != nil {
		w.tell(pausedText(s.PausedBy))
	} else if s.Waiting != nil {
		w.tell(waitingText(s.Waiting) + rebuildText(s))
	} else if s.Iteration == 0 || s.Paused {
		w.say(v.phaseText(s.Phase))
	}
}

// rebuildText says what the next device has to do before it continues.
func rebuildText(s workflows.Status) string {
	if s.RebuildSeconds == 0 {
		return ""
	}
	took := time.Duration(s.RebuildSeconds * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("; loading the policy and applying %d updates again takes about %s", s.AtRisk, took)
}

// pausedText says why a run has paused by itself, and what to do.
func pausedText(p *workflows.PausedBy) string {
	return human.Visible(fmt.Sprintf("paused: %s (%s). %s", p.Text(), p.Kind, p.Do))
}

// observe counts the iterations that began and ended under the watch, on one device: one
// that was joined late, or whose device was lost, says nothing about the others.
func (v *trainView) observe(s workflows.Status) {
	if v.seen < 0 && v.paceFrom == 0 {
		v.paceFrom = s.Iteration
	}
	if s.LostDevices > v.paceLost {
		v.pace, v.paceFrom, v.paceLost = pace{}, s.Iteration, s.LostDevices
	}
	if s.Iteration > v.paceFrom {
		v.pace.observe(s.Iteration)
	}
}

// phaseText is a phase as it is printed: without the turn or the piece, and a warm start with the
// time to its end.
func (v *trainView) phaseText(phase string) string {
	phase, _, _ = strings.Cut(phase, " · turn")
	phase, _, _ = strings.Cut(phase, " · from micro-batch")
	var step, steps int
	if _, err := fmt.Sscanf(phase, "warm start, step %d of %d", &step, &steps); err != nil {
		return phase
	}
	v.warmStart.observe(step)
	return phase + v.warmStart.left(step, steps)
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
	// The references of a suite do not change from one evaluation to the next.
	references := e.Suite != w.train.suite || e.Suite == ""
	w.train.suite = e.Suite
	w.line(fmt.Sprintf("evaluation of version %d: %s", e.Version, evaluationLine(e, references)))
}

// lostText tells of devices lost since it last did.
func (v *trainView) lostText(s workflows.Status) string {
	if s.LostDevices <= v.lost {
		return ""
	}
	v.lost = s.LostDevices
	return fmt.Sprintf("  lost devices %d (recomputed %d updates)", s.LostDevices, s.Recomputed)
}

// endTrain prints how the run ended.
func (w *Watcher) endTrain(ctx context.Context, cancelled bool) error {
	if cancelled && w.train.last.Iteration == 0 {
		w.line(w.run + " was cancelled before an iteration was committed")
		return nil
	}
	if cancelled {
		last := w.train.last
		w.line(fmt.Sprintf("%s was cancelled; its last committed iteration is %d (%d of %d)", w.run, last.Iteration-1, last.Iteration, last.Iterations))
		return nil
	}
	var r workflows.TrainResult
	if err := w.result(ctx, &r); err != nil {
		return err
	}
	w.line(fmt.Sprintf("%s is done: %d iterations, state %s", w.run, r.Iterations, r.State))
	return nil
}
