package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// measured is an evaluation's progress: the suites that are done, and the one
// under way.
type measured struct {
	Suites int    `json:"suites"`
	Rolled rolled `json:"rolled"`
}

// iteration is one iteration under way. A step whose result is set is done, on
// whatever worker goes on.
type iteration struct {
	Settings    spec.Settings                   `json:"settings"` // fixed when the iteration begins
	Baseline    *measured                       `json:"baseline,omitempty"`
	Turns       []store.TurnRefs                `json:"turns,omitempty"` // of the rollout's rounds that are done
	Round       int                             `json:"round,omitempty"` // the one under way
	Rollout     rolled                          `json:"rollout"`
	Shared      *store.RolloutRef               `json:"shared,omitempty"` // where several iterations learn from the rollout
	Selected    *activities.SelectResult        `json:"selected,omitempty"`
	Scored      *activities.ScoreResult         `json:"scored,omitempty"`
	Diagnosed   bool                            `json:"diagnosed,omitempty"`
	Credited    *activities.CreditResult        `json:"credited,omitempty"`
	Updated     *activities.UpdateResult        `json:"updated,omitempty"`
	Snapshot    *store.SnapshotRef              `json:"snapshot,omitempty"`
	Final       *measured                       `json:"final,omitempty"`
	Evaluations []store.EvaluationRef           `json:"evaluations,omitempty"`
	Metrics     activities.Metrics              `json:"metrics"`
	Detected    *activities.Detected            `json:"detected,omitempty"`
	Timings     map[string]activities.Telemetry `json:"timings"`
	Lost        int                             `json:"lost"`
}

// record adds what a step's attempt measured; steps of several turns add up.
func (it *iteration) record(step string, t activities.Telemetry) {
	it.Timings[step] = it.Timings[step].Plus(t)
}

// add moves a step's metrics to the iteration's: kept twice they would be
// carried twice.
func (it *iteration) add(m *activities.Metrics) {
	for _, k := range workflow.DeterministicKeys(*m) {
		it.Metrics[k] = (*m)[k]
	}
	*m = nil
}

// version addresses policy version v of the run, with its state fingerprint.
func (t *train) version(v int, state string) activities.Version {
	return activities.Version{Run: t.Run, Branch: t.Branch, Version: v, State: state}
}

// iterate does iteration Next, or what is left of it, up to its commit.
func (t *train) iterate(ctx workflow.Context, s *session) error {
	if t.Current == nil {
		t.Current = t.begin()
		if t.restored != nil {
			t.Current.record("restore", *t.restored)
			t.restored = nil
		}
	}
	it, n := t.Current, t.Next
	steps := []func(workflow.Context, *session, *iteration, int) error{
		t.baseline, t.rollout, t.score, t.diagnose, t.credit, t.update, t.snapshot, t.evaluate, t.detect,
		t.snapshot, // due only now where the run is to stop here after all
		t.commit,
	}
	for _, step := range steps {
		if err := step(ctx, s, it, n); err != nil {
			return err
		}
		if t.Paused && t.Next == n {
			return nil // the rest of the iteration follows after resume
		}
	}
	return nil
}

// begin is the iteration that follows: one that rolls out, or one that goes on
// learning from the rollout before, with the settings it was rolled out with.
func (t *train) begin() *iteration {
	it := &iteration{Settings: t.Settings, Metrics: activities.Metrics{}, Timings: map[string]activities.Telemetry{}}
	if t.Head == nil || t.Head.Rolled == nil {
		return it
	}
	r := t.Head.Rolled
	it.Settings.Rollout, it.Settings.Selection = t.Head.Settings.Rollout, t.Head.Settings.Selection
	it.Shared, it.Rollout.Done = &r.RolloutRef, true
	it.Selected = &activities.SelectResult{Trajectories: r.Trajectories}
	if r.Scores != nil {
		it.Scored = &activities.ScoreResult{Scores: *r.Scores}
	}
	return it
}

// rows is how many trajectories the iteration learns from.
func (it *iteration) rows() int {
	if it.Shared != nil {
		return it.Shared.Rows[it.Shared.Update]
	}
	return it.Selected.Rows
}

