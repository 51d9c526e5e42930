package watch

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows"
)

// evaluateView is what a watcher has shown of an Evaluate workflow.
type evaluateView struct {
	last  workflows.EvaluateStatus
	shown int // suites
}

func (w *Watcher) refreshEvaluate(ctx context.Context) error {
	var s workflows.EvaluateStatus
	if err := w.ask(ctx, &s); err != nil {
		return err
	}
	w.evaluate.last = s
	w.showEvaluate(s)
	return nil
}

// showEvaluate prints the suites measured since the last call as rows of a table.
func (w *Watcher) showEvaluate(s workflows.EvaluateStatus) {
	if w.bar != nil {
		if s.Suites > 0 {
			w.bar.ChangeMax(s.Suites)
		}
		_ = w.bar.Set(len(s.Done))
		w.bar.Describe(fmt.Sprintf("%s · %s", w.run, s.Phase))
	}
	// Turns are shown only by a terminal's bar: they would fill a log.
	if s.Waiting != nil {
		w.tell(waitingText(s.Waiting))
	} else if !strings.Contains(s.Phase, " · ") && s.Phase != "done" && s.Phase != "" {
		w.say(s.Phase)
	}
	if v := &w.evaluate; v.shown == 0 && len(s.Done) > 0 {
		w.line(suiteRow("suite", "success (95 % interval)", "reward", "random player", "best play"))
	}
	for v := &w.evaluate; v.shown < len(s.Done); v.shown++ {
		m := s.Done[v.shown].Metrics
		row := suiteRow(s.Done[v.shown].Suite, interval(m), Value(m, "reward/mean", "%.3f"),
			Value(m, "reference/random_success", "%.2f"), Value(m, "reference/best_success", "%.2f"))
		if k := mostSamples(m); k > 1 {
			row += fmt.Sprintf("  pass@%d %s", k, Value(m, fmt.Sprintf("pass@%d", k), "%.2f"))
		}
		w.line(row)
	}
}

func suiteRow(suite, success, reward, random, best string) string {
	return fmt.Sprintf("%-22s  %-23s  %7s  %13s  %9s", suite, success, reward, random, best)
}

// interval is a success rate with its 95 % interval: "0.43 (0.37–0.49)".
func interval(m activities.Metrics) string {
	return fmt.Sprintf("%s (%s–%s)", Value(m, "success/mean", "%.2f"), Value(m, "success/low", "%.2f"), Value(m, "success/high", "%.2f"))
}

// evaluationLine describes an evaluation in one line; references adds what a random
// player and the best play reach.
func evaluationLine(e *workflows.Evaluated, references bool) string {
	line := fmt.Sprintf("success %s  reward %s", interval(e.Metrics), Value(e.Metrics, "reward/mean", "%.3f"))
	for _, r := range []struct{ name, metric string }{{"random", "reference/random_success"}, {"best", "reference/best_success"}} {
		if _, ok := e.Metrics[r.metric]; ok && references {
			line += fmt.Sprintf("  %s %s", r.name, Value(e.Metrics, r.metric, "%.2f"))
		}
	}
	if e.Suite != "" {
		line = e.Suite + "  " + line
	}
	return line
}

// mostSamples is the largest k of the pass@k metrics, 0 if there is none.
func mostSamples(m activities.Metrics) int {
	most := 0
	for name := range m {
		var k int
		if _, err := fmt.Sscanf(name, "pass@%d", &k); err == nil {
			most = max(most, k)
		}
	}
	return most
}

// endEvaluate prints what was measured and where its artifacts are.
func (w *Watcher) endEvaluate(ctx context.Context, cancelled bool) error {
	if cancelled {
		w.line(fmt.Sprintf("%s was cancelled; %d of %d suites were measured", w.run, len(w.evaluate.last.Done), w.evaluate.last.Suites))
		return nil
	}
	var r workflows.EvaluateResult
	if err := w.result(ctx, &r); err != nil {
		return err
	}
	if w.evaluate.shown < len(r.Evaluations) {
		// No worker answered the last query: take the suites from the result.
		s := workflows.EvaluateStatus{Suites: len(r.Evaluations)}
		for _, e := range r.Evaluations {
			s.Done = append(s.Done, workflows.Evaluated{Version: e.Version, Suite: e.Suite, Metrics: e.Metrics})
		}
		w.showEvaluate(s)
	}
	policy := "the model"
	if r.Run != w.run {
		policy = fmt.Sprintf("version %d of %s", r.Version, r.Run)
	}
	w.line(fmt.Sprintf("%s is done: %s, state %s, on %s; artifacts under %s/",
		w.run, policy, r.State, human.Plural(len(r.Evaluations), "suite"), store.ApartDir(w.run)))
	return nil
}
