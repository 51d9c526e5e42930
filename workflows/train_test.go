package workflows

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
)

func fields(s string) []string { return strings.Fields(s) }

func TestRunFromStarter(t *testing.T) {
	s := &stage{plan: testPlan(), warnings: []string{"a warm start is on"}}
	p := newPlay(t, s)
	p.train(nil)
	r := p.result()

	evaluation := " Generate Step Measure "
	iteration := " Generate Step Select Score Credit Update "
	require.Equal(t, fields("Resolve Describe WarmStart WarmStart WarmStart Restore"+
		evaluation+iteration+"Commit"+
		iteration+"Snapshot"+evaluation+"Commit"+
		iteration+"Snapshot"+evaluation+"Commit"), s.names())
	for _, c := range s.calls {
		want := map[string]string{"Describe": activities.AnyDeviceQueue}[c.name]
		switch c.name {
		case "Resolve", "Step", "Select", "Credit", "Measure", "Commit":
			want = activities.WorkflowQueue
		case "WarmStart", "Restore", "Generate", "Score", "Update", "Snapshot":
			want = "session-1"
		}
		require.Equal(t, want, c.queue, c.name)
	}
	require.Equal(t, []string{"reprise-device." + testPrint + ".line"}, p.tried)
	require.Equal(t, 1, p.closed, "the session was given back")

	require.Equal(t, activities.ResolveInput{Run: testRun, Spec: json.RawMessage(`{}`)}, inputs[activities.ResolveInput](s, "Resolve")[0])
	run := activities.Run{ID: testRun, Spec: ref("spec"), Base: ref("base")}
	warm := inputs[activities.WarmStartInput](s, "WarmStart")
	require.Nil(t, warm[0].From)
	require.Equal(t, 10, warm[1].From.Version)
	require.Equal(t, 20, warm[2].From.Version)
	require.Equal(t, []int{4, 160, 160}, []int{warm[0].Steps, warm[1].Steps, warm[2].Steps}, "a fast device is asked for more")
	require.Equal(t, activities.RestoreInput{Version: activities.Version{Run: run}, MaxSeconds: 15}, inputs[activities.RestoreInput](s, "Restore")[0])

	// The inputs of iteration 1 are what the steps before it gave.
	commits := s.commits
	require.Len(t, commits, 3)
	before := activities.Version{Run: run, Version: 1, State: commits[0].StateAfter}
	rollout := activities.Rollout{Iteration: 1}
	generate := activities.GenerateInput{Policy: before, Rollout: rollout, Settings: s.plan.Settings, Turn: 1}
	require.Equal(t, generate, inputs[activities.GenerateInput](s, "Generate")[2])
	step := activities.StepInput{Run: run, Rollout: rollout, Turn: 1, Generate: ref("generate", generate)}
	require.Equal(t, step, inputs[activities.StepInput](s, "Step")[2])
	turns := []store.TurnRefs{{Generate: step.Generate, Step: ref("step", step)}}
	selected := activities.SelectInput{Run: run, Rollout: rollout, Settings: s.plan.Settings, Turns: turns}
	require.Equal(t, selected, inputs[activities.SelectInput](s, "Select")[1])
	score := activities.ScoreInput{Policy: before, Iteration: 1, Settings: s.plan.Settings, Trajectories: ref("trajectories", selected)}
	require.Equal(t, score, inputs[activities.ScoreInput](s, "Score")[1])
	scores := ref("scores", score)
	credit := activities.CreditInput{Run: run, Iteration: 1, Settings: s.plan.Settings, Trajectories: score.Trajectories, Scores: &scores}
	require.Equal(t, credit, inputs[activities.CreditInput](s, "Credit")[1])
	update := activities.UpdateInput{Policy: before, Batch: ref("batch", credit), Settings: s.plan.Settings, MaxSeconds: 15}
	require.Equal(t, update, inputs[activities.UpdateInput](s, "Update")[1])
	after := activities.Version{Run: run, Version: 2, State: commits[1].StateAfter}
	require.Equal(t, activities.SnapshotInput{Policy: after}, inputs[activities.SnapshotInput](s, "Snapshot")[0])
	suite := activities.Rollout{Iteration: 2, Evaluation: &activities.EvaluationOf{Suite: "in-distribution"}}
	require.Equal(t, activities.GenerateInput{Policy: after, Rollout: suite, Settings: s.plan.Settings, Turn: 1},
		inputs[activities.GenerateInput](s, "Generate")[3])

	c := commits[1]
	parent := commits[0]
	parent.Timings, parent.Lost, parent.Costs = nil, 0, nil
	wantParent := ref("manifest", parent)
	require.Equal(t, &wantParent, c.Parent)
	require.Equal(t, turns, c.Turns)
	require.Equal(t, score.Trajectories, c.Trajectories)
	require.Equal(t, credit.Scores, c.Scores)
	require.Equal(t, update.Batch, *c.Batch)
	require.Equal(t, commits[0].StateAfter, c.StateBefore)
	require.Equal(t, 2, c.Snapshot.Version)
	require.Equal(t, testPrint, c.Fingerprint)
	require.JSONEq(t, `{"platform":"cpu"}`, string(c.Device))
	require.Equal(t, map[string]string{"turn-1.decode": "p"}, c.Programs)
	require.Equal(t, activities.Metrics{"reward/mean": 0.5, "success/mean": 0.25, "actor/entropy": 1, "actor/loss": 0.125,
		"reward/mean_ema": 0.5, "success/mean_ema": 0.25, "actor/entropy_ema": 1}, c.Metrics)
	require.Contains(t, c.Timings, "evaluation.generate")
	require.Equal(t, "s0", commits[0].StateBefore)
	require.Nil(t, commits[0].Parent)

	require.Equal(t, 3, r.Iterations)
	require.Equal(t, commits[2].StateAfter, r.State)
	require.Equal(t, 0, r.First.Version)
	require.Equal(t, 3, r.Last.Version)
	require.Len(t, commits[2].Evaluations[0].Turns, 1)
	require.Equal(t, 1, r.Recomputed)

	st := p.status()
	require.Equal(t, "done", st.Phase)
	require.Equal(t, 3, st.Iteration)
	require.Equal(t, 0, st.AtRisk)
	require.Len(t, st.Warnings, 2)
	require.Contains(t, st.Warnings[0], "reprise doctor --register")
	require.Equal(t, "a warm start is on", st.Warnings[1])
}

