package workflows

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

func carryOf(t *testing.T, err error) *Carry {
	t.Helper()
	var again *workflow.ContinueAsNewError
	require.True(t, errors.As(err, &again))
	require.Equal(t, "Train", again.WorkflowType.Name)
	var input json.RawMessage
	var c *Carry
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &input, &c))
	require.JSONEq(t, `{}`, string(input), "the spec as it was written goes along")
	return c
}

// A run that continues as new after every iteration is the run that never does.
func TestContinueAsNew(t *testing.T) {
	whole := &stage{plan: testPlan(), attributes: true}
	want := undisturbed(t, whole)
	s := &stage{plan: testPlan(), attributes: true}
	var commits []activities.CommitInput
	var carry *Carry
	for n := range 3 {
		p := newPlay(t, s)
		p.w.ContinueAfter = 1
		p.train(carry)
		commits = append(commits, s.commits...)
		require.Equal(t, 1, p.opened)
		require.Equal(t, 1, p.closed, "the session ends with the history")
		if n == 2 {
			r := p.result()
			require.Equal(t, 3, r.Iterations)
			require.Equal(t, 0, r.First.Version)
			require.Equal(t, 3, r.Recomputed)
			break
		}
		carry = carried(t, p)
		require.Equal(t, n+1, carry.Next)
		require.Nil(t, carry.Current)
		require.True(t, carry.Attributes)
		s = &stage{plan: testPlan()}
		if n == 1 {
			require.Equal(t, fields("Load Restore Generate Step Select Score Credit Update Snapshot Generate Step Measure Commit"),
				p.order, "what is resolved, chosen and made is not asked for again")
		}
	}
	require.Equal(t, manifests(want), manifests(commits))
}

// Commands hold across continue-as-new, and so does an iteration that was paused.
func TestCarriesPausedIteration(t *testing.T) {
	s := &stage{plan: testPlan()}
	p := newPlay(t, s)
	p.when("Update", 1, func() {
		p.send("pause")
		p.send("stop-after", StopAfter{Iteration: 1})
		p.send("change-knob", knob("update.learning_rate", "1e-5"))
		p.SetContinueAsNewSuggested(true)
	})
	p.train(nil)
	c := carried(t, p)
	require.True(t, c.Paused)
	require.Equal(t, 1, *c.StopAfter)
	require.Equal(t, 1e-5, c.Settings.Update.LearningRate)
	require.Equal(t, s.plan.Settings, c.Current.Settings)
	require.NotNil(t, c.Current.Updated)
	require.Len(t, c.Current.Evaluations, 1)

	again := &stage{plan: testPlan()}
	q := newPlay(t, again)
	q.RegisterDelayedCallback(func() { q.send("resume") }, 1<<40)
	q.train(c)
	r := q.result()
	require.Equal(t, 2, r.Iterations)
	require.Equal(t, fields("Load Restore Commit"), q.order[:3], "the update was made before")
	restore := inputs[activities.RestoreInput](again, "Restore")[0]
	require.Equal(t, c.Current.Updated.State, restore.Pending.State)
	want := undisturbed(t, s)
	require.Equal(t, manifests(want)[0], manifests(again.commits)[0])
	require.Equal(t, 1e-5, again.commits[1].Settings.Update.LearningRate)
	require.NotNil(t, again.commits[1].Snapshot, "the last iteration has one")
}

func digits(n int) string { return strings.Repeat("0123456789abcdef", n/16) }

// bigRef is a table's ref as long as they get.
func bigRef() store.Ref {
	return store.Ref{
		Key:    "runs/" + digits(80) + "/b10/iterations/000123/evaluation.turn-10.generate." + digits(16) + ".parquet",
		Digest: digits(64), Size: 1 << 40, Content: digits(64),
	}
}

// The carried state stays under 64 KiB, whatever the run's length: here with ten turns,
// paused in its first iteration with everything done except the commit.
func TestCarryIsSmall(t *testing.T) {
	plan := testPlan()
	r := bigRef()
	turns := func() (out []store.TurnRefs) {
		for range 10 {
			out = append(out, store.TurnRefs{Generate: r, Step: r})
		}
		return out
	}
	metrics := activities.Metrics{}
	for i := range 40 {
		metrics["actor/some_rather_long_metric_name_"+string(rune('a'+i))] = 0.12345678901234567
	}
	evaluation := &store.EvaluationRef{Version: 1, Suite: "bandit-1", State: digits(32), Trajectories: &r, Metrics: metrics}
	long := *evaluation
	long.Turns = turns()
	stop := 3
	run := activities.Run{ID: digits(80), Spec: r, Base: r}
	timings := map[string]activities.Telemetry{}
	for _, step := range fields("generate step select score credit update snapshot evaluation.generate evaluation.step evaluation.measure") {
		timings[step] = activities.Telemetry{Seconds: 12.345678901234567, WaitSeconds: 1.2345678901234567, Tokens: 1 << 40}
	}
	programs := map[string]string{}
	for turn := range 10 {
		for _, name := range fields("prefill decode forward backward apply fingerprint") {
			programs[string(rune('0'+turn))+"."+name] = digits(64)
		}
	}
	c := Carry{
		Run: run, Branch: 3, Next: 123456, State: digits(32), Settings: plan.Settings, Fingerprint: digits(16),
		Head:   &activities.Head{Manifest: r, Settings: plan.Settings, Base: r},
		Device: json.RawMessage(`"` + digits(2048) + `"`), Programs: programs,
		Attributes: true, Paused: true, StopAfter: &stop,
		Current: &iteration.State{
			Settings: plan.Settings,
			Baseline: &iteration.Measured{Suites: 1}, Rollout: iteration.Rolled{Turns: turns(), Alive: 3, Done: true},
			Selected: &activities.SelectResult{Trajectories: r, Rows: 4}, Scored: &activities.ScoreResult{Scores: r},
			Credited: &activities.CreditResult{Batch: &r}, Updated: &activities.UpdateResult{State: digits(32)},
			Snapshot: &store.SnapshotRef{Version: 1, Dir: digits(96), State: digits(32), Files: map[string]store.Ref{
				"config.json": r, "model.safetensors": r, "optimizer.safetensors": r, "tokenizer.json": r, "tokenizer_config.json": r, "generation_config.json": r,
			}},
			Final: &iteration.Measured{Suites: 1}, Evaluations: []store.EvaluationRef{long, long}, Metrics: metrics, Timings: timings, Lost: 2,
		},
		WarmStartBase: &r, Pace: 64, WarmStart: &store.SnapshotRef{Version: 9, Dir: digits(96), State: digits(32), Files: map[string]store.Ref{"model.safetensors": r}},
		Snapshot: 120, First: evaluation, Last: evaluation, Metrics: metrics, LostDevices: 7, Recomputed: 9, Warnings: []string{digits(160)},
	}
	b, err := json.Marshal(c)
	require.NoError(t, err)
	require.Less(t, len(b), 64<<10)
	var back Carry
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, c, back, "everything comes back")

	c.Current = nil
	b, err = json.Marshal(c)
	require.NoError(t, err)
	require.Less(t, len(b), 24<<10, "at an iteration's boundary")
	t.Logf("at an iteration's boundary %d bytes", len(b))
}
