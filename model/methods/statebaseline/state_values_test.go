package statebaseline

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestStateBaselineWorked(t *testing.T) {
	b := credittest.Worked[struct {
		Past          []credit.StateValue
		Rewards, Want []float64
		Keys          []string
	}](t, "worked.json", "state_baseline")
	advantages, err := StateBaseline(b.Past, b.Rewards, b.Keys)
	require.NoError(t, err)
	golden.Near(t, b.Want, advantages, 1e-12)
}

// The light baseline that knows nothing yet leaves one out.
func TestStateBaselineOfNewStatesLeavesOneOut(t *testing.T) {
	for seed := range uint64(20) {
		e := credittest.RandomEpisodes(t, seed, 12)
		got, err := credit.LeaveOneOut(e.Returns, e.Groups)
		require.NoError(t, err)
		baseline, err := StateBaseline(nil, e.Returns, e.Starts)
		require.NoError(t, err)
		golden.Near(t, got, baseline, 1e-12)
	}
}

// A row alone in its batch, whose state is new, keeps its reward.
func TestStateBaselineAlone(t *testing.T) {
	got, err := StateBaseline(nil, []float64{3}, []string{"a"})
	require.NoError(t, err)
	require.Equal(t, []float64{3}, got)
}

// Two rows of a new state have each other, two alone in theirs too.
func TestNewStates(t *testing.T) {
	row := func(got []float64, err error) []float64 {
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []float64{1, -1, 6.5}, row(StateBaseline(nil, []float64{1, 0, 7}, []string{"a", "a", "b"})))
	require.Equal(t, []float64{-3, 3}, row(StateBaseline(nil, []float64{1, 4}, []string{"a", "b"})))
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	state := []credit.StateValue{{Key: "a", Count: 1, Value: 0}}
	first := func(_ any, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"state reward": {first(StateBaseline(nil, []float64{nan}, []string{"a"})), credit.ErrRewards, "row 0 has NaN"},
		"states twice": {first(StateBaseline(append(state, state...), nil, nil)), credit.ErrInput, "not sorted by key at 1"},
		"state value":  {first(StateBaseline([]credit.StateValue{{Key: "a", Count: 1, Value: nan}}, nil, nil)), credit.ErrInput, "state value 0"},
		"state count":  {first(StateBaseline([]credit.StateValue{{Key: "a"}}, nil, nil)), credit.ErrInput, "of 0 trajectories"},
	})
}
