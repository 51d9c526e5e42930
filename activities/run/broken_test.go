package run

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/selection"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// rollout are groups of four with random rewards, in which each member has two turns of two
// sampled tokens.
func rollout(seed uint64, groups int) []episode.TrajectoryRow {
	r := rand.New(rand.NewPCG(seed, 1))
	var rows []episode.TrajectoryRow
	for i := range groups * 4 {
		key := func() string { return fmt.Sprint(r.IntN(3)) }
		rows = append(rows, episode.TrajectoryRow{
			Row: int32(i), Group: int32(i / 4), Member: int32(i % 4), Environment: "foreign", Weight: 1, Success: r.IntN(2) == 0,
			IDs: make([]int32, 6), PromptLengths: []int32{1, 1}, SampledLengths: []int32{2, 2}, Restarts: []bool{true, false},
			StateKeys: []string{"start", key(), key()}, RolloutLogProbs: make([]float32, 4),
			Rewards: []float64{r.NormFloat64(), r.NormFloat64()}, Penalties: []float64{0, -0.1},
			Actions: []string{"a", "b"}, Executed: []int32{1, 1}, Effective: []int32{1, 1}, Invalid: []int32{0, 0},
		})
	}
	return rows
}

func broke(rows ...int32) []BrokenRow {
	var out []BrokenRow
	for _, row := range rows {
		out = append(out, BrokenRow{Row: row, Turn: 1, Message: "division by zero"})
	}
	return out
}

func TestDrop(t *testing.T) {
	rows := rollout(1, 4)
	require.Nil(t, Drop(rows, nil, 4))
	require.Equal(t, rollout(1, 4), rows, "nothing broke")
	// Of the second group one of four broke, of the third three: one cannot be compared.
	dropped := Drop(rows, broke(5, 8, 9, 11), 4)
	require.Len(t, dropped, 5)
	require.Equal(t, BrokenRow{Row: 10, Turn: -1, Message: "left out with its group: 1 of 4 members are left"}, dropped[3])
	for i, r := range rows {
		out := i == 5 || i >= 8 && i < 12
		require.Equal(t, out, r.Dropped, i)
		require.Equal(t, out, r.Turns() == 0, i)
		require.Equal(t, []int32{int32(i), int32(i / 4), int32(i % 4)}, []int32{r.Row, r.Group, r.Member})
	}
	require.Len(t, episode.Live(rows), 11)
	// Half is enough if it is two; samples of an evaluation stand alone.
	require.Len(t, Drop(rollout(1, 1), broke(0, 1), 4), 2)
	require.Len(t, Drop(rollout(1, 1), broke(0, 1, 2), 1), 3)
}

func TestCheckBroken(t *testing.T) {
	require.NoError(t, CheckBroken(broke(1), 0, 20, 4, 0.05))
	err := CheckBroken(broke(1, 6), 0, 20, 4, 0.05)
	require.ErrorIs(t, err, activities.ErrEnvironmentBroke)
	require.EqualError(t, err, "the environment broke in 2 of 20 episodes, and environment.broken_share is 0.05: "+
		"division by zero (2 times, first in group 0, member 1, turn 1): the environment must be fixed")
}

// Many members that break in one place are one message, with the question of the first and the end of its traceback:
// a pause's reason has room for 1000 characters.
func TestBrokenMessagesOnce(t *testing.T) {
	var rows []BrokenRow
	for n := range int32(30) {
		message := []string{"one", "two", "three", "four", "one"}[n%5]
		rows = append(rows, BrokenRow{Row: n, Turn: 2, Question: fmt.Sprintf("instance %d, asked [\"Up\"]", n),
			Message: message + "\n    " + strings.Join([]string{"File a", "File b", "code", "Error: " + message}, "\n    ")})
	}
	rows[0].Message = "one\n    dropped\n    File a, line 3, in step\n    File b\n    raise\n    Error: one"
	err := CheckBroken(rows, 0, 30, 8, 0)
	require.EqualError(t, err, "the environment broke in 30 of 30 episodes, and environment.broken_share is 0: "+
		`one (12 times, first in group 0, member 0, turn 2, instance 0, asked ["Up"]); two (6 times, first in group 0, member 1, turn 2, instance 1, asked ["Up"]); `+
		`three (6 times, first in group 0, member 2, turn 2, instance 2, asked ["Up"]); 1 other messages: the environment must be fixed`+
		"\n    File a, line 3, in step\n    File b\n    raise\n    Error: one")
}