// baseline evaluates the first policy, so that a run shows where it began.
func (t *train) baseline(ctx workflow.Context, s *session, it *iteration, n int) error {
	if n > 0 || t.Branch > 0 || !t.plan.EvaluationDue(0, t.end()) || t.First != nil {
		return nil
	}
	if it.Baseline == nil {
		it.Baseline = &measured{}
	}
	e, err := t.evaluateVersion(ctx, s, it, it.Baseline, n, "", t.State)
	if err != nil || e == nil {
		return err
	}
	t.First, t.Last = brief(e), brief(e)
	return nil
}

func (t *train) credit(ctx workflow.Context, _ *session, it *iteration, n int) error {
	if it.Credited != nil || !activities.Credits(it.Settings, it.Shared, it.rows()) {
		return nil
	}
	var h *activities.Host
	var out activities.CreditResult
	t.show(ctx, fmt.Sprintf("iteration %d · credit", n))
	err := t.host(ctx, t.plan.ActivitySeconds, "Credit", fmt.Sprintf("iteration %d · advantages", n), h.Credit, activities.CreditInput{
		Run: t.Run, Branch: t.Branch, Iteration: n, Settings: it.Settings,
		Trajectories: it.Selected.Trajectories, Scores: it.scores(), Rollout: it.Shared,
		Replay: t.replayed(), States: t.states(),
	}, &out)
	if err != nil {
		return err
	}
	it.record("credit", out.Telemetry)
	it.add(&out.Metrics)
	it.Credited = &out
	return nil
}

// scores are the selected rows' old log-probs, nil where none was selected.
func (it *iteration) scores() *store.Ref {
	if it.Scored == nil {
		return nil
	}
	return &it.Scored.Scores
}

// states is the table of initial states' values so far, where the run keeps one.
func (t *train) states() *store.Ref {
	if t.Head == nil {
		return nil
	}
	return t.Head.States
}

// replayed are the batches that a replay buffer draws from.
func (t *train) replayed() []store.Ref {
	if t.Head == nil {
		return nil
	}
	return t.Head.Batches
}

// update makes version n+1. Without a selected row the version before goes on.
func (t *train) update(ctx workflow.Context, s *session, it *iteration, n int) error {
	if it.Updated != nil {
		return nil
	}
	if it.rows() == 0 {
		it.Updated = &activities.UpdateResult{
			State: t.State, Counts: store.UpdateCounts{Skipped: true, SkippedTotal: 1},
		}
		return nil
	}
	var d *activities.Device
	var out activities.UpdateResult
	t.show(ctx, fmt.Sprintf("iteration %d · update", n))
	err := s.run(ctx, "Update", fmt.Sprintf("iteration %d · update on %d rows", n, it.rows()), d.Update, activities.UpdateInput{
		Policy: t.version(n, t.State), Batch: *it.Credited.Batch, Settings: it.Settings,
	}, &out)
	if err != nil {
		return err
	}
	it.record("update", out.Telemetry)
	it.add(&out.Metrics)
	it.Updated = &out
	return nil
}

func (t *train) snapshot(ctx workflow.Context, s *session, it *iteration, n int) error {
	end := t.end()
	if it.stops() {
		end = n + 1
	}
	if it.Snapshot != nil || !t.plan.Snapshot.Due(n+1, end) {
		return nil
	}
	var d *activities.Device
	var out activities.SnapshotResult
	t.show(ctx, fmt.Sprintf("iteration %d · snapshot", n))
	err := s.run(ctx, "Snapshot", fmt.Sprintf("snapshot of version %d", n+1), d.Snapshot,
		activities.SnapshotInput{Policy: t.version(n+1, it.Updated.State)}, &out)
	if err != nil {
		return err
	}
	it.Snapshot = &out.Snapshot
	it.record("snapshot", out.Telemetry)
	return nil
}

func (t *train) evaluate(ctx workflow.Context, s *session, it *iteration, n int) error {
	if !t.plan.EvaluationDue(n+1, t.end()) || t.Last != nil && t.Last.Version == n+1 {
		return nil
	}
	if it.Final == nil {
		it.Final = &measured{}
	}
	e, err := t.evaluateVersion(ctx, s, it, it.Final, n+1, "", it.Updated.State)
	if err != nil || e == nil {
		return err
	}
	t.Last = brief(e)
	return nil
}

// brief is an evaluation without the list of its tables, which grows with the
// turns: the manifest has it, and what is carried along has to stay small.
func brief(e *store.EvaluationRef) *store.EvaluationRef {
	short := *e
	short.Turns = nil
	return &short
}

