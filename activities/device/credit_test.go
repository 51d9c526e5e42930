package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/batch"
)

// credited selects among two turns of four rows, whose replies are given by turn, and gives credit.
// in changes what Credit takes.
func (w *walked) credited(in func(*activities.CreditInput), first, second []string) activities.CreditResult {
	w.t.Helper()
	ctx := w.t.Context()
	one, _, _, _ := w.turn(nil, first...)
	two, _, _, _ := w.turn([]store.TurnRefs{one}, second...)
	selected, err := w.Host.Select(ctx, activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{one, two}})
	require.NoError(w.t, err)
	rows, err := recorded.Selected(ctx, w.store, selected.Trajectories)
	require.NoError(w.t, err)
	scores, err := tables.Put(ctx, w.store, "scores", "scores", quiet(rows, 0))
	require.NoError(w.t, err)
	input := activities.CreditInput{Run: w.Run, Settings: w.Plan.Settings, Trajectories: selected.Trajectories, Scores: &scores}
	if in != nil {
		in(&input)
	}
	out, err := w.Host.Credit(ctx, input)
	require.NoError(w.t, err)
	return out
}

// Who acted is stored also in an iteration that has nothing to learn from.
func TestAgentsWithoutABatch(t *testing.T) {
	left := []string{"Left</answer>", "Left</answer>", "Left</answer>", "Left</answer>"}
	for name, edit := range map[string]string{
		"no row is worth a step":      "selection.least_advantage=1000",
		"nothing but successes, of 0": `update.supervised={"from":"own_successes","share":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWalked(t, `credit.algorithm="dr_mas"`, edit)
			out := w.credited(nil, left, left)
			require.Nil(t, out.Batch)
			require.NotNil(t, out.Tables.Ref(activities.AgentsTable))
			agents, err := tables.Get[run.AgentRow](t.Context(), w.store, *out.Tables.Ref(activities.AgentsTable))
			require.NoError(t, err)
			require.Len(t, agents, 8)
			require.Contains(t, out.Metrics, "agents/first/turns")
		})
	}
}

// Whether a row is worth a step is asked of its advantages, and not of what a scale of the
// selection leaves of them.
func TestLeastAdvantageBeforeTheScale(t *testing.T) {
	right, left := "Right</answer>", "Left</answer>"
	first, second := []string{right, right, left, left}, []string{right, left, left, left}
	// The returns of the group that is kept, one of two, are 3 and 1.
	const kept = `selection={"method":"top_count","count":1,"loss_scale":"linear","least_advantage":1.5}`
	w := newWalked(t, "rollout.format_penalty=0", `credit.algorithm="leave_one_out"`, kept)
	out := w.credited(nil, first, second)
	require.NotNil(t, out.Batch)
	require.Zero(t, out.Metrics["rollout/small_advantages"])
	rows, err := w.kit.ReadBatch(t.Context(), w.store, *out.Batch)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Contains(t, rows[0].Columns[batch.Advantages], float32(1), "(3 − 1) × 1/2")
}

// Successes have the iteration in which they were sampled, also where several iterations learn from
// a rollout, or from successes of earlier ones alone.
func TestOriginsOfSuccesses(t *testing.T) {
	right, left := "Right</answer>", "Left</answer>"
	succeeds, fails := []string{right, right, left, left}, []string{left, left, left, left}
	origins := func(w *walked, out activities.CreditResult) (of []int32) {
		rows, err := w.kit.ReadBatch(t.Context(), w.store, *out.Batch)
		require.NoError(t, err)
		for _, r := range rows {
			of = append(of, r.Origin)
		}
		return of
	}
	const alone = `update.supervised={"from":"own_successes","share":1}`

	w := newWalked(t, alone, "freshness.reuse=3")
	out := w.credited(func(in *activities.CreditInput) {
		in.Iteration, in.Rollout = 5, &store.RolloutRef{Iteration: 4, Update: 1}
	}, succeeds, succeeds)
	require.Equal(t, []int32{4, 4}, origins(w, out))
	require.EqualValues(t, 1, out.Metrics["training/staleness_max"])

	w = newWalked(t, alone, "freshness.replay_iterations=2")
	var replay []store.Ref
	for iteration, replies := range [][]string{succeeds, fails, fails} {
		out = w.credited(func(in *activities.CreditInput) { in.Iteration, in.Replay = iteration, replay }, replies, replies)
		require.Equal(t, []int32{0, 0}, origins(w, out), "iteration %d: each once", iteration)
		replay = append([]store.Ref{*out.Batch}, replay...)
		replay = replay[:min(len(replay), 2)]
	}
}