func TestCadence(t *testing.T) {
	for name, c := range map[string]struct {
		iterations, snapshot, evaluation int
		snapshots, evaluations           [][]int // by iteration: versions
	}{
		"both at the end": {3, 2, 2, [][]int{nil, {2}, {3}}, [][]int{{0}, {2}, {3}}},
		"no evaluation":   {2, 1, 0, [][]int{{1}, {2}}, [][]int{nil, nil}},
		"one iteration":   {1, 10, 10, [][]int{{1}}, [][]int{{0, 1}}},
		"every iteration": {2, 1, 1, [][]int{{1}, {2}}, [][]int{{0, 1}, {2}}},
		"rare snapshots":  {4, 10, 3, [][]int{nil, nil, nil, {4}}, [][]int{{0}, nil, {3}, {4}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{plan: testPlan(), base: true}
			s.plan.Iterations, s.plan.Snapshot.Every, s.plan.EvaluateEvery = c.iterations, c.snapshot, c.evaluation
			p := newPlay(t, s)
			p.train(nil)
			p.result()
			var snapshots, evaluations [][]int
			for _, m := range s.commits {
				var snapshot, evaluation []int
				if m.Snapshot != nil {
					snapshot = append(snapshot, m.Snapshot.Version)
				}
				for _, e := range m.Evaluations {
					evaluation = append(evaluation, e.Version)
				}
				snapshots, evaluations = append(snapshots, snapshot), append(evaluations, evaluation)
			}
			require.Equal(t, c.snapshots, snapshots)
			require.Equal(t, c.evaluations, evaluations)
			require.Zero(t, s.counts["WarmStart"], "the model was imported")
		})
	}
}

func TestTurns(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, alive: func(turn int) int { return []int{16, 3, 0, 0}[turn-1] }}
	s.plan.Iterations, s.plan.Turns, s.plan.EvaluateEvery = 1, 5, 0
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	generated, stepped := inputs[activities.GenerateInput](s, "Generate"), inputs[activities.StepInput](s, "Step")
	require.Len(t, generated, 3, "the rollout ends when every episode has")
	for i, g := range generated {
		require.Equal(t, i+1, g.Turn)
		require.Len(t, g.Turns, i)
		require.Equal(t, g.Turns, stepped[i].Turns)
		require.Equal(t, ref("generate", g), stepped[i].Generate)
	}
	require.Equal(t, append(generated[2].Turns, store.TurnRefs{Generate: ref("generate", generated[2]), Step: ref("step", stepped[2])}), s.commits[0].Turns)
}

