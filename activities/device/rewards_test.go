package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Two members of a group part in the second turn; the modules pay what the environment does
// not. Selection and credit see both, the figures the environment's alone.
func TestComponentsOfARollout(t *testing.T) {
	methodstest.Needs(t, "dr_grpo")
	play := func(edits ...string) (*walked, activities.SelectResult) {
		w := newWalked(t, append([]string{"rollout.format_penalty=0"}, edits...)...)
		first, _, _, _ := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
		second, _, _, _ := w.turn([]store.TurnRefs{first}, "Right</answer>", "Left</answer>", "Left</answer>", "nothing")
		out, err := w.Host.Select(t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first, second}})
		require.NoError(t, err)
		return w, out
	}
	_, plain := play()
	require.Empty(t, plain.Tables)

	w, out := play(`rewards=[{"name":"checklist","weight":-2,"options":{"items":"valid 0.25, formatted 0.75","level":"turn"}},{"name":"length"}]`)
	require.Equal(t, plain.Trajectories.Content, out.Trajectories.Content, "the columns and rows of trajectories stay")
	parts, err := tables.Get[run.ComponentRow](t.Context(), w.store, *out.Tables.Ref(activities.ComponentsTable))
	require.NoError(t, err)
	require.Len(t, parts, 4*2*2)
	require.Equal(t, []run.ComponentRow{
		{Row: 0, Turn: 0, Component: "checklist", Weight: -2, Value: 1}, {Row: 0, Turn: 0, Component: "length", Weight: 1},
		{Row: 0, Turn: 1, Component: "checklist", Weight: -2}, {Row: 0, Turn: 1, Component: "length", Weight: 1},
	}, parts[:4])
	rows, err := run.ReadTrajectories(t.Context(), w.store, out.Trajectories, out.Tables.Ref(activities.ComponentsTable))
	require.NoError(t, err)
	require.Equal(t, []float64{-2, 0}, rows[0].Added)
	require.Equal(t, rows[0].Penalised()-2, rows[0].Return())
	require.Equal(t, -1., rows[0].TurnReward(0), "1 of the environment")
	for name, v := range plain.Metrics {
		require.Equal(t, v, out.Metrics[name], name)
	}
	require.Equal(t, canon.Float(1), out.Metrics["reward/checklist/mean"])
	mean := 0.0
	for _, r := range rows {
		mean += r.Return() / 4
	}
	require.InDelta(t, mean, float64(out.Metrics["reward/weighted_mean"]), 1e-12)
	got, err := advantagesOf(spec.Credit{Algorithm: "dr_grpo"}, rows)
	require.NoError(t, err)
	require.InDelta(t, (rows[0].Return()-rows[1].Return())/2, turnValues(t, rows[0], got[0])[0], 1e-12)

	parts[0].Turn = 2
	require.ErrorIs(t, run.AddComponents(rows, parts), store.ErrInvalid)
	require.ErrorIs(t, run.AddComponents(rows[:1], parts[2:]), store.ErrInvalid)
}

// A group in which the environment's rewards do not vary is selected for what the modules
// paid in it.
func TestSelectionReadsComponents(t *testing.T) {
	selected := func(edits ...string) []episode.TrajectoryRow {
		w := newWalked(t, append([]string{"rollout.format_penalty=0", `selection={"method":"all","drop_flat":true}`}, edits...)...)
		first, _, _, _ := w.turn(nil, "Left</answer>", "Left</answer> and", "Left</answer>", "Left</answer>")
		out, err := w.Host.Select(t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first}})
		require.NoError(t, err)
		rows, err := recorded.Selected(t.Context(), w.store, out.Trajectories)
		require.NoError(t, err)
		return rows
	}
	require.Empty(t, selected())
	require.Empty(t, selected(`rewards=[{"name":"checklist","options":{"items":"acted 1"}}]`))
	require.Len(t, selected(`rewards=[{"name":"length","weight":0}]`), 0)
}

// Runs with rewards in parts are as exact as others: twice the same, rebuilt from the
// batches, and with the texts of the iteration before in the next one.
func TestRewardsIterate(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"state": {
			`environment={"name":"frozenlake","options":{"size":2,"slippery":false,"max_actions":4}}`, "rollout.think=true", "diagnostics.thoughts=true",
			`rewards=[{"name":"state"},{"name":"progress","weight":0.5,"options":{"form":"gains"}},{"name":"length","weight":0.1,"options":{"of":"thought"}}]`,
		},
		"tools": {
			`environment={"name":"countdown","options":{"min_numbers":2,"max_numbers":2,"max_number":9,"calculator":1}}`,
			`rewards=[{"name":"tools"},{"name":"checklist","options":{"items":"called 0.4, call_valid 0.6","level":"turn"}}]`,
		},
		"shared": {`rewards=[{"name":"length"},{"name":"checklist","options":{"level":"turn"}}]`, "freshness.online=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := tinySpec(t, append([]string{`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0"}, edits...)...)
			again := begun(t, "rewards", document)
			again.iterate(t)
			again.iterate(t)
			r := begun(t, "rewards", document)
			first, second := r.iterate(t), r.iterate(t)
			require.Equal(t, r.head, again.head)
			require.Zero(t, first.Metrics["actor/ratio_max"])
			m, err := store.ReadManifest(t.Context(), r.store, *r.head)
			require.NoError(t, err)
			require.Contains(t, second.Tables, activities.ComponentsTable.Name)
			require.Equal(t, second.Tables, activities.Tables(m.Artifacts))
			switch name {
			case "shared":
				require.Equal(t, first.Tables.OfRollout(), second.Tables.OfRollout(), "the rollout is the same")
				require.NotEmpty(t, first.Rollout)
				require.Equal(t, second.Tables.OfRollout(), first.Next().Tables)
			case "tools":
				require.Contains(t, first.Metrics, "reward/tools/mean")
				require.Contains(t, first.Metrics, "train/countdown/calculate_calls")
			default:
				require.Contains(t, first.Metrics, "thought/length_mean")
				require.Contains(t, first.Metrics, "thought/claims")
				require.Contains(t, second.Tables, activities.TextsTable.Name)
				head, err := run.FindHead(t.Context(), r.store, r.Run.ID, nil)
				require.NoError(t, err)
				require.Equal(t, second.Tables.OfNext(), head.Tables)
			}
			state := r.state
			r.forget(t)
			require.Equal(t, state, r.restore(t, activities.RestoreInput{}).State)
		})
	}
}