// evaluateVersion rolls the suites out with policy version v, one after the
// other, and measures them. It gives the first suite's figures, which stand for
// all in summaries; nil when a pause came first. apart is the id of the Evaluate
// workflow that asks, empty for a run's own evaluation.
func (t *train) evaluateVersion(ctx workflow.Context, s *session, it *iteration, m *measured, v int, apart, state string) (*store.EvaluationRef, error) {
	var h *activities.Host
	for m.Suites < len(t.plan.Suites) {
		suite := t.plan.Suites[m.Suites]
		what := activities.Rollout{Iteration: v, Evaluation: &activities.EvaluationOf{Suite: suite.Name, Apart: apart}}
		if err := t.roll(ctx, s, it, &m.Rolled, what, t.version(v, state), suite.Rows, suite.Turns); err != nil || !m.Rolled.Done {
			return nil, err
		}
		var out activities.MeasureResult
		err := t.host(ctx, t.plan.ActivitySeconds, "Measure", fmt.Sprintf("version %d · %s · figures", v, suite.Name), h.Measure, activities.MeasureInput{
			Run: t.Run, Branch: t.Branch, Rollout: what, Version: v, State: state, Fingerprint: t.Fingerprint, Turns: m.Rolled.Turns,
		}, &out)
		if err != nil {
			return nil, err
		}
		it.record("evaluation.measure", out.Telemetry)
		it.Evaluations = append(it.Evaluations, out.Evaluation)
		m.Suites, m.Rolled = m.Suites+1, rolled{} // the evaluation has the turns now
	}
	for i := range it.Evaluations {
		if e := &it.Evaluations[i]; e.Version == v && e.Suite == t.plan.Suites[0].Name {
			return e, nil
		}
	}
	return nil, nil
}

// commit makes the iteration count: one conditional PUT of its manifest.
func (t *train) commit(ctx workflow.Context, _ *session, it *iteration, n int) error {
	var h *activities.Host
	var out activities.CommitResult
	t.show(ctx, fmt.Sprintf("iteration %d · commit", n))
	in := activities.CommitInput{
		Run: t.Run, Branch: t.Branch, Iteration: n, Parent: t.headRef(), Settings: it.Settings,
		Fingerprint: t.Fingerprint, Device: t.Device, Programs: t.Programs,
		StateBefore: t.State, StateAfter: it.Updated.State,
		Turns: it.turns(), Rollout: it.Shared, Trajectories: it.Selected.Trajectories,
		Snapshot: it.Snapshot, Evaluations: it.Evaluations, Metrics: it.Metrics, Timings: it.Timings, Lost: it.Lost,
		Detected: it.Detected, Opened: t.Opened,
	}
	in.Update, in.States = it.Updated.Counts, t.states()
	in.Scores = it.scores()
	batches := t.replayed()
	if it.Credited != nil {
		in.Batch, in.States = it.Credited.Batch, it.Credited.States
	}
	if in.Batch != nil {
		batches = append([]store.Ref{*in.Batch}, batches...)
	}
	batches = batches[:min(len(batches), t.plan.Freshness.ReplayIterations)]
	t.committing = true // from here on it is too late to make this the last iteration
	defer func() { t.committing = false }()
	if err := t.host(ctx, t.plan.ActivitySeconds, "Commit", fmt.Sprintf("iteration %d · commit", n), h.Commit, in, &out); err != nil {
		return err
	}
	if it.Snapshot != nil {
		t.Snapshot = it.Snapshot.Version
	}
	t.Head = &activities.Head{
		Manifest: out.Manifest, Branch: t.Branch, Iteration: n, State: it.Updated.State,
		Fingerprint: t.Fingerprint, Base: t.Run.Base, Settings: it.Settings, Snapshot: t.Snapshot, States: in.States,
		Rolled: in.Next(), Batches: batches,
	}
	t.State, t.Metrics, t.Current, t.Opened = it.Updated.State, it.Metrics, nil, nil
	t.Next, t.here = n+1, t.here+1
	t.act(n, it.Detected)
	t.attributes(ctx)
	t.sweep.committed(ctx, t, it.Evaluations)
	t.show(ctx, fmt.Sprintf("iteration %d committed", n))
	return nil
}

// missing stands for a metric that there is not.
const missing = "–"

// metric reads a metric that may be missing.
func metric(m activities.Metrics, name string) string {
	v, ok := m[name]
	if !ok {
		return missing
	}
	return number(v)
}

func number(v canon.Float) string {
	s := fmt.Sprintf("%.4f", float64(v))
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