func TestEmptySelection(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, selected: func(n int) int { return []int{4, 0, 4}[n] }}
	p := newPlay(t, s)
	p.train(nil)
	r := p.result()
	require.Equal(t, 2, s.counts["Score"])
	require.Equal(t, 2, s.counts["Credit"])
	require.Equal(t, 2, s.counts["Update"])
	c := s.commits[1]
	require.Nil(t, c.Scores)
	require.Nil(t, c.Batch)
	require.True(t, c.Update.Skipped)
	require.Equal(t, c.StateBefore, c.StateAfter)
	require.Equal(t, 2, c.Snapshot.Version, "the version counts, though its state is the one before")
	require.Equal(t, c.StateAfter, s.commits[2].StateBefore)
	require.Equal(t, 3, r.Iterations)
}

func TestGoesOnBehindCommitted(t *testing.T) {
	knobs := testPlan().Settings
	knobs.Update.LearningRate = 7e-5
	head := &activities.Head{
		Manifest: ref("manifest", "stored"), Branch: 1, Iteration: 1, State: "stored", Fingerprint: "other", Base: ref("stored base"),
		Settings: knobs, Snapshot: 2, First: &store.EvaluationRef{Version: 0}, Last: &store.EvaluationRef{Version: 2}, Device: json.RawMessage(`{}`),
	}
	s := &stage{plan: testPlan(), head: head}
	p := newPlay(t, s)
	p.train(nil)
	r := p.result()
	require.Equal(t, fields("Resolve Restore Generate Step Select Score Credit Update Snapshot Generate Step Measure Commit"), s.names())
	require.Equal(t, []string{"reprise-device.other.line"}, p.tried)
	in := inputs[activities.RestoreInput](s, "Restore")[0]
	require.Equal(t, &head.Manifest, in.Head)
	require.Equal(t, activities.Version{Run: activities.Run{ID: testRun, Spec: ref("spec"), Base: head.Base}, Branch: 1, Version: 2, State: "stored"}, in.Version)
	require.Equal(t, knobs, s.commits[0].Settings, "a changed knob outlives Temporal's database")
	require.Equal(t, 1, s.commits[0].Branch)
	require.Equal(t, 0, r.First.Version)
	require.Equal(t, 3, r.Last.Version)
}

func TestDoneAlready(t *testing.T) {
	s := &stage{plan: testPlan(), head: &activities.Head{Manifest: ref("manifest"), Iteration: 2, State: "end", Fingerprint: testPrint}}
	p := newPlay(t, s)
	p.train(nil)
	require.Equal(t, "end", p.result().State)
	require.Equal(t, []string{"Resolve"}, s.names())
	require.Empty(t, p.tried)
}

func TestErrors(t *testing.T) {
	places := []string{"Resolve", "WarmStart", "Restore", "Generate", "Step", "Select", "Score", "Credit", "Update", "Snapshot", "Measure", "Commit"}
	for _, place := range places {
		t.Run("ends/"+place, func(t *testing.T) {
			s := &stage{plan: testPlan(), errors: map[string][]error{place: {temporal.NewNonRetryableApplicationError("no", activities.KindDivergence, nil)}}}
			p := newPlay(t, s)
			p.train(nil)
			require.Equal(t, activities.KindDivergence, kind(t, p.GetWorkflowError()))
			require.Equal(t, 1, s.counts[place], "not tried again")
			require.Equal(t, place, s.calls[len(s.calls)-1].name)
			require.Equal(t, p.opened, p.closed, "the device was given back")
			require.Contains(t, p.status().Phase, "ended: ")
		})
		t.Run("retries/"+place, func(t *testing.T) {
			down := errors.New("S3 is down")
			s := &stage{plan: testPlan(), errors: map[string][]error{place: {down, down, down}}}
			p := newPlay(t, s)
			p.train(nil)
			p.result()
			require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
		})
	}
}

// NonRetryable ends an activity by its kind, whatever the error says of itself: all kinds
// except those that a retry repairs, and the one that pauses the run.
func TestKindsEndRun(t *testing.T) {
	for _, k := range activities.NonRetryable {
		if k == activities.KindNotResident || k == activities.KindDraining || correctable[k] != "" {
			continue
		}
		s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Step": {temporal.NewApplicationError("no", k)}}}
		p := newPlay(t, s)
		p.train(nil)
		require.Equal(t, k, kind(t, p.GetWorkflowError()))
		require.Equal(t, 1, s.counts["Step"])
	}
}

