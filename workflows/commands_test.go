package workflows

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

func knob(path, value string) spec.Change {
	return spec.Change{Path: path, Value: json.RawMessage(value)}
}

// Pausing gives the device back after the running step. Resuming continues with the next
// step, and the manifests are the same as without a pause.
func TestPauseAndResume(t *testing.T) {
	for _, place := range []string{"WarmStart", "Restore", "Generate", "Step", "Measure", "Select", "Score", "Credit", "Update", "Snapshot", "Commit"} {
		t.Run(place, func(t *testing.T) {
			s := &stage{plan: testPlan()}
			p := newPlay(t, s)
			var paused Status
			var pause *answer
			p.when(place, 1, func() { pause = p.send("pause") })
			closed := 0
			p.RegisterDelayedCallback(func() {
				paused, closed = p.status(), p.closed
				p.send("resume")
			}, 1<<40)
			p.train(nil)
			p.result()
			require.True(t, pause.accepted)
			require.NoError(t, pause.err)
			require.Equal(t, "paused", paused.Phase)
			require.True(t, paused.Paused)
			require.Equal(t, 1, closed, "the device was given back")
			require.Equal(t, 2, p.opened)
			require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
			require.Zero(t, p.status().LostDevices)
			for name, n := range map[string]int{"Generate": 6, "Step": 6, "Measure": 3, "Select": 3, "Score": 3, "Credit": 3, "Update": 3, "Snapshot": 2, "Commit": 3} {
				require.Equal(t, n, p.started[name], "%s is not repeated", name)
			}
		})
	}
}

func TestStopAfter(t *testing.T) {
	for _, c := range []struct {
		at   string // when it is sent
		n    int
		stop int
		ends int // iterations done; 0: refused
		says string
	}{
		{"Generate", 2, 0, 1, "the run ends after iteration 0"},
		{"Score", 1, 1, 2, "the run ends after iteration 1"},
		{"Update", 1, 0, 1, "the run ends after iteration 0"},
		{"Update", 2, 2, 3, "the run ends after iteration 2"},
		// Behind the snapshot of iteration 1, while it is evaluated.
		{"Measure", 2, 1, 2, "the run ends after iteration 1"},
		{"Update", 2, 0, 0, "iteration 0: the run is at iteration 1 of 3, so it must be from 1 to 2"},
		{"Update", 1, 3, 0, "iteration 3: the run is at iteration 0 of 3, so it must be from 0 to 2"},
		{"Update", 1, -1, 0, "iteration -1: the run is at iteration 0 of 3, so it must be from 0 to 2"},
		{"Commit", 1, 0, 0, "iteration 0: the run is at iteration 0 of 3, so it must be from 1 to 2"},
		{"Commit", 1, 1, 2, "the run ends after iteration 1"},
		{"Commit", 3, 2, 3, "the run ends after iteration 2"},
	} {
		s := &stage{plan: testPlan()}
		p := newPlay(t, s)
		var a *answer
		p.when(c.at, c.n, func() { a = p.send("stop-after", StopAfter{Iteration: c.stop}) })
		p.train(nil)
		r := p.result()
		if c.ends == 0 {
			require.False(t, a.accepted)
			require.EqualError(t, a.err, c.says)
			require.Equal(t, 3, r.Iterations)
			continue
		}
		require.NoError(t, a.err)
		require.Equal(t, c.says, a.text)
		require.Equal(t, c.ends, r.Iterations, c)
		last := s.commits[len(s.commits)-1]
		require.Equal(t, c.ends, last.Snapshot.Version, "the last version has a snapshot")
		require.Equal(t, c.ends, r.Last.Version, "and an evaluation")
	}
}

// A stop that comes while the last evaluation runs without a snapshot having
// been due makes the snapshot due.
func TestStopBehindSnapshot(t *testing.T) {
	s := &stage{plan: testPlan()}
	s.plan.Iterations, s.plan.Snapshot.Every, s.plan.EvaluateEvery = 10, 5, 1
	p := newPlay(t, s)
	p.when("Measure", 2, func() { p.send("stop-after", StopAfter{Iteration: 0}) })
	p.train(nil)
	require.Equal(t, 1, p.result().Iterations)
	require.Equal(t, fields("Measure Snapshot Commit"), p.order[len(p.order)-3:])
	require.Equal(t, 1, s.commits[0].Snapshot.Version)
}

// A knob changes in the next iteration, in all of it, and in no other part.
func TestChangeKnob(t *testing.T) {
	for _, place := range []string{"Generate", "Step", "Select", "Score", "Credit", "Update", "Commit"} {
		t.Run(place, func(t *testing.T) {
			s := &stage{plan: testPlan(), base: true}
			s.plan.EvaluateEvery = 0
			p := newPlay(t, s)
			var a *answer
			p.when(place, 1, func() { a = p.send("change-knob", knob("update.learning_rate", "0.0001")) })
			p.train(nil)
			p.result()
			require.NoError(t, a.err)
			from := 1
			if place == "Commit" {
				from = 2 // iteration 1 has begun beside it
			}
			require.Equal(t, fmt.Sprintf("update.learning_rate holds from iteration %d on", from), a.text)
			changed := s.plan.Settings
			changed.Update.LearningRate = 1e-4
			require.Equal(t, s.plan.Settings, s.commits[from-1].Settings)
			require.Equal(t, changed, s.commits[from].Settings)
			require.Equal(t, changed, s.commits[2].Settings)
			want := undisturbed(t, s)
			require.Equal(t, manifests(want)[0], manifests(s.commits)[0])
			require.NotEqual(t, want[from].StateAfter, s.commits[from].StateAfter)
			require.Equal(t, 1e-4, p.status().Settings.Update.LearningRate)
		})
	}
}

