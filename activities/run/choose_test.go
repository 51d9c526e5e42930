package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// pairs are two groups of two; the second varies more, and a limit cut one of its members.
func pairs() []episode.TrajectoryRow {
	row := func(reward float64, tokens int32, cut bool) episode.TrajectoryRow {
		return episode.TrajectoryRow{Rewards: []float64{reward}, Penalties: []float64{0}, SampledLengths: []int32{tokens}, Truncated: cut}
	}
	return []episode.TrajectoryRow{row(0, 5, false), row(1, 3, false), row(3, 8, true), row(0, 2, false)}
}

func TestTruncatedGroupsAreLeftOut(t *testing.T) {
	s := spec.Selection{Method: "top_count", Count: 1, LossScale: "none"}
	kept, _, err := SelectedGroups(s, pairs(), 2, 2)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, kept)
	s.DropTruncated = true
	kept, _, err = SelectedGroups(s, pairs(), 2, 2)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, kept)
}

func TestKeptMembers(t *testing.T) {
	for metric, want := range map[string][]bool{
		"": {false, true, false, true}, "shortest": {false, true, false, true}, "reward_per_token": {false, true, true, false},
		"return":    {false, true, true, false},
		"deviation": {true, false, true, false}, // equal members rank by index
	} {
		kept, err := KeptMembers(spec.Selection{Members: 1, MemberMetric: metric}, pairs(), 2)
		require.NoError(t, err)
		require.Equal(t, want, kept, metric)
	}
	kept, err := KeptMembers(spec.Selection{}, pairs(), 2)
	require.NoError(t, err)
	require.Nil(t, kept, "all of them")
	_, err = KeptMembers(spec.Selection{Members: 1, MemberMetric: "luck"}, pairs(), 2)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// scored are four groups of two whose metrics differ: each metric has a first and a last group of its own.
func scored() []episode.TrajectoryRow {
	row := func(reward, exact float64, logProbs []float32, lengths ...int32) episode.TrajectoryRow {
		return episode.TrajectoryRow{Rewards: []float64{reward}, Penalties: []float64{0}, Entropy: exact, RolloutLogProbs: logProbs, SampledLengths: lengths, PromptLengths: make([]int32, len(lengths))}
	}
	rows := []episode.TrajectoryRow{
		row(0, .2, []float32{-1, -1, -1, -1}, 2, 2), row(4, .2, []float32{-1, -1, -1, -1}, 1, 3),
		row(3, .9, []float32{-2}, 1), row(4, .9, []float32{-2.5, -2.5}, 2),
		row(1, .1, []float32{-.125}, 1), row(1.5, .1, []float32{-.875, -.875, -.875}, 3),
		row(0, .3, []float32{-4}, 1), row(.25, .3, []float32{-4}, 1),
	}
	for i := range rows {
		rows[i].Row, rows[i].Group, rows[i].Member = int32(i), int32(i/2), int32(i%2)
	}
	return rows
}

// keptGroups are the numbers of the groups that are kept.
func keptGroups(kept []bool) (out []int) {
	for g, yes := range kept {
		if yes {
			out = append(out, g)
		}
	}
	return out
}

// Each metric ranks the groups by what it says: the first and the last group of it are kept. An entropy is higher
// where the policy was less certain, and is a mean over the tokens of a row.
func TestSelectionByEachMetric(t *testing.T) {
	for _, c := range []struct {
		metric            string
		largest, smallest int
	}{
		{"", 0, 3}, {"reward_std", 0, 3}, {"reward", 1, 3}, {"entropy", 3, 2}, {"entropy_std", 2, 0}, {"exact_entropy", 1, 2}, {"length", 0, 3},
	} {
		for order, want := range map[string]int{"largest": c.largest, "smallest": c.smallest} {
			kept, weights, err := SelectedGroups(spec.Selection{Method: "top_count", Metric: c.metric, Order: order, Count: 1, LossScale: "none"}, scored(), 4, 2)
			require.NoError(t, err)
			require.Equal(t, []int{want}, keptGroups(kept), "%s, %s", c.metric, order)
			require.Equal(t, []float64{1, 1, 1, 1}, weights)
		}
	}
	// Returns have the penalties and the components, each once.
	rows := scored()
	for i := range rows {
		rows[i].Added = []float64{0}
	}
	rows[6].Penalties[0], rows[7].Added[0] = -1, 4
	kept, _, err := SelectedGroups(spec.Selection{Method: "top_count", Count: 1, LossScale: "none"}, rows, 4, 2)
	require.NoError(t, err)
	require.Equal(t, []int{3}, keptGroups(kept), "5.25 apart")
	rows[7].Added[0] = 2.5
	kept, _, err = SelectedGroups(spec.Selection{Method: "top_count", Count: 1, LossScale: "none"}, rows, 4, 2)
	require.NoError(t, err)
	require.Equal(t, []int{0}, keptGroups(kept), "3.75 apart, and the first group's are 4 apart")
	// A row without a token has an entropy of 0, and is not compared with itself.
	rows = scored()
	rows[6].RolloutLogProbs, rows[7].RolloutLogProbs = nil, nil
	kept, _, err = SelectedGroups(spec.Selection{Method: "top_count", Metric: "entropy", Order: "smallest", Count: 1, LossScale: "none"}, rows, 4, 2)
	require.NoError(t, err)
	require.Equal(t, []int{3}, keptGroups(kept))
}

// The factors of advantages follow the groups' own deviations and the share of groups that is kept; a group
// without rows is as if it had never been.
func TestWeightsOfGroups(t *testing.T) {
	s := spec.Selection{Method: "top_count", Count: 1, LossScale: "linear"}
	_, weights, err := SelectedGroups(s, scored(), 4, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{.25, .25, .25, .25}, weights)
	s.LossScale = "sqrt"
	_, weights, err = SelectedGroups(s, scored(), 4, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{.5, .5, .5, .5}, weights)
	s.Reweight = true // deviations of 4, 1, 0.5 and 0.25, each over √2
	_, weights, err = SelectedGroups(s, scored(), 4, 2)
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{.5, .125, .0625, .03125}, weights, 1e-15)

	rows := scored()
	for i := range 2 {
		rows[i].Dropped = true
	}
	kept, weights, err := SelectedGroups(s, rows, 4, 2)
	require.NoError(t, err)
	require.Equal(t, []int{1}, keptGroups(kept))
	require.InDeltaSlice(t, []float64{0, 0.5773502691896257, 0.28867513459481287, 0.14433756729740643}, weights, 1e-15, "one of three is kept, and √⅓ is in all")
}