func TestCancel(t *testing.T) {
	for _, place := range []string{"Resolve", "Describe", "WarmStart", "Restore", "Generate", "Step", "Select", "Score", "Credit", "Update", "Snapshot", "Commit"} {
		t.Run(place, func(t *testing.T) {
			s := &stage{plan: testPlan(), stall: map[string]int{place: 1}}
			p := newPlay(t, s)
			p.when(place, 1, p.CancelWorkflow)
			p.train(nil)
			require.True(t, p.IsWorkflowCompleted())
			require.True(t, temporal.IsCanceledError(p.GetWorkflowError()), "%v", p.GetWorkflowError())
			require.Equal(t, place, p.order[len(p.order)-1], "nothing begins after it")
			require.Equal(t, 1, p.started[place])
			require.Equal(t, p.opened, p.closed, "the device was given back")
			require.Equal(t, "ended: cancelled; the run's end is its last committed iteration", p.status().Phase)
		})
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	p := newPlay(t, s)
	p.absent = 1000
	p.when("Acquire", 5, p.CancelWorkflow)
	p.train(nil)
	require.True(t, temporal.IsCanceledError(p.GetWorkflowError()), "%v", p.GetWorkflowError())
	require.Equal(t, 5, p.started["Acquire"], "no sixth try")
	require.Zero(t, p.closed)
}

func TestSearchAttributes(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, attributes: true}
	p := newPlay(t, s)
	var phases []string
	p.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		a := args.Get(0).(temporal.SearchAttributes)
		phase, _ := a.GetKeyword(attributePhase)
		phases = append(phases, phase)
		environment, _ := a.GetKeyword(attributeEnvironment)
		require.Equal(t, "bandit", environment)
		print, _ := a.GetKeyword(attributeFingerprint)
		require.Equal(t, testPrint, print)
		iteration, _ := a.GetInt64(attributeIteration)
		require.Equal(t, int64(len(phases)), iteration)
		reward, _ := a.GetFloat64(attributeReward)
		require.Equal(t, 0.5, reward)
	}).Return(nil)
	p.train(nil)
	p.result()
	require.Equal(t, []string{"training", "training", "done"}, phases)
	require.Empty(t, p.status().Warnings)
}

// The decisions are a function of the answers: the same calls with the same
// inputs in the same order, every time.
func TestDeterministic(t *testing.T) {
	sequence := func() string {
		s := &stage{plan: testPlan()}
		s.plan.Turns = 3
		p := newPlay(t, s)
		p.train(nil)
		p.result()
		var all []any
		for _, c := range s.calls {
			all = append(all, c.name, c.queue, c.input)
		}
		b, err := json.Marshal(all)
		require.NoError(t, err)
		return string(b)
	}
	first := sequence()
	for range 3 {
		require.Equal(t, first, sequence())
	}
}

// Every activity that workflows name has its line in the table, and a bound.
func TestTable(t *testing.T) {
	for _, r := range steps.All() {
		if r.Place == steps.Local {
			continue
		}
		name := r.Name
		o := options(r, "what it does", 30, 0)
		require.Equal(t, time.Duration(30*r.Bound)*time.Second+r.Import, o.StartToCloseTimeout, name)
		imports := slices.Contains([]string{"Resolve", "ResolveEvaluation", "ResolveSweep", "ExtendSweep"}, name)
		require.Equal(t, imports, r.Import > time.Hour, name)
		require.Equal(t, heartbeatTimeout, o.HeartbeatTimeout)
		require.Equal(t, "what it does", o.Summary)
		if !r.Patient { // see TestSweepsWaitForTheBucket
			require.Equal(t, activities.NonRetryable, o.RetryPolicy.NonRetryableErrorTypes)
		}
		require.Zero(t, o.ScheduleToCloseTimeout, "a wait for a queue ends no run")
		require.Equal(t, slices.Contains([]steps.Place{steps.OnSession, steps.OnLine, steps.OnHolder}, r.Place), o.TaskQueue == "", name)
	}
	require.Equal(t, 5*time.Second, options(steps.Step.Routing, "", 0, 5*time.Second).HeartbeatTimeout)
	require.Equal(t, 120*time.Second, options(steps.Step.Routing, "", 0, 0).StartToCloseTimeout, "before the spec is known")
}