// A broken episode's question is told from the answers before it.
func TestBrokenQuestions(t *testing.T) {
	opening := []AnswerRow{{Row: 0, Asked: true, Instance: "7", Broken: "x"}, {Row: 1, Asked: true, Instance: "8"}, {Row: 2, Asked: true, Instance: "9"}}
	first := []AnswerRow{{Row: 0}, {Row: 1, Asked: true, Instance: "8", Actions: []string{"Up", "Left"}},
		{Row: 2, Asked: true, Instance: "9", Next: []string{"Down"}, Broken: "y"}}
	second := []AnswerRow{{Row: 0}, {Row: 1, Asked: true, Instance: "8", Next: []string{"Right"}, Broken: "z"}, {Row: 2}}
	broken := Answers{Opening: opening, Turns: [][]AnswerRow{first, second}}.Broken()
	require.Len(t, broken, 3)
	require.Equal(t, "instance 7, at its beginning", broken[0].Question)
	require.Equal(t, `instance 8, after 2 actions that end with "Left", asked ["Right"]`, broken[1].Question)
	require.Equal(t, `instance 9, asked ["Down"]`, broken[2].Question)
}

// A group is left out if fewer than half of its members are left, or fewer than two: below, at and above it.
func TestDropsGroups(t *testing.T) {
	for _, c := range []struct {
		members, broken int
		whole           bool
	}{
		{1, 0, false}, {1, 1, true}, {2, 0, false}, {2, 1, true}, {2, 2, true}, {3, 1, false}, {3, 2, true}, {4, 1, false}, {4, 2, false}, {4, 3, true},
		{5, 2, false}, {5, 3, true}, {6, 3, false}, {6, 4, true}, {7, 3, false}, {7, 4, true},
	} {
		// The group stands between two whole ones, in a later round.
		var rows []episode.TrajectoryRow
		for i := range 3 * c.members {
			rows = append(rows, episode.TrajectoryRow{Row: int32(100 + i), Group: int32(10 + i/c.members), Member: int32(i % c.members), Environment: "game", StateKeys: []string{"s", "t"}, PromptLengths: make([]int32, 1)})
		}
		var bad []BrokenRow
		for n := range c.broken {
			bad = append(bad, BrokenRow{Row: int32(100 + c.members + n), Turn: 2, Message: "division by zero"})
		}
		dropped := Drop(rows, bad, c.members)
		want := c.broken
		if c.whole {
			want = c.members
		}
		require.Len(t, dropped, want, "%+v", c)
		for n, b := range dropped {
			require.EqualValues(t, 100+c.members+n, b.Row, "in their order")
			if n < c.broken {
				require.Equal(t, bad[n], b)
			} else {
				require.EqualValues(t, -1, b.Turn)
				require.Equal(t, fmt.Sprintf("left out with its group: %d of %d members are left", c.members-c.broken, c.members), b.Message)
			}
			r := rows[c.members+n]
			require.Equal(t, episode.TrajectoryRow{Row: b.Row, Group: 11, Member: int32(n), Environment: "game", StateKeys: []string{"s"}, Dropped: true}, r)
		}
		require.Len(t, episode.Live(rows), 3*c.members-want)
		groups := groupsOf(rows, c.members)
		require.Len(t, groups, 3)
		require.Equal(t, []int{c.members, c.members - want, c.members}, []int{len(groups[0]), len(groups[1]), len(groups[2])})
	}
}

// So many episodes may break, and none more; those that were drawn again since count. An error has
// their number.
func TestBrokenShare(t *testing.T) {
	for _, c := range []struct {
		broken, redrawn, episodes int
		share                     float64
		bad                       bool
	}{
		{0, 0, 8, 0, false}, {1, 0, 8, 0, true}, {0, 1, 8, 0, true}, {1, 0, 8, 0.125, false}, {2, 0, 8, 0.125, true}, {1, 1, 8, 0.125, true},
		{1, 1, 8, 0.25, false}, {2, 1, 8, 0.25, true}, {8, 0, 8, 1, false},
	} {
		var rows []int32
		for n := range c.broken {
			rows = append(rows, int32(n))
		}
		err := CheckBroken(broke(rows...), c.redrawn, c.episodes, 4, c.share)
		require.Equal(t, c.bad, err != nil, "%+v", c)
		if c.bad {
			require.ErrorIs(t, err, activities.ErrEnvironmentBroke)
		}
	}
	err := CheckBroken(broke(0, 5, 6, 11, 12, 13), 2, 16, 4, 0.5)
	require.NoError(t, err)
	err = CheckBroken(broke(0, 5, 6, 11, 12, 13), 3, 16, 4, 0.5)
	require.EqualError(t, err, "the environment broke in 9 of 16 episodes, and environment.broken_share is 0.5: "+
		"division by zero (6 times, first in group 0, member 0, turn 1); 3 drawn again: the environment must be fixed")
}

