package workers

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workers/train"
)

// searchSpec searches in a lake that leaves nothing to chance; its rest is the search.
const searchSpec = `{
	"seed": 1, "iterations": 1,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 1, "rows": 8}},
	"environment": {"name": "frozenlake", "options": {"size": 2, "slippery": false, "max_actions": 3, "max_actions_per_turn": 1}},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 0},
	"rollout": {"groups": 2, "group_size": 4, "turns": 3, "max_new_tokens": 8, "think": false, "pass_rows": 8, `

// change has a turn name a table with another last row.
func change[R any](of func(*store.TurnRefs) **store.Ref, row func(*R)) func(*testing.T, store.Store, []store.TurnRefs) {
	return func(t *testing.T, s store.Store, turns []store.TurnRefs) {
		t.Helper()
		at := slices.IndexFunc(turns, func(turn store.TurnRefs) bool { return *of(&turn) != nil })
		require.GreaterOrEqual(t, at, 0)
		ref := of(&turns[at])
		rows, err := tables.Get[R](t.Context(), s, **ref)
		require.NoError(t, err)
		row(&rows[len(rows)-1])
		other, err := tables.Put(t.Context(), s, "elsewhere", "other", rows)
		require.NoError(t, err)
		*ref = &other
	}
}

// Replay searches again: it compares every candidate with its score and whether it was kept, and where every
// branch begins. It names the table of a turn that another search would have made, although its digest is right.
func TestReplaySearches(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	choices := func(t *store.TurnRefs) **store.Ref { return &t.Choices }
	forks := func(t *store.TurnRefs) **store.Ref { return &t.Forks }
	for name, search := range map[string]struct {
		spec, table string
		alter       map[string]func(*testing.T, store.Store, []store.TurnRefs)
	}{
		"beam": {`"search": "beam", "beam": 2, "candidates": 2}}`, "choices", map[string]func(*testing.T, store.Store, []store.TurnRefs){
			"a score":  change(choices, func(r *episode.ChoiceRow) { r.Score++ }),
			"a choice": change(choices, func(r *episode.ChoiceRow) { r.Kept = !r.Kept }),
			"a way on": change(choices, func(r *episode.ChoiceRow) { r.Next = append(r.Next, 7) }),
		}},
		"lookahead": {`"search": "lookahead", "candidates": 2}, "stop": {"sampled_tokens": 1}}`, "choices", map[string]func(*testing.T, store.Store, []store.TurnRefs){
			"a choice": change(choices, func(r *episode.ChoiceRow) { r.Kept = !r.Kept }),
		}},
		"uncertain": {`"search": "entropy", "trees": 2}, "credit": {"algorithm": "grpo"}}`, "forks", map[string]func(*testing.T, store.Store, []store.TurnRefs){
			"a draw": change(forks, func(r *episode.ForkRow) { r.Draw += 0.25 }),
		}},
		"trees": {`"search": "tree", "trees": 2, "branches": 1, "expansions": 1}, "credit": {"algorithm": "tree_grpo"}}`, "forks",
			map[string]func(*testing.T, store.Store, []store.TurnRefs){
				"a parent": change(forks, func(r *episode.ForkRow) { r.Parent++ }),
				"a draw":   change(forks, func(r *episode.ForkRow) { r.Draw /= 2 }),
			}},
	} {
		t.Run(name, func(t *testing.T) {
			methodstest.NeedsOf(t, search.spec)
			ctx, s := t.Context(), store.NewMemory()
			_, err := train.New(engine, s).Train(ctx, name, []byte(searchSpec+search.spec))
			require.NoError(t, err)
			head, err := store.Head(ctx, s, name)
			require.NoError(t, err)
			replay := func() Replay {
				t.Helper()
				got, err := ReplayIteration(ctx, s, opened, name, 0, func(string) {})
				require.NoError(t, err)
				return got
			}
			got := replay()
			require.True(t, got.Same(), "%v", got.Differences)

			for what, alter := range search.alter {
				m := *head.Manifest
				m.Turns = slices.Clone(m.Turns)
				alter(t, s, m.Turns)
				b, err := m.Encode()
				require.NoError(t, err)
				require.NoError(t, s.Put(ctx, head.Ref.Key, b, store.PutOptions{}))
				got = replay()
				require.False(t, got.Same(), what)
				require.Contains(t, strings.Join(got.Differences, "\n"), search.table, what)
			}
		})
	}
}