// A selection keeps no group that does not vary, where it is asked to: below, at and above the floor.
func TestFloorOfASelection(t *testing.T) {
	s := spec.Selection{Method: "all", DropFlat: true, LossScale: "none"}
	for _, c := range []struct {
		floor float64
		want  []int
	}{{0, []int{0, 1, 2, 3}}, {.17, []int{0, 1, 2, 3}}, {math.Sqrt(2 * .125 * .125), []int{0, 1, 2}}, {.18, []int{0, 1, 2}}, {3, nil}} {
		s.Floor = c.floor
		kept, _, err := SelectedGroups(s, scored(), 4, 2)
		require.NoError(t, err)
		require.Equal(t, c.want, keptGroups(kept), "%v", c.floor)
	}
	s.Method = "luck"
	_, _, err := SelectedGroups(s, scored(), 4, 2)
	require.ErrorIs(t, err, store.ErrInvalid)
	_, _, err = SelectedGroups(spec.Selection{Method: "all", LossScale: "luck"}, scored(), 4, 2)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// A rollout from which several iterations learn is selected part by part: each keeps its own best group, weighed
// against its own.
func TestChooseByParts(t *testing.T) {
	s := spec.Selection{Method: "top_count", Count: 1, LossScale: "none", Reweight: true}
	choice, err := Choose(nil, s, scored(), &Task{Groups: 2, Members: 2})
	require.NoError(t, err)
	require.False(t, choice.More)
	require.Equal(t, []int{0, 2}, keptGroups(choice.Kept))
	require.InDeltaSlice(t, []float64{1, .25, 1, .5}, choice.Weights, 1e-15)
	choice, err = Choose(nil, s, scored(), &Task{Groups: 4, Members: 2})
	require.NoError(t, err)
	require.Equal(t, []int{0}, keptGroups(choice.Kept))
	s.Resample = 1 // the first round is the only one
	again, err := Choose(nil, s, scored(), &Task{Groups: 4, Members: 2})
	require.NoError(t, err)
	require.Equal(t, choice, again)
	s.Method = "luck"
	_, err = Choose(nil, s, scored(), &Task{Groups: 2, Members: 2})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// Groups are drawn again until as many vary as a rollout has, or until the last round that is allowed. The first
// that vary are kept, of whatever round they are.
func TestResampled(t *testing.T) {
	round := func(spreads ...float64) (rows []episode.TrajectoryRow) {
		for _, spread := range spreads {
			for _, reward := range []float64{1, 1 + spread} {
				rows = append(rows, episode.TrajectoryRow{Row: int32(len(rows)), Group: int32(len(rows) / 2), Rewards: []float64{reward}, Penalties: []float64{0}, SampledLengths: []int32{1}})
			}
		}
		return rows
	}
	task := &Task{Groups: 2, Members: 2}
	s := spec.Selection{Method: "all", LossScale: "none", Resample: 3}
	for name, c := range map[string]struct {
		spreads []float64
		floor   float64
		more    bool
		want    []int
	}{
		"enough at once":            {[]float64{1, 2}, 0, false, []int{0, 1}},
		"one of two varies":         {[]float64{0, 2}, 0, true, nil},
		"none varies":               {[]float64{0, 0}, 0, true, nil},
		"enough after two rounds":   {[]float64{0, 2, 0, 3}, 0, false, []int{1, 3}},
		"more than enough":          {[]float64{0, 2, 4, 3}, 0, false, []int{1, 2}},
		"one of four varies":        {[]float64{0, 2, 0, 0}, 0, true, nil},
		"three rounds are the most": {[]float64{0, 2, 0, 0, 0, 0}, 0, false, []int{1}},
		"three rounds, nothing":     {[]float64{0, 0, 0, 0, 0, 0}, 0, false, nil},
		"the last round completes":  {[]float64{0, 2, 0, 0, 0, 1}, 0, false, []int{1, 5}},
		"a deviation below a floor": {[]float64{1, 2}, 1, true, nil}, // 0.7 and 1.4
		"a deviation above a floor": {[]float64{1.5, 2}, 1, false, []int{0, 1}},
		"a deviation at the floor":  {[]float64{2, 3}, math.Sqrt2, true, nil},
	} {
		s.Floor = c.floor
		choice, err := Choose(nil, s, round(c.spreads...), task)
		require.NoError(t, err, name)
		require.Equal(t, c.more, choice.More, name)
		require.Equal(t, c.want, keptGroups(choice.Kept), name)
		if c.more {
			require.Nil(t, choice.Kept)
			continue
		}
		require.Len(t, choice.Kept, len(c.spreads), name)
		for g, w := range choice.Weights {
			want := 0.0
			if choice.Kept[g] {
				want = 1
			}
			require.Equal(t, want, w, "%s: group %d", name, g)
		}
	}

	// The selection is of the groups that vary: their scores and their share.
	s = spec.Selection{Method: "top_count", Count: 1, LossScale: "linear", Resample: 3, Reweight: true}
	choice, err := Choose(nil, s, round(0, 2, 0, 4, 9, 0), task)
	require.NoError(t, err)
	require.Equal(t, []int{3}, keptGroups(choice.Kept), "the fifth group varies more, and is not among the first two")
	require.InDeltaSlice(t, []float64{0, .25, 0, .5, 0, 0}, choice.Weights, 1e-15)

	// A group that is left out whole is no group that varies, and moves no other one's place.
	rows := round(0, 2, 3, 5)
	rows[2].Dropped, rows[3].Dropped = true, true
	choice, err = Choose(nil, spec.Selection{Method: "all", LossScale: "none", Resample: 3}, rows, task)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, keptGroups(choice.Kept))
	s.Method = "luck"
	_, err = Choose(nil, s, round(1, 2), task)
	require.ErrorIs(t, err, store.ErrInvalid)
	bad := round(1, 2)
	bad[1].Rewards[0] = math.NaN()
	_, err = Choose(nil, s, bad, task)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// Members are kept by their place in their group, also in a later group from which one is left out.
func TestKeptMembersOfLaterGroups(t *testing.T) {
	row := func(tokens ...int32) episode.TrajectoryRow {
		return episode.TrajectoryRow{Rewards: []float64{float64(tokens[0])}, Penalties: []float64{0}, SampledLengths: tokens}
	}
	rows := []episode.TrajectoryRow{
		row(3, 1), row(1, 2), row(2, 2), // 4, 3 and 4 tokens
		{Dropped: true}, row(7, 1), row(5, 1),
		{Dropped: true}, {Dropped: true}, {Dropped: true},
		row(9), row(2), row(8),
	}
	for n, want := range [][]bool{
		1: {false, true, false, false, false, true, false, false, false, false, true, false},
		2: {true, true, false, false, true, true, false, false, false, false, true, true},
		3: {true, true, true, false, true, true, false, false, false, true, true, true},
	} {
		if n == 0 {
			continue
		}
		kept, err := KeptMembers(spec.Selection{Members: n}, rows, 3)
		require.NoError(t, err)
		require.Equal(t, want, kept, "%d members", n)
	}
	kept, err := KeptMembers(spec.Selection{Members: 1, MemberMetric: "return"}, rows, 3)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false, false, true, false, false, false, false, true, false, false}, kept)
}