func TestChangeKnobBeforeFirstIteration(t *testing.T) {
	s := &stage{plan: testPlan()}
	p := newPlay(t, s)
	var a *answer
	p.when("WarmStart", 1, func() { a = p.send("change-knob", knob("rollout.temperature", "0.5")) })
	p.train(nil)
	p.result()
	require.Equal(t, "rollout.temperature holds from iteration 0 on", a.text)
	require.Equal(t, 0.5, s.commits[0].Settings.Rollout.Temperature)
}

// The schedule has the last word on its fields: a change of one of them is refused by name. A change
// of another field holds beside it.
func TestChangeKnobBesideASchedule(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	s.plan.EvaluateEvery = 0
	s.plan.Schedule = []spec.Scheduled{{Field: "update.learning_rate", From: 1, Value: 1e-4}}
	p := newPlay(t, s)
	var refused, accepted *answer
	p.when("Generate", 1, func() {
		refused = p.send("change-knob", knob("update.learning_rate", "0.01"))
		accepted = p.send("change-knob", knob("update.entropy_coefficient", "0.5"))
	})
	p.train(nil)
	p.result()
	require.False(t, refused.accepted)
	require.EqualError(t, refused.err, "update.learning_rate: the run's schedule sets it; a fork of the run (from) can have another schedule")
	require.Equal(t, "update.entropy_coefficient holds from iteration 1 on", accepted.text)
	want := s.plan.Settings
	require.Equal(t, want, s.commits[0].Settings)
	want.Update.LearningRate, want.Update.EntropyCoefficient = 1e-4, 0.5
	require.Equal(t, want, s.commits[1].Settings)
	require.Equal(t, want, s.commits[2].Settings)
}

// A change that will not fit what the schedule gives to another field later is refused now, and not
// by a step of that iteration.
func TestChangeKnobAgainstTheSchedule(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	s.plan.EvaluateEvery = 0
	s.plan.Settings.Selection.Method = "all"
	s.plan.Schedule = []spec.Scheduled{{Field: "selection.keep", From: 2, Value: 0.1}}
	p := newPlay(t, s)
	var refused *answer
	p.when("Generate", 1, func() { refused = p.send("change-knob", knob("selection.method", `"top_fraction"`)) })
	p.train(nil)
	p.result()
	require.False(t, refused.accepted)
	require.EqualError(t, refused.err, "1 problem:\n  selection.keep: found 0.1 in iteration 2; allowed: a number of which 4 groups make at least one (from 0.25)")
	require.Equal(t, "all", s.commits[2].Settings.Selection.Method)
}

func TestRefusedCommands(t *testing.T) {
	for _, c := range []struct {
		change spec.Change
		says   string
	}{
		{knob("update.learning_rat", "1"), `did you mean "update.learning_rate"?`},
		{knob("update.learning_rate", "7"), "update.learning_rate: found 7; allowed: a number from 0 to 1"},
		{knob("update.learning_rate", `"1"`), "a number stands without quotes"},
		{knob("update.micro_batch", "8"), "fixed for the run"},
		{knob("seed", "8"), "fixed for the run"},
		{knob("rollout.turn_limit", "2"), "rollout.turn_limit: found 2; allowed: at most 1 (rollout.turns)"},
	} {
		s := &stage{plan: testPlan(), base: true}
		p := newPlay(t, s)
		var a *answer
		p.when("Generate", 1, func() { a = p.send("change-knob", c.change) })
		p.train(nil)
		p.result()
		require.False(t, a.accepted)
		require.ErrorContains(t, a.err, c.says)
		require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
	}
}

// Before the spec is read nothing can be judged.
func TestCommandsBeforeSpec(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	p := newPlay(t, s)
	var answers []*answer
	p.when("Resolve", 1, func() {
		answers = append(answers, p.send("pause"), p.send("resume"), p.send("stop-after", StopAfter{Iteration: 1}),
			p.send("change-knob", knob("update.learning_rate", "1e-4")))
		require.Equal(t, "resolving", p.status().Phase)
	})
	p.train(nil)
	p.result()
	for _, a := range answers {
		require.False(t, a.accepted)
		require.ErrorIs(t, a.err, errNotReady)
	}
}

// The same update twice is one update.
func TestUpdateID(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	p := newPlay(t, s)
	p.when("Generate", 1, func() {
		p.UpdateWorkflowNoRejection("stop-after", "id-1", t, StopAfter{Iteration: 1})
		p.UpdateWorkflowNoRejection("stop-after", "id-1", t, StopAfter{Iteration: 2})
	})
	p.train(nil)
	require.Equal(t, 2, p.result().Iterations)
}
