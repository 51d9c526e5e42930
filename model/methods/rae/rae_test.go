package rae

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/option"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// Rollouts one after another, each of which begins with the baselines that the one before has left.
func TestRAEGolden(t *testing.T) {
	type in struct {
		Decay  float64
		Rounds []struct {
			Returns []float64
			Agents  [][]string
		}
	}
	type out struct {
		Rounds []struct {
			Advantages [][]float64
			Baselines  map[string]float64
		}
	}
	g := golden.ReadMethod[in, out](t, "rae")
	for i, c := range g.Cases {
		var past []credit.StateValue
		for at, rollout := range c.In.Rounds {
			got, err := RAE(past, rollout.Returns, rollout.Agents, c.In.Decay)
			require.NoError(t, err)
			credittest.Within(t, g.Tolerance, c.Out.Rounds[at].Advantages, got)
			past, err = Entry.Observe(past, rollout.Returns, rollout.Agents, credit.Options{Own: option.Values{"baseline_decay": c.In.Decay}})
			require.NoError(t, err)
			require.Len(t, past, len(c.Out.Rounds[at].Baselines))
			for _, b := range past {
				require.InDelta(t, c.Out.Rounds[at].Baselines[b.Key], b.Value, g.Tolerance, "case %d, %s", i, b.Key)
			}
		}
	}
}

// By hand: a game that the first player wins, with a baseline of each of −½ and ½ and half of which stays.
func TestWorked(t *testing.T) {
	past := []credit.StateValue{{Key: "one", Count: 3, Value: 0.5}, {Key: "two", Count: 3, Value: -0.5}}
	got, err := RAE(past, []float64{1, 1}, [][]string{{"one", "one"}, {"two", "one", "two"}}, 0.5)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0.5, 0.5}, {1.5, 0.25, 1.5}}, got)

	_, after, err := fold(past, []float64{1, 1}, [][]string{{"one", "one"}, {"two", "one", "two"}}, 0.5)
	require.NoError(t, err)
	require.Equal(t, []credit.StateValue{{Key: "one", Count: 5, Value: 0.875}, {Key: "two", Count: 4, Value: 0.25}}, after)
	require.Equal(t, 0.5, past[0].Value, "what was before is not changed")

	// A role that is new is put where it belongs.
	_, after, err = fold(past, []float64{4}, [][]string{{"third"}}, 0.75)
	require.NoError(t, err)
	require.Equal(t, append(past[:1:1], credit.StateValue{Key: "third", Count: 1, Value: 1}, past[1]), after)
}

func TestErrors(t *testing.T) {
	of := func(past []credit.StateValue, returns []float64, agents [][]string, decay float64) error {
		_, err := RAE(past, returns, agents, decay)
		return err
	}
	one := [][]string{{"a"}}
	credittest.Refused(t, map[string]credittest.Refusal{
		"return":        {of(nil, []float64{math.NaN()}, one, 0.5), credit.ErrRewards, "row 0 has NaN"},
		"rows":          {of(nil, []float64{1}, nil, 0.5), credit.ErrRewards, "1 rewards, 0 rows of agents"},
		"order":         {of([]credit.StateValue{{Key: "b", Count: 1}, {Key: "a", Count: 1}}, []float64{1}, one, 0.5), credit.ErrInput, "not sorted"},
		"decay below 0": {of(nil, []float64{1}, one, -0.1), credit.ErrInput, "baseline_decay is -0.1"},
		"decay above 1": {of(nil, []float64{1}, one, 1.1), credit.ErrInput, "baseline_decay is 1.1"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t, credittest.Bits{Name: "rae", Want: "70fda6c9b806", Compute: func() ([][]float64, error) { return RAE(nil, e.Returns, e.Keys, 0.95) }})
}
