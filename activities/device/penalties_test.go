package device

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// penalised are groups of two rows of so many turns whose rewards are all equal: in
// each group the rows have the penalties given, [groups][rows][turns].
func penalised(penalties ...[2][]float64) []episode.TrajectoryRow {
	var out []episode.TrajectoryRow
	for g, members := range penalties {
		for m, p := range members {
			r := episode.TrajectoryRow{Row: int32(2*g + m), Group: int32(g), Member: int32(m), Penalties: p, Weight: 1, StateKeys: []string{"start"}}
			for k := range p {
				r.Rewards = append(r.Rewards, 1)
				r.IDs = append(r.IDs, 7, 8, 9)
				r.PromptLengths, r.SampledLengths = append(r.PromptLengths, 1), append(r.SampledLengths, 2)
				r.RolloutLogProbs = append(r.RolloutLogProbs, -1, -1)
				r.StateKeys = append(r.StateKeys, fmt.Sprint("state ", k))
			}
			out = append(out, r)
		}
	}
	return out
}

// without are the penalties of rows that have none.
func without(turns int) []float64 { return make([]float64, turns) }

// at are penalties of one turn alone.
func at(turns, turn int, p float64) []float64 {
	out := without(turns)
	out[turn] = p
	return out
}

// Groups are ranked by the returns with the penalties of every turn in them, by each
// method, also where the rollout is filled up with groups that vary.
func TestGroupsAreRankedByPenalisedReturns(t *testing.T) {
	const turns = 3
	w := newWalked(t)
	flat := [2][]float64{without(turns), without(turns)}
	alike := [2][]float64{at(turns, 0, -0.5), at(turns, 0, -0.5)}
	methods := []spec.Selection{
		{Method: "top_count", Metric: "reward_std", Order: "largest", LossScale: "none", Count: 1},
		{Method: "top_fraction", Metric: "reward_std", Order: "largest", LossScale: "none", Keep: 0.25},
		{Method: "all", Metric: "reward_std", Order: "largest", LossScale: "none", DropFlat: true},
		{Method: "top_p", Metric: "reward_std", Order: "largest", LossScale: "none", P: 0.9},
	}
	for turn := range turns {
		varied := [2][]float64{without(turns), at(turns, turn, -0.1)}
		rows := penalised(flat, alike, varied, flat)
		for _, s := range methods {
			kept, _, err := run.SelectedGroups(s, rows, 4, 2)
			require.NoError(t, err)
			require.Equal(t, []bool{false, false, true, false}, kept, "%s, a penalty in turn %d", s.Method, turn+1)

			s.Resample = 4
			choice, err := run.Choose(w.kit, s, penalised(alike, varied), w.kit.Training)
			require.NoError(t, err)
			require.True(t, choice.More, "%s: one of two groups varies", s.Method)
			s.Resample = 2
			choice, err = run.Choose(w.kit, s, rows, w.kit.Training)
			require.NoError(t, err)
			require.False(t, choice.More)
			require.Equal(t, []bool{false, false, true, false}, choice.Kept, "%s, a penalty in turn %d", s.Method, turn+1)
		}
	}
	// Penalties that add up to the same vary as little as none, whichever turn they are of.
	even := [2][]float64{at(turns, 0, -0.25), at(turns, 2, -0.25)}
	kept, _, err := run.SelectedGroups(methods[2], penalised(even, flat), 2, 2)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false}, kept)
	// A reward may make up for a penalty.
	rows := penalised(flat, [2][]float64{without(turns), at(turns, 1, -0.5)})
	rows[3].Rewards[2] += 0.5
	kept, _, err = run.SelectedGroups(methods[2], rows, 2, 2)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false}, kept)
}

