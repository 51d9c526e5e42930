package workers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// tinyTask is the policy and the environment of the runs here.
const tinyTask = `"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 1, "rows": 4}},
	"environment": {"name": "bandit"},`

// recorded is a run of two iterations, made without Temporal.
func recorded(t *testing.T, opened *model.Device, s store.Store) []activities.CommitInput {
	t.Helper()
	ctx := t.Context()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	d := train.New(engine, s)
	document := json.RawMessage(`{
		"seed": 1, "iterations": 2,
		` + tinyTask + `
		"rollout": {"groups": 2, "group_size": 2, "turns": 1, "max_new_tokens": 8, "think": false},
		"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 2, "instances": 2}
	}`)
	resolved, err := d.Host.Resolve(ctx, activities.ResolveInput{Run: "again", Spec: document})
	require.NoError(t, err)
	warm, err := d.Device.WarmStart(ctx, activities.WarmStartInput{Run: "again", Spec: resolved.Spec, Steps: 1})
	require.NoError(t, err)
	run := activities.Run{ID: "again", Spec: resolved.Spec, Base: *warm.Base}
	restored, err := d.Device.Restore(ctx, activities.RestoreInput{Version: activities.Version{Run: run}})
	require.NoError(t, err)
	var commits []activities.CommitInput
	start := iteration.Start{Run: run, Plan: resolved.Plan, Policy: restored.State, Programs: restored.Programs}
	for n := range 2 {
		start.Number, start.Due = n, iteration.Due{Baseline: n == 0, Evaluate: n == 1, Snapshot: true}
		in, err := d.ToCommit(ctx, iteration.New(start, iteration.Begin(resolved.Plan.Settings, nil)), nil)
		require.NoError(t, err)
		got, err := d.Host.Commit(ctx, in)
		require.NoError(t, err)
		start.Head, start.Policy, start.Before, start.Previous = &activities.Head{Manifest: got.Manifest}, in.StateAfter, *in.Detected, in.Metrics
		commits = append(commits, in)
	}
	return commits
}

// forked is a run that is forked from the recorded one's first iteration, with one
// iteration of its own, another rate and other shapes.
func forked(t *testing.T, opened *model.Device, s store.Store) {
	t.Helper()
	ctx := t.Context()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	d := train.New(engine, s)
	resolved, err := d.Host.Resolve(ctx, activities.ResolveInput{Run: "fork", Spec: json.RawMessage(`{
		"seed": 2, "iterations": 2, "from": {"run": "again", "iteration": 0},
		` + tinyTask + `
		"rollout": {"groups": 2, "group_size": 2, "turns": 1, "max_new_tokens": 8, "think": false},
		"selection": {"method": "all"}, "update": {"micro_batch": 2, "learning_rate": 0.001}, "evaluation": {"every": 0}
	}`)})
	require.NoError(t, err)
	run := activities.Run{ID: "fork", Spec: resolved.Spec, Base: *resolved.Base}
	from := resolved.From
	restored, err := d.Device.Restore(ctx, activities.RestoreInput{Version: activities.Version{Run: run, Version: 1, State: from.State}, Head: &from.Manifest})
	require.NoError(t, err)
	in, err := d.ToCommit(ctx, iteration.New(iteration.Start{
		Run: run, Plan: resolved.Plan, Number: 1, Policy: from.State, Programs: restored.Programs, Head: &activities.Head{Manifest: from.Manifest},
	}, iteration.Begin(resolved.Plan.Settings, nil)), nil)
	require.NoError(t, err)
	_, err = d.Host.Commit(ctx, in)
	require.NoError(t, err)
}

