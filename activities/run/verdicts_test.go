package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A verdict is recorded with what it was read from; one that failed is told.
func TestRecordedVerdicts(t *testing.T) {
	r := VerdictRow{Row: 3, Asked: true, Judge: "judge", Episode: "e"}
	r.Record([]string{"right", "kind"}, foreign.Verdict{Values: []float64{1, .5}, Text: "good", Raw: "{}", Model: "m", Prompt: "p"})
	require.Equal(t, VerdictRow{
		Row: 3, Asked: true, Judge: "judge", Episode: "e", Model: "m", Prompt: "p", Components: []string{"right", "kind"}, Values: []float64{1, .5}, Verdict: "good", Raw: "{}",
	}, r)
	r = VerdictRow{Row: 3, Asked: true}
	r.Record([]string{"right"}, foreign.Verdict{Err: fmt.Errorf("%w: no JSON", foreign.ErrBroken)})
	require.Equal(t, VerdictRow{Row: 3, Asked: true, Failed: fmt.Sprintf("%v: no JSON", foreign.ErrBroken)}, r)
}

// The verdicts of later rounds are about later rows.
func TestReadVerdicts(t *testing.T) {
	s := store.NewMemory()
	round := func(n int) []VerdictRow {
		var out []VerdictRow
		for i := range int32(4) {
			v := VerdictRow{Row: i, Group: i / 2, Member: i % 2, Asked: i != 1, Components: []string{"right"}, Values: []float64{float64(10*n) + float64(i)}}
			if i == 2 {
				v.Failed = fmt.Sprint("round ", n)
			}
			out = append(out, v)
		}
		return out
	}
	first, second := episodetest.Put(t, s, round(0)), episodetest.Put(t, s, round(1))
	turns := []store.TurnRefs{{Round: 0}, {Round: 0, Verdicts: &first}, {Round: 1}, {Round: 1}, {Round: 1, Verdicts: &second}}
	v, err := ReadVerdicts(t.Context(), s, turns, 4)
	require.NoError(t, err)
	require.Len(t, v, 8)
	for i, r := range v {
		require.EqualValues(t, i, r.Row)
		require.Equal(t, float64(10*(i/4)+i%4), r.Values[0])
	}
	require.Equal(t, []BrokenRow{{Row: 2, Turn: -2, Message: "round 0"}, {Row: 6, Turn: -2, Message: "round 1"}}, v.Failed())
	m := activities.Metrics{}
	v.Metrics(m, make([]BrokenRow, 3))
	require.Equal(t, activities.Metrics{"verdicts/failed": 2.0 / 6, "broken/left_out": 3.0 / 8}, m)

	values, err := v.of(7, &rewards.Judge{Components: []string{"right"}}, 3)
	require.NoError(t, err)
	require.Equal(t, []float64{13}, values)
	for name, c := range map[string]struct {
		row        int32
		components []string
	}{
		"of no row": {8, []string{"right"}}, "not asked": {5, []string{"right"}}, "failed": {6, []string{"right"}}, "another component": {7, []string{"kind"}}, "more components": {7, []string{"right", "kind"}},
	} {
		_, err := v.of(c.row, &rewards.Judge{Components: c.components}, 3)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	v[7].Values = nil
	_, err = v.of(7, &rewards.Judge{Components: []string{"right"}}, 3)
	require.ErrorIs(t, err, store.ErrInvalid)

	none, err := ReadVerdicts(t.Context(), s, turns[:1], 4)
	require.NoError(t, err)
	require.Nil(t, none)
	m = activities.Metrics{}
	none.Metrics(m, make([]BrokenRow, 3))
	require.Empty(t, m, "no judge was asked")
	_, err = ReadVerdicts(t.Context(), s, turns, 5)
	require.ErrorContains(t, err, "4 verdicts about round 1, want 5")
	short := episodetest.Put(t, s, round(1)[:3])
	turns[4].Verdicts = &short
	_, err = ReadVerdicts(t.Context(), s, turns, 4)
	require.ErrorContains(t, err, "3 verdicts about round 2, want 4")
	short.Key = "runs/r/nothing"
	_, err = ReadVerdicts(t.Context(), s, turns, 4)
	require.ErrorContains(t, err, "verdicts about round 2: ")
}

// A judge may fail about so many of the episodes that it was asked about, and about no more.
func TestCheckFailed(t *testing.T) {
	of := func(asked, failed int) (out Verdicts) {
		for i := range int32(12) {
			v := VerdictRow{Row: i, Asked: int(i) < asked}
			if int(i) >= asked-failed && int(i) < asked {
				v.Failed = "no JSON"
			}
			out = append(out, v)
		}
		return out
	}
	for _, c := range []struct {
		asked, failed int
		share         float64
		bad           bool
	}{{8, 0, 0, false}, {8, 1, 0, true}, {8, 1, .125, false}, {8, 2, .125, true}, {8, 2, .25, false}, {4, 1, .125, true}, {12, 12, 1, false}, {0, 0, 0, false}} {
		err := CheckFailed(of(c.asked, c.failed), 4, c.share)
		require.Equal(t, c.bad, err != nil, "%+v", c)
		if c.bad {
			require.ErrorIs(t, err, activities.ErrEnvironment)
		}
	}
	require.EqualError(t, CheckFailed(of(9, 6), 4, .5), "the judge gave no verdict about 6 of 9 episodes, and its option failed_share is 0.5: "+
		"no JSON (6 times, first in group 0, member 3): "+activities.ErrEnvironment.Error())
}

// A judge sees of a trajectory what its own environment showed, in the round in which it was played.
func TestScoredOf(t *testing.T) {
	task := toldTask()
	rc := toldContext(t, nil)
	r := toldRow(task, 7, 1, 0, 4)
	r.Success = true
	r.Penalties[0] = -5
	r.IDs, r.PromptLengths, r.SampledLengths = nil, nil, nil
	for _, text := range []string{"one", "two", "three"} {
		ids := rc.Tokenizer.Encode(text)
		r.IDs = append(append(r.IDs, 0), ids...)
		r.PromptLengths, r.SampledLengths = append(r.PromptLengths, 1), append(r.SampledLengths, int32(len(ids)))
	}
	got, err := ScoredOf(rc, task, 1, activities.Rollout{Iteration: 4}, r)
	require.NoError(t, err)
	require.Equal(t, []foreign.ScoredTurn{
		{Observation: "y 3.1 after 0", Reply: "one", Actions: []string{}, Reward: 1},
		{Observation: "y 3.1 after 0", Reply: "two", Actions: []string{"y 3"}},
		{Observation: "y 3.1 after 1", Reply: "three", Actions: []string{"y 3", "y 3"}, Reward: 4},
	}, got.Turns)
	require.Equal(t, []string{"y", "Say the y", "y 3.1 after 3"}, []string{got.Environment, got.Instructions, got.Observation})
	require.Equal(t, 5.0, got.Reward, "the environment's")
	require.True(t, got.Success)
	require.Len(t, got.ID, 64)

	// The same row as the second round plays it, whose rows have their own numbers.
	own := r
	own.Row, own.Group = 3, 1
	again, err := ScoredOf(rc, task, 1, activities.Rollout{Iteration: 4, Round: 1}, own)
	require.NoError(t, err)
	require.Equal(t, got, again)
	_, err = ScoredOf(rc, task, 1, activities.Rollout{Iteration: 4}, own)
	require.ErrorIs(t, err, store.ErrInvalid, "the first round plays another instance")
	require.ErrorContains(t, err, "row 3: ")

	// What is asked about has a name of its own.
	ids := map[string]bool{got.ID: true}
	for _, change := range []func(*episode.TrajectoryRow){
		func(r *episode.TrajectoryRow) { r.Rewards = []float64{1, 0, 5} }, func(r *episode.TrajectoryRow) { r.Success = false }, func(r *episode.TrajectoryRow) { r.IDs = append([]int32{}, r.IDs...); r.IDs[1]++ },
		func(r *episode.TrajectoryRow) { r.Actions = []string{"", "y 3", "y 3"} }, func(r *episode.TrajectoryRow) { r.Member, r.Row = 0, 6 },
	} {
		other := r
		change(&other)
		scored, err := ScoredOf(rc, task, 1, activities.Rollout{Iteration: 4}, other)
		require.NoError(t, err)
		require.False(t, ids[scored.ID])
		ids[scored.ID] = true
	}
}

// The judge of a run is that of the module that asks one.
func TestJudgeOf(t *testing.T) {
	judge := spec.Reward{Name: "foreign", Options: []byte(`{"name":"mine","components":"right 1"}`)}
	got, err := JudgeOf(spec.Train{Rewards: []spec.Reward{{Name: "length"}, judge, {Name: "first_attempt"}}})
	require.NoError(t, err)
	require.Equal(t, "mine", got.Name)
	rc := toldContext(t, []float64{1, 1}, newModule(t, "length", `{}`), newModule(t, "foreign", string(judge.Options)))
	require.Equal(t, got, rc.Judge())
	got, err = JudgeOf(spec.Train{Rewards: []spec.Reward{{Name: "length"}}})
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = JudgeOf(spec.Train{Rewards: []spec.Reward{{Name: "luck"}}})
	require.ErrorContains(t, err, "reward luck: ")
}