// The parts of a rollout are counted by the groups that they have, and a batch that is learned from again is the same
// for all.
func TestPartSizes(t *testing.T) {
	task := &Task{Groups: 2, Members: 2}
	rows := make([]episode.TrajectoryRow, 12)
	for i := range rows {
		rows[i].Group = int32(i / 2)
		rows[i].Selected = i == 0 || i == 3 || i == 8 || i == 9 || i == 11
	}
	of := func(f spec.Freshness) []int {
		return PartSizes(&Context{Train: spec.Train{Freshness: f}}, rows, 5, task)
	}
	require.Nil(t, of(spec.Freshness{Online: 1, Reuse: 1}))
	require.Equal(t, []int{5, 5}, of(spec.Freshness{Online: 1, Reuse: 2}))
	require.Equal(t, []int{2, 0, 3}, of(spec.Freshness{Online: 3, Reuse: 1}))
}

// The exact entropy of a row is the mean over its sampled tokens, of its own scores.
func TestAddEntropies(t *testing.T) {
	rows := []episode.TrajectoryRow{{Row: 4, SampledLengths: []int32{1, 2}}, {Row: 5, SampledLengths: []int32{1}}, {Row: 6}}
	require.NoError(t, AddEntropies(rows, []episode.ScoreRow{{Row: 4, Entropies: []float32{1, 2, 6}}, {Row: 5, Entropies: []float32{.5}}, {Row: 6}}))
	require.Equal(t, []float64{3, .5, 0}, []float64{rows[0].Entropy, rows[1].Entropy, rows[2].Entropy})
	for name, scores := range map[string][]episode.ScoreRow{
		"too few":          {{Row: 4, Entropies: []float32{1, 2, 6}}, {Row: 5, Entropies: []float32{.5}}},
		"of another row":   {{Row: 4, Entropies: []float32{1, 2, 6}}, {Row: 7, Entropies: []float32{.5}}, {Row: 6}},
		"of another order": {{Row: 5, Entropies: []float32{.5}}, {Row: 4, Entropies: []float32{1, 2, 6}}, {Row: 6}},
		"a token less":     {{Row: 4, Entropies: []float32{1, 2}}, {Row: 5, Entropies: []float32{.5}}, {Row: 6}},
	} {
		require.ErrorIs(t, AddEntropies(rows, scores), store.ErrInvalid, name)
	}
}

// Scores are found by their rows among those of more rows.
func TestScoresOf(t *testing.T) {
	all := []episode.ScoreRow{{Row: 2, Values: []float32{2}}, {Row: 5, Values: []float32{5}}, {Row: 7, Values: []float32{7}}}
	require.Equal(t, []episode.ScoreRow{all[1]}, ScoresOf([]episode.TrajectoryRow{{Row: 5}}, all))
	require.Equal(t, []episode.ScoreRow{all[2], all[0]}, ScoresOf([]episode.TrajectoryRow{{Row: 7}, {Row: 2}}, all))
	require.Equal(t, []episode.ScoreRow{all[0]}, ScoresOf([]episode.TrajectoryRow{{Row: 2}, {Row: 3}}, all), "the one that is missing is missed by those who need it")
	require.Equal(t, all, ScoresOf(make([]episode.TrajectoryRow, 3), all))
}
