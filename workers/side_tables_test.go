package workers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// partsSpec has rewards in parts of every stage, and one that reads texts of the iteration
// before.
const partsSpec = `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 1, "rows": 8}},
	"environment": {"name": "frozenlake", "options": {"size": 2, "slippery": false, "max_actions": 2}},
	"rollout": {"groups": 2, "group_size": 2, "turns": 2, "max_new_tokens": 8, "think": true},
	"rewards": [{"name": "state"}, {"name": "progress"}, {"name": "checklist", "weight": 0.5}, {"name": "length", "weight": 0.1}],
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 0}
}`

// Side tables are as safe as the trajectories beside them: verify names one that is gone or
// altered, gc keeps them, and replay computes them again and compares.
func TestSideTables(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx, s := t.Context(), store.NewMemory()
	_, err = train.New(engine, s).Train(ctx, "parts", []byte(partsSpec))
	require.NoError(t, err)
	head, err := store.Head(ctx, s, "parts")
	require.NoError(t, err)
	chain, err := store.LoadChain(ctx, s, head.Ref)
	require.NoError(t, err)
	require.Len(t, chain, 2)
	replay := func() (Replay, error) {
		return ReplayIteration(ctx, s, opened, "parts", 1, func(string) {})
	}
	got, err := replay()
	require.NoError(t, err)
	require.True(t, got.Same(), "%v", got.Differences)

	verify := func() []store.Problem {
		t.Helper()
		report, err := store.Verify(ctx, s, "parts", nil)
		require.NoError(t, err)
		return report.Problems
	}
	require.Empty(t, verify())
	garbage, err := store.FindGarbage(ctx, s, "parts", store.GarbageOptions{Grace: -1, Ended: true})
	require.NoError(t, err)
	for _, name := range []string{activities.ComponentsTable.Name, activities.TextsTable.Name} {
		for _, link := range chain {
			ref, ok := link.Manifest.Artifacts[name]
			require.True(t, ok, name)
			for _, o := range garbage.Objects {
				require.NotEqual(t, ref.Key, o.Key, "gc takes what a manifest names")
			}
			body, _, err := store.ReadFixed(ctx, s, ref.Key, store.MaxBody)
			require.NoError(t, err)
			for kind, damage := range map[string]func() error{
				store.ProblemMissing: func() error { return s.Delete(ctx, ref.Key) },
				store.ProblemAltered: func() error {
					other := append([]byte(nil), body...)
					other[len(other)/2] ^= 1
					return s.Put(ctx, ref.Key, other, store.PutOptions{})
				},
			} {
				require.NoError(t, damage())
				found := verify()
				require.Len(t, found, 1, "%s of %s", kind, name)
				require.Equal(t, kind, found[0].Kind)
				require.Equal(t, ref.Key, found[0].Key)
				require.Equal(t, `artifacts["`+name+`"]`, found[0].Role)
				require.NoError(t, s.Put(ctx, ref.Key, body, store.PutOptions{}))
			}
		}
	}
	require.Empty(t, verify())

	// The texts of the iteration before are read again: without them nothing is compared.
	past := chain[0].Manifest.Artifacts[activities.TextsTable.Name]
	body, _, err := store.ReadFixed(ctx, s, past.Key, store.MaxBody)
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, past.Key))
	_, err = replay()
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, past.Key)
	require.NoError(t, s.Put(ctx, past.Key, body, store.PutOptions{}))

	// A table that another reward would have given is found, although its digest is right.
	m := *head.Manifest
	rows, err := tables.Get[run.ComponentRow](ctx, s, m.Artifacts[activities.ComponentsTable.Name])
	require.NoError(t, err)
	require.Equal(t, "state", rows[0].Component)
	rows[0].Value++
	paid, err := tables.Put(ctx, s, "elsewhere", activities.ComponentsTable.Name, rows)
	require.NoError(t, err)
	m.Artifacts = map[string]store.Ref{activities.ComponentsTable.Name: paid, activities.TextsTable.Name: m.Artifacts[activities.TextsTable.Name]}
	b, err := m.Encode()
	require.NoError(t, err)
	require.NoError(t, s.Put(ctx, head.Ref.Key, b, store.PutOptions{}))
	got, err = replay()
	require.NoError(t, err)
	require.False(t, got.Same())
	require.Contains(t, got.Differences[0], "components")
}