// Any iteration computed again gives the same bits, and nothing is written.
func TestReplayIteration(t *testing.T) {
	plugintest.Needs(t)
	device, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer device.Close()
	s := store.NewMemory()
	commits := recorded(t, device, s)
	before := s.Own()
	replay := func(n int) (Replay, error) {
		return ReplayIteration(t.Context(), s, device, "again", n, func(string) {})
	}
	for n := range 2 {
		r, err := replay(n)
		require.NoError(t, err)
		require.True(t, r.Same(), "%v", r.Differences)
		require.Equal(t, device.Fingerprint().ID(), r.Fingerprint)
		require.Equal(t, r.Wanted, r.Fingerprint)
		require.Zero(t, r.Rebuilt, "there is a snapshot before each")
	}
	require.Equal(t, before, s.Own())

	// Also after another run's iteration.
	forked(t, device, s)
	r, err := ReplayIteration(t.Context(), s, device, "fork", 1, func(string) {})
	require.NoError(t, err)
	require.True(t, r.Same(), "%v", r.Differences)
	// An iteration before the fork is replayed under the other run's name.
	_, err = ReplayIteration(t.Context(), s, device, "fork", 0, func(line string) { t.Errorf("it began: %s", line) })
	require.EqualError(t, err, "iteration 0 is of run again: reprise replay again --iteration 0")

	// Without the snapshot's files the version is rebuilt; what replay reads of
	// the iteration itself it computes.
	flip := func(key string) {
		b, _, err := store.ReadFixed(t.Context(), s, key, store.MaxBody)
		require.NoError(t, err)
		b[len(b)/2] ^= 1
		require.NoError(t, s.Put(t.Context(), key, b, store.PutOptions{}))
	}
	for _, c := range []struct {
		key       string
		iteration int
	}{
		{commits[0].Snapshot.Files["model.safetensors"].Key, 1},
		{commits[0].Run.Spec.Key, 0},
		{commits[0].Run.Base.Key, 0},
	} {
		flip(c.key)
		_, err := replay(c.iteration)
		require.ErrorIs(t, err, store.ErrAltered, c.key)
		require.ErrorContains(t, err, c.key)
		flip(c.key)
	}
	_, err = replay(2)
	require.ErrorIs(t, err, activities.ErrNotFound)

	// Of a build with other programs nothing is compared, also where no iteration before it
	// says which programs it needs.
	plugintest.Needs(t)
	other, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile, Other: model.OtherBuild{Program: "forward"}})
	require.NoError(t, err)
	defer other.Close()
	r, err = ReplayIteration(t.Context(), s, other, "again", 0, func(string) {})
	var differ *activities.ProgramsDiffer
	require.ErrorAs(t, err, &differ)
	require.Len(t, differ.Programs, 1)
	require.Equal(t, "turn-1.forward", differ.Programs[0].Name)
	require.Empty(t, r.Computed)

	// If the record differs from the computation, the difference is reported.
	link, err := store.Head(t.Context(), s, "again")
	require.NoError(t, err)
	m := *link.Manifest
	m.Metrics = map[string]canon.Float{"reward/mean": 7}
	b, err := m.Encode()
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), link.Ref.Key, b, store.PutOptions{}))
	r, err = replay(1)
	require.NoError(t, err)
	require.False(t, r.Same())
	require.Contains(t, r.Differences[0], "metrics")
}

func TestParseRole(t *testing.T) {
	for _, r := range Roles {
		got, err := ParseRole(string(r))
		require.NoError(t, err)
		require.Equal(t, r, got)
		require.True(t, Options{Roles: []Role{r}}.Has(r))
	}
	_, err := ParseRole("gpu")
	require.EqualError(t, err, `"gpu" is no role: workflow, host or device`)
	require.False(t, Options{Roles: []Role{RoleHost}}.Has(RoleDevice))
}

// With a lag each iteration is replayed by itself: it computes the rollout that it made for the next
// one again, and reads the one that was made for it. One worker replays also what others have helped with.
func TestReplayLag(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	s := store.NewMemory()
	for run, dealt := range map[string]string{"late": "", "dealt": `, "pass_rows": 2, "block_rows": 4, "workers": 2`} {
		_, err = train.New(engine, s).Train(t.Context(), run, []byte(`{
		"seed": 1, "iterations": 3,
		`+tinyTask+`
		"rollout": {"groups": 2, "group_size": 4, "turns": 1, "max_new_tokens": 8, "think": false, "lag": 1`+dealt+`},
		"selection": {"method": "all"}, "update": {"micro_batch": 4, "mismatch": {"regime": "decoupled"}}, "evaluation": {"every": 0}
	}`))
		require.NoError(t, err)
		for n := range 3 {
			r, err := ReplayIteration(t.Context(), s, opened, run, n, func(string) {})
			require.NoError(t, err)
			require.True(t, r.Same(), "%s, iteration %d: %v", run, n, r.Differences)
		}
	}
}