// The same by the activity, of rows that were played: equal rewards, and a group in
// which one reply could not be read.
func TestSelectSeesThePenalties(t *testing.T) {
	for turn := range 2 {
		w := newWalked(t, `selection={"method":"top_count","count":1}`)
		require.Equal(t, -0.1, w.kit.Train.Rollout.FormatPenalty)
		says := [][]string{{"Left</answer>", "Left</answer>", "Left</answer>", "Left</answer>"}, {"Left</answer>", "Left</answer>", "Left</answer>", "Left</answer>"}}
		says[turn][3] = "Up</answer>"
		first, _, _, _ := w.turn(nil, says[0]...)
		second, _, _, _ := w.turn([]store.TurnRefs{first}, says[1]...)
		selected, err := w.Host.Select(t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first, second}})
		require.NoError(t, err)
		rows, err := recorded.Selected(t.Context(), w.store, selected.Trajectories)
		require.NoError(t, err)
		require.Len(t, rows, 2)
		require.EqualValues(t, 1, rows[0].Group, "a penalty in turn %d", turn+1)
		require.Equal(t, []float64{0, 0}, rows[1].Rewards)
		require.Equal(t, -0.1, rows[1].Penalties[turn])
		require.Zero(t, rows[1].Penalties[1-turn])
	}
}

// Credit sees each turn's penalty in that turn's reward, and all of them in the return.
func TestCreditSeesThePenalties(t *testing.T) {
	methodstest.Needs(t, "dr_grpo", "reinforce_pp", "gigpo")
	const turns = 3
	for turn := range turns {
		rows := penalised([2][]float64{without(turns), at(turns, turn, -0.5)})
		l := run.NewCreditInput(rows)
		want := []float64{1, 1, 1}
		require.Equal(t, want, l.Rewards[0])
		want[turn] = 0.5
		require.Equal(t, want, l.Rewards[1], "a penalty in turn %d", turn+1)
		require.Equal(t, []float64{3, 2.5}, l.Returns)

		// By returns: 3 and 2.5 about their mean.
		got, err := advantagesOf(spec.Credit{Algorithm: "dr_grpo"}, rows)
		require.NoError(t, err)
		require.Equal(t, []float64{-0.25, -0.25, -0.25}, turnValues(t, rows[1], got[1]))
		// By turns: each turn's return is the reward from there on, 3, 2 and 1 without.
		left := []float64{3, 2, 1}
		for k := 0; k <= turn; k++ {
			left[k] -= 0.5
		}
		for _, algorithm := range []string{"gae", "turn_gae"} {
			s := spec.Settings{Credit: spec.Credit{Algorithm: algorithm, Gamma: 1, Lambda: 1, TurnGamma: 1, TurnLambda: 1}}
			of, err := lessonOf(s, rows, quiet(rows, 0))
			require.NoError(t, err)
			require.Equal(t, []float64{3, 2, 1}, turnValues(t, rows[0], of.Returns[0]), algorithm)
			require.Equal(t, left, turnValues(t, rows[1], of.Returns[1]), "%s, a penalty in turn %d", algorithm, turn+1)
		}
		got, err = advantagesOf(spec.Credit{Algorithm: "reinforce_pp", Gamma: 1}, rows)
		require.NoError(t, err)
		require.Greater(t, turnValues(t, rows[0], got[0])[turn], turnValues(t, rows[1], got[1])[turn], "a penalty in turn %d", turn+1)
		// GiGPO compares the turns that begin in one state: turns 1 to 3 with their like.
		got, err = advantagesOf(spec.Credit{Algorithm: "gigpo", Gamma: 1, StepWeight: 1}, rows)
		require.NoError(t, err)
		for k, a := range turnValues(t, rows[1], got[1]) {
			own := -0.25 // of the whole episode
			if k <= turn {
				own -= 0.25 // and of what was left at this turn
			}
			require.Equal(t, own, a, "turn %d, a penalty in turn %d", k+1, turn+1)
		}
	}
}

// The values of initial states include the penalties too.
func TestStateValuesSeeThePenalties(t *testing.T) {
	r := resolved(t, "worth", tinySpec(t, `credit={"algorithm":"state_baseline","baseline_rate":0}`))
	settings := r.Plan.Settings
	after := activities.Tables{}
	_, err := run.ObserveStates(t.Context(), r.Host.Store, activities.CreditInput{Run: r.Run, Settings: settings}, "runs/worth", penalised([2][]float64{at(2, 0, -0.5), at(2, 1, -0.25)}), nil, after)
	require.NoError(t, err)
	values, err := run.ReadTable[run.StateValueRow](t.Context(), r.store, after, activities.StatesTable)
	require.NoError(t, err)
	require.Equal(t, []run.StateValueRow{{StateKey: "start", Count: 2, Value: 1.625}}, values)
}
