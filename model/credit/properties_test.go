package credit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestLeaveOneOutIsWithoutTheRow(t *testing.T) {
	for seed := range uint64(20) {
		e := credittest.RandomEpisodes(t, seed, 12)
		got, err := credit.LeaveOneOut(e.Returns, e.Groups)
		require.NoError(t, err)
		for row, g := range e.Groups {
			var others []float64
			for i := range e.Groups {
				if e.Groups[i] == g && i != row {
					others = append(others, e.Returns[i])
				}
			}
			mean, _ := credit.MeanStd(others)
			require.InDelta(t, e.Returns[row]-mean, got[row], 1e-12)
		}
	}
}

// whitened is Whiten of a copy.
func whitened(values [][]float64, mask [][]bool) [][]float64 {
	out := credit.Zeros(mask)
	for row := range mask {
		copy(out[row], values[row])
	}
	credit.Whiten(out, mask)
	return out
}

func TestWhiten(t *testing.T) {
	e := credittest.RandomEpisodes(t, 13, 9)
	white := whitened(e.Values, e.Mask)
	var flat []float64
	for row, sampled := range e.Mask {
		for at, yes := range sampled {
			if yes {
				flat = append(flat, white[row][at])
			} else {
				require.Zero(t, white[row][at])
			}
		}
	}
	mean, std := credit.MeanStd(flat)
	require.InDelta(t, 0, mean, 1e-12)
	require.InDelta(t, 1, std, 1e-6)
	for _, mask := range [][][]bool{{{true, true}, {false}}, {{true, false}, {false}}, {{false, false}, {false}}} {
		require.Equal(t, [][]float64{{0, 0}, {0}}, whitened([][]float64{{0.1, 0.1}, {5}}, mask))
	}
}

// Adding the same to every reward of a group changes no advantage of a method with
// a group baseline, and a group's advantages sum to 0.
func TestGroupBaselines(t *testing.T) {
	e := credittest.RandomEpisodes(t, 17, 12)
	moved := make([]float64, len(e.Returns))
	for row := range moved {
		moved[row] = e.Returns[row] + 10*float64(e.Groups[row]+1)
	}
	for name, f := range map[string]func([]float64) ([]float64, error){
		"grpo": func(r []float64) ([]float64, error) {
			return credit.GRPO(r, e.Groups, credit.Options{NormalizeByStd: true, Epsilon: 1e-6, Floor: 0.5})
		},
		"dr_grpo":       func(r []float64) ([]float64, error) { return credit.DrGRPO(r, e.Groups) },
		"leave_one_out": func(r []float64) ([]float64, error) { return credit.LeaveOneOut(r, e.Groups) },
	} {
		a, err := f(e.Returns)
		require.NoError(t, err, name)
		b, err := f(moved)
		require.NoError(t, err, name)
		golden.Near(t, a, b, 1e-9, name)
		sums := make([]float64, 3)
		for row, x := range a {
			sums[e.Groups[row]] += x
		}
		golden.Near(t, []float64{0, 0, 0}, sums, 1e-9, name)
	}
}

// Values observed iteration by iteration are those observed at once.
func TestObserveFolds(t *testing.T) {
	e := credittest.RandomEpisodes(t, 23, 12)
	for _, rate := range []float64{0, 0.25, 1} {
		whole, err := credit.Observe(nil, e.Returns, e.Starts, rate)
		require.NoError(t, err)
		first, err := credit.Observe(nil, e.Returns[:5], e.Starts[:5], rate)
		require.NoError(t, err)
		parts, err := credit.Observe(first, e.Returns[5:], e.Starts[5:], rate)
		require.NoError(t, err)
		require.Equal(t, whole, parts)
		require.Len(t, whole, 3)
	}
}

func TestRewardPlacesAndSums(t *testing.T) {
	e := credittest.RandomEpisodes(t, 29, 9)
	sums, err := credit.TurnSums(e.Tokens, e.Turns)
	require.NoError(t, err)
	require.Equal(t, e.Rewards, sums)
	end, err := credit.TokenRewards(e.Rewards, e.Turns, e.Lengths, credit.AtEnd)
	require.NoError(t, err)
	for row, spans := range e.Turns {
		last := spans[len(spans)-1].To - 1
		for at, r := range end[row] {
			if at == last {
				require.InDelta(t, e.Returns[row], r, 1e-12)
			} else {
				require.Zero(t, r)
			}
		}
	}
}

// KL in the reward with k1 takes β times the trajectory's log ratio off its return.
func TestKLInRewardSums(t *testing.T) {
	e := credittest.RandomEpisodes(t, 31, 9)
	reference := credit.Zeros(e.Mask)
	got, _, err := credit.KLInReward(e.Tokens, e.Values, reference, e.Mask, 0.1, loss.K1)
	require.NoError(t, err)
	for row, sampled := range e.Mask {
		var ratio float64
		for at, yes := range sampled {
			if yes {
				ratio += e.Values[row][at]
			}
		}
		require.InDelta(t, e.Returns[row]-0.1*ratio, credit.Returns(got)[row], 1e-12)
	}
}
