package workers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// codeSpec asks for functions of one step, twice.
const codeSpec = `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1, "tokenizer": 2},
		"warm_start": {"steps": 16, "rows": 8, "learning_rate": 0.02}},
	"environment": {"name": "code", "options": {"levels": "1", "about": "numbers", "examples": 0, "tries": 2, "reward": "share", "seconds": 10}},
	"rollout": {"groups": 2, "group_size": 4, "turns": 2, "max_new_tokens": 24, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 2, "instances": 4}
}`

// A run whose environment runs programs is as exact as another: each program is run once, in a process of its own, and
// everything later reads what was recorded.
func TestCode(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx := t.Context()
	s := store.NewMemory()
	r := train.New(engine, s)
	asker := &counting{ToolAsker: r.Host.Tools[starlark.Name]}
	r.Host.Tools[starlark.Name] = asker
	_, err = r.Train(ctx, "code", []byte(codeSpec))
	require.NoError(t, err)
	asked := int(asker.asked.Load())
	require.Positive(t, asked)

	head, err := store.Head(ctx, s, "code")
	require.NoError(t, err)
	chain, err := store.LoadChain(ctx, s, head.Ref)
	require.NoError(t, err)
	recorded, tried := 0, 0
	count := func(turns []store.TurnRefs) {
		for k, turn := range turns {
			rows, err := tables.Get[run.CallRow](ctx, s, *turn.Calls)
			require.NoError(t, err)
			for _, r := range rows {
				recorded++
				require.EqualValues(t, run.GradeCall, r.Call)
				require.Equal(t, "code", r.Tool)
				require.NotEmpty(t, r.Answer)
				if k > 0 {
					tried++
				}
			}
		}
	}
	for _, link := range chain {
		count(link.Manifest.Turns)
		for _, e := range link.Manifest.Evaluations {
			count(e.Turns)
		}
	}
	require.Equal(t, recorded, asked, "each program is run once")
	require.Positive(t, tried, "a program that fails is followed by another")
	m := chain[1].Manifest
	require.Positive(t, float64(m.Metrics["train/code/programs"]))
	require.NotContains(t, m.Metrics, "tools/calls")

	got, err := ReplayIteration(ctx, s, opened, "code", 1, func(string) {})
	require.NoError(t, err)
	require.True(t, got.Same(), "%v", got.Differences)
	require.EqualValues(t, asked, asker.asked.Load(), "a replay asks nothing")

	// A worker that ended before it stored the table finds the answers, and asks nothing.
	found, err := r.Host.Find(ctx, activities.FindInput{Run: "code", Version: new(2)})
	require.NoError(t, err)
	for k, turn := range m.Turns {
		in := activities.CallToolsInput{Run: found.Run, Turn: k + 1, Turns: m.Turns[:k], Rollout: activities.Rollout{Iteration: 1}, Generate: turn.Generate}
		require.NoError(t, s.Delete(ctx, turn.Calls.Key))
		again, err := r.Host.CallTools(ctx, in)
		require.NoError(t, err)
		require.Equal(t, *turn.Calls, again.Table)
	}
	require.EqualValues(t, asked, asker.asked.Load())

	// Asked again, children say the same; and if one does not, that is named.
	drifts, compared, err := r.Host.Drifts(ctx, found.Run, m)
	require.NoError(t, err)
	require.Empty(t, drifts)
	require.Positive(t, compared)
	asker.says = "something else"
	drifts, _, err = r.Host.Drifts(ctx, found.Run, m)
	require.NoError(t, err)
	require.NotEmpty(t, drifts)
	require.Contains(t, drifts[0].String(), "answer about the action in code: recorded ")
	require.Contains(t, drifts[0].String(), `now "something else"`)

	report, err := store.Verify(ctx, s, "code", nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	garbage, err := store.FindGarbage(ctx, s, "code", store.GarbageOptions{Grace: -1, Ended: true})
	require.NoError(t, err)
	single := 0
	for _, o := range garbage.Objects {
		require.NotContains(t, o.Key, ".calls.")
		if strings.Contains(o.Key, "-grade.") {
			single++
		}
	}
	require.Positive(t, single, "answers that are in a table are no longer needed by themselves")
}
