package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Every algorithm of credit learns from several turns, exactly: the first ratio is
// 1, and the same run twice has the same bits.
func TestAlgorithmsIterate(t *testing.T) {
	for _, algorithm := range []string{
		spec.CreditGRPO, spec.CreditDrGRPO, spec.CreditLeaveOneOut, spec.CreditReinforcePP, spec.CreditReinforcePPBaseline, spec.CreditGiGPO,
	} {
		t.Run(algorithm, func(t *testing.T) {
			document := tinySpec(t, `environment.name="`+walkName+`"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", `credit.algorithm="`+algorithm+`"`)
			r := begun(t, algorithm, document)
			in := r.iterate(t)
			require.Zero(t, in.Metrics["actor/ratio_max"])
			require.False(t, in.Update.Skipped)
			again := begun(t, algorithm, document)
			again.iterate(t)
			require.Equal(t, r.head, again.head)
		})
	}
}

// handPlayed is a group of two whose members part in the second turn, and a group
// in which nothing differs.
func handPlayed(t *testing.T, edits ...string) (*walked, []TrajectoryRow) {
	w := newWalked(t, append([]string{"rollout.format_penalty=0"}, edits...)...)
	first, _, _, _ := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
	second, _, _, _ := w.turn([]store.TurnRefs{first}, "Right</answer>", "Left</answer>", "Left</answer>", "Left</answer>")
	selected, err := w.Host.Select(t.Context(), SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first, second}})
	require.NoError(t, err)
	rows, err := selectedRows(t.Context(), w.store, selected.Trajectories)
	require.NoError(t, err)
	return w, rows
}

// turnValues are the advantages of each turn, which all its tokens share.
func turnValues(t *testing.T, r TrajectoryRow, tokens []float64) []float64 {
	t.Helper()
	var out []float64
	for _, n := range r.SampledLengths {
		for _, a := range tokens[:n] {
			require.Equal(t, tokens[0], a)
		}
		out = append(out, tokens[0])
		tokens = tokens[n:]
	}
	require.Empty(t, tokens)
	return out
}

func TestAdvantagesOfTurns(t *testing.T) {
	_, rows := handPlayed(t)
	require.Equal(t, []float64{1, 2}, rows[0].Rewards)
	require.Equal(t, []float64{1, 0}, rows[1].Rewards)
	require.Equal(t, []string{"at 0", "at 1", "at 2"}, rows[0].StateKeys)
	got, err := advantages(spec.Credit{Algorithm: spec.CreditDrGRPO}, rows)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, turnValues(t, rows[0], got[0]))
	require.Equal(t, []float64{0, 0}, turnValues(t, rows[2], got[2]))

	// Both began in the same states: at 0 with returns 3 and 1 (γ = 1), at 1 with 2
	// and 0; each turn's anchor has both.
	got, err = advantages(spec.Credit{Algorithm: spec.CreditGiGPO, Gamma: 1, StepWeight: 2}, rows)
	require.NoError(t, err)
	require.Equal(t, []float64{1 + 2*1, 1 + 2*1}, turnValues(t, rows[0], got[0]))
	require.Equal(t, []float64{-3, -3}, turnValues(t, rows[1], got[1]))

	rows[0].Weight, rows[1].Weight = 0.5, 0.5
	got, err = advantages(spec.Credit{Algorithm: spec.CreditLeaveOneOut}, rows)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, turnValues(t, rows[0], got[0]), "twice what the mean gives, half of it by the weight")
	_, err = advantages(spec.Credit{Algorithm: "none"}, rows)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestSelections(t *testing.T) {
	for _, c := range []struct {
		edits []string
		rows  []int32
		first float64 // weight of the first row
	}{
		{nil, []int32{0, 1, 2, 3}, 1},
		{[]string{`selection={"method":"top_fraction","keep":0.5}`}, []int32{0, 1}, 1},
		{[]string{`selection={"method":"top_count","count":1,"order":"smallest"}`}, []int32{2, 3}, 1},
		{[]string{`selection={"method":"top_p","p":0.9}`}, []int32{0, 1}, 1},
		{[]string{`selection={"method":"all","drop_flat":true}`}, []int32{0, 1}, 1},
		{[]string{`selection={"method":"all","drop_flat":true,"floor":100}`}, nil, 0},
		{[]string{`selection={"method":"top_count","count":1,"loss_scale":"linear"}`}, []int32{0, 1}, 0.5},
		{[]string{`selection={"method":"all","reweight":true}`}, []int32{0, 1, 2, 3}, 1},
	} {
		_, rows := handPlayed(t, c.edits...)
		var got []int32
		for _, r := range rows {
			got = append(got, r.Row)
		}
		require.Equal(t, c.rows, got, c.edits)
		if len(rows) > 0 {
			require.Equal(t, c.first, rows[0].Weight, c.edits)
		}
	}
	_, rows := handPlayed(t, `selection={"method":"all","reweight":true}`)
	require.Zero(t, rows[2].Weight, "a flat group counts nothing")
}

// Long turns cost: DAPO's soft punishment is part of the penalty, never of the reward.
func TestOverlongTurns(t *testing.T) {
	w := newWalked(t, "rollout.format_penalty=0", "rollout.overlong_cache=16")
	first, _, s1, _ := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer> and so on and on")
	require.NotEmpty(t, first.Step.Key)
	n := float64(len(w.tok.Encode("Right</answer>")) + 1)
	require.InDelta(t, -n/16, s1[0].Penalty, 1e-12)
	require.Equal(t, 1.0, s1[0].Reward)
	require.Less(t, s1[3].Penalty, s1[2].Penalty)
	require.Equal(t, canon.Float(0), canon.Float(s1[3].Reward))
}

// Every form of the loss and of the steps learns exactly, too.
func TestUpdatesIterate(t *testing.T) {
	for name, edits := range map[string][]string{
		"gspo":        {`update.ratio="sequence"`, `update.aggregation="seq_mean_token_mean"`},
		"dual clip":   {"update.dual_clip=3"},
		"dr grpo":     {`credit.algorithm="dr_grpo"`, `update.aggregation="constant"`},
		"clip turns":  {`update.clip_turns=[{"low":0.1,"high":0.2},{"low":0.2,"high":0.28}]`},
		"minibatches": {"update.epochs=2", "update.minibatch=4", `update.decay="cosine"`, "update.warmup_iterations=2"},
	} {
		t.Run(name, func(t *testing.T) {
			document := tinySpec(t, append([]string{`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", "snapshot.every=3"}, edits...)...)
			r := begun(t, "form", document)
			first := r.iterate(t)
			second := r.iterate(t)
			require.EqualValues(t, 8, first.Update.Rows)
			if name == "minibatches" {
				require.EqualValues(t, 4, first.Update.Steps, "two epochs of two")
				require.InDelta(t, 1.5e-4, float64(first.Metrics["actor/lr"]), 1e-9, "half of the warm-up")
				require.InDelta(t, 3e-4, float64(second.Metrics["actor/lr"]), 1e-9)
				m, err := store.ReadManifest(t.Context(), r.store, *r.head)
				require.NoError(t, err)
				require.EqualValues(t, 8, m.Update.Steps)
			} else {
				require.Zero(t, first.Metrics["actor/ratio_max"])
			}
			// Rebuilt from the batches it is the same.
			state := r.state
			r.forget(t)
			require.Equal(t, state, r.restore(t, RestoreInput{}).State)
		})
	}
}
