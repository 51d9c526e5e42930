package search

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// text writes a path as the golden does, a digit a turn.
func text(path []int) string {
	out := make([]byte, len(path))
	for k, candidate := range path {
		out[k] = byte('0' + candidate)
	}
	return string(out)
}

func TestTSRGolden(t *testing.T) {
	type in struct {
		Candidates, Beams, Turns, Depth int
		Rewards                         map[string][]float64
		Sampled                         []string
		GroupReturns                    []float64 `json:"group_returns"`
		KeepRatio                       float64   `json:"keep_ratio"`
	}
	type out struct {
		BeamTrace       [][]string `json:"beam_trace"`
		BeamBest        string     `json:"beam_best"`
		BeamReturn      float64    `json:"beam_return"`
		Greedy          string
		GreedyReturn    float64 `json:"greedy_return"`
		Lookahead       string
		LookaheadValues [][]float64 `json:"lookahead_values"`
		BestOfNIndex    int         `json:"best_of_n_index"`
		BestOfNReturn   float64     `json:"best_of_n_return"`
		ExtremesKept    []int       `json:"extremes_kept"`
		GroupStd        float64     `json:"group_std"`
	}
	g := golden.ReadMethod[in, out](t, "tsr")
	for _, c := range g.Cases {
		after := func(prefix []int) []float64 {
			rewards := c.In.Rewards[text(prefix)]
			if len(rewards) > 0 {
				require.Len(t, rewards, c.In.Candidates)
			}
			return rewards
		}
		trace, err := Beam(after, c.In.Beams, c.In.Turns)
		require.NoError(t, err)
		var paths [][]string
		for _, beam := range trace {
			var of []string
			for _, prefix := range beam {
				of = append(of, text(prefix.Path))
			}
			paths = append(paths, of)
		}
		require.Equal(t, c.Out.BeamTrace, paths)
		best := trace[len(trace)-1][0]
		require.Equal(t, c.Out.BeamBest, text(best.Path))
		require.InDelta(t, c.Out.BeamReturn, best.Score, g.Tolerance)

		greedy, _, err := Lookahead(after, 1, c.In.Turns)
		require.NoError(t, err)
		require.Equal(t, c.Out.Greedy, text(greedy.Path))
		require.InDelta(t, c.Out.GreedyReturn, greedy.Score, g.Tolerance)

		ahead, values, err := Lookahead(after, c.In.Depth, c.In.Turns)
		require.NoError(t, err)
		require.Equal(t, c.Out.Lookahead, text(ahead.Path))
		require.Len(t, values, len(c.Out.LookaheadValues))
		for k, want := range c.Out.LookaheadValues {
			golden.Near(t, want, values[k], g.Tolerance, "turn %d", k)
		}

		returns := make([]float64, len(c.In.Sampled))
		for i, path := range c.In.Sampled {
			for k := range path {
				returns[i] += c.In.Rewards[path[:k]][path[k]-'0']
			}
		}
		n, err := BestOfN(returns)
		require.NoError(t, err)
		require.Equal(t, c.Out.BestOfNIndex, n)
		require.InDelta(t, c.Out.BestOfNReturn, returns[n], g.Tolerance)

		kept, err := Extremes(c.In.GroupReturns, c.In.KeepRatio)
		require.NoError(t, err)
		require.Equal(t, c.Out.ExtremesKept, kept)
		_, std := credit.MeanStd(c.In.GroupReturns)
		require.InDelta(t, c.Out.GroupStd, std, g.Tolerance)
	}
}

// A case has a window of labels, one trajectory's pivot, and the two streams of the loss. Its advantages are
// those of the room pivots, which has the same golden.
func TestDeepGRPOGolden(t *testing.T) {
	type in struct {
		BufferPosition  []float64 `json:"buffer_position"`
		BufferSuccess   []int     `json:"buffer_success"`
		Segments        int
		Gamma, Draw     float64
		MainRewards     []float64   `json:"main_rewards"`
		BranchRewards   []float64   `json:"branch_rewards"`
		MainTokenLosses [][]float64 `json:"main_token_losses"`
		BranchLosses    [][]float64 `json:"branch_token_losses"`
		Lambda          float64
	}
	type out struct {
		Weight, Bias                 float64
		Recoverability, Distribution []float64
		Pivot                        int
		BranchAdvantages             []float64 `json:"branch_advantages"`
		MainAdvantages               []float64 `json:"main_advantages_grpo"`
		Label                        int
		Loss                         float64
	}
	g := golden.ReadMethod[in, out](t, "deep_grpo")
	for _, c := range g.Cases {
		saved := make([]bool, len(c.In.BufferSuccess))
		for i, label := range c.In.BufferSuccess {
			saved[i] = label == 1
		}
		fit, err := FitRecovery(c.In.BufferPosition, saved)
		require.NoError(t, err)
		require.InDelta(t, c.Out.Weight, fit.Weight, g.Tolerance)
		require.InDelta(t, c.Out.Bias, fit.Bias, g.Tolerance)
		require.Len(t, c.Out.Recoverability, c.In.Segments)
		for i, want := range c.Out.Recoverability {
			require.InDelta(t, want, fit.At(float64(i+1)/float64(c.In.Segments)), g.Tolerance)
		}
		q, err := fit.Pivots(c.In.Segments, c.In.Segments, c.In.Gamma)
		require.NoError(t, err)
		golden.Near(t, c.Out.Distribution, q, g.Tolerance)
		pivot, err := Pick(q, c.In.Draw)
		require.NoError(t, err)
		require.Equal(t, c.Out.Pivot, pivot)
		require.Equal(t, c.Out.Label == 1, Saved(c.In.BranchRewards, 0))

		var mask [][]bool
		var branch []bool
		losses := slices.Concat(c.In.MainTokenLosses, c.In.BranchLosses)
		for row, tokens := range losses {
			mask, branch = append(mask, slices.Repeat([]bool{true}, len(tokens))), append(branch, row >= len(c.In.MainTokenLosses))
		}
		weights, err := loss.BranchWeights(mask, branch, c.In.Lambda)
		require.NoError(t, err)
		var sum float64
		for row, tokens := range losses {
			for i, l := range tokens {
				sum += float64(weights[row][i] * l)
			}
		}
		require.InDelta(t, c.Out.Loss, sum, g.Tolerance)
	}
}

func TestARPOGolden(t *testing.T) {
	type in struct {
		Rows []struct {
			First         float64 `json:"entropy_first"`
			Entropy, Draw float64
		}
		Weight      float64 `json:"entropy_weight"`
		Probability float64 `json:"branch_probability"`
	}
	type out struct {
		Compared []float64
		Branch   []bool
	}
	g := golden.ReadMethod[in, out](t, "arpo")
	for _, c := range g.Cases {
		var rows []Uncertainty
		for _, r := range c.In.Rows {
			rows = append(rows, Uncertainty{First: r.First, Now: r.Entropy, Draw: r.Draw})
		}
		compared, branch, err := Branches(rows, c.In.Weight, c.In.Probability)
		require.NoError(t, err)
		golden.Near(t, c.Out.Compared, compared, g.Tolerance)
		require.Equal(t, c.Out.Branch, branch)
	}
}