// What broke and what is left out are shares of all episodes.
func TestBrokenMetrics(t *testing.T) {
	m := activities.Metrics{}
	BrokenMetrics(m, broke(1), broke(1, 2, 3), 8)
	require.Equal(t, activities.Metrics{"broken/mean": 0.125, "broken/left_out": 0.375}, m)
	BrokenMetrics(m, nil, nil, 0)
	require.Equal(t, activities.Metrics{"broken/mean": 0, "broken/left_out": 0}, m)
}

// Selection, figures and credit of a rollout with dropped rows are those of the same rows without
// them, to the bit.
func TestDroppedRowsAreAsIfTheyHadNeverBeen(t *testing.T) {
	for seed := range uint64(20) {
		rows := rollout(seed, 6)
		Drop(rows, broke(1, 6, 7, 8, 9, 10, 20), 4) // group 2 is left out whole
		live := episode.Live(rows)
		var ragged selection.Groups
		var of []int
		for g := range 6 {
			var returns []float64
			for _, r := range live {
				if int(r.Group) == g {
					returns = append(returns, r.Return())
				}
			}
			if returns != nil {
				of, ragged.Rewards = append(of, g), append(ragged.Rewards, returns)
			}
		}
		require.Equal(t, []int{0, 1, 3, 4, 5}, of)
		want, err := selection.Select(ragged, selection.Options{Method: "top_fraction", Metric: "reward_std", Order: "largest", Value: 0.5})
		require.NoError(t, err)
		s := spec.Selection{Method: "top_fraction", Metric: "reward_std", Order: "largest", Keep: 0.5, LossScale: "none", Reweight: true}
		kept, weights, err := SelectedGroups(s, rows, 6, 4)
		require.NoError(t, err)
		factors := selection.Reweight(want.Spreads)
		for i, g := range of {
			require.Equal(t, factors[i], weights[g])
		}
		chosen := make([]bool, 6)
		for _, at := range want.Kept {
			chosen[of[at]] = true
		}
		require.Equal(t, chosen, kept)
		members, err := KeptMembers(spec.Selection{Members: 1}, rows, 4)
		require.NoError(t, err)
		for i, r := range rows {
			require.False(t, r.Dropped && members[i])
		}

		task := &Task{Groups: 6, Members: 4}
		m := RolloutMetrics(task, rows)
		require.EqualValues(t, len(live), m["rollout/trajectories"])
		var rewards []float64
		for _, r := range live {
			rewards = append(rewards, r.Reward())
		}
		require.EqualValues(t, Mean(rewards), m["reward/mean"])

		for _, algorithm := range []string{"grpo", "leave_one_out", "gigpo"} {
			if !methodstest.There(algorithm) {
				continue
			}
			for i := range rows {
				rows[i].Selected = !rows[i].Dropped
			}
			o := credit.Options{Algorithm: algorithm, NormalizeByStd: true, Epsilon: 1e-6, Gamma: 0.9, StepWeight: 1}
			advantages := func(rows []episode.TrajectoryRow) [][]float64 {
				in := NewCreditInput(rows).Input
				in.Mask, err = credit.Mask(in.Turns, in.Lengths)
				require.NoError(t, err)
				got, _, err := methods.Compute(in, o)
				require.NoError(t, err)
				return got
			}
			// Groups keep their numbers, which name them and nothing else.
			renumbered := append([]episode.TrajectoryRow(nil), live...)
			for i := range renumbered {
				if renumbered[i].Group > 2 {
					renumbered[i].Group--
				}
			}
			require.Equal(t, advantages(renumbered), advantages(episode.SelectedOf(rows)), algorithm)
		}
	}
}
