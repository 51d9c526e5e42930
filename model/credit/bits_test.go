package credit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

// Advantages are computed by whichever host is free, so their bits must not depend
// on whether its processor fuses a product with a sum (arm64 and GOAMD64=v3 do).
// The digests come from a machine that does not.
func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := randomEpisodes(t, 7, 24)
	r := rand.New(rand.NewPCG(7, 2)) // uniform: what is drawn needs no logarithm
	for _, of := range [][][]float64{e.rewards, e.values} {
		for row := range of {
			for at := range of[row] {
				of[row][at] = 2*r.Float64() - 1
			}
		}
	}
	var err error
	e.tokenRewards, err = TokenRewards(e.rewards, e.turns, e.lengths, AtTurns)
	require.NoError(t, err)
	e.returns = Returns(e.rewards)
	rows := func(values []float64, err error) ([][]float64, error) { return [][]float64{values}, err }
	for _, c := range []struct {
		name, want string
		compute    func() ([][]float64, error)
	}{
		{"mean and deviation", "b97e0fb7e1d9", func() ([][]float64, error) {
			mean, std := MeanStd(e.returns)
			return [][]float64{{mean, std}}, nil
		}},
		{"gae", "32bc30e833e2", func() ([][]float64, error) {
			a, g, err := GAE(e.tokenRewards, e.values, e.mask, Options{Gamma: 0.97, Lambda: 0.93, Whiten: true})
			return append(a, g...), err
		}},
		{"turn gae", "6b99da5566d4", func() ([][]float64, error) {
			a, g, err := TurnGAE(e.rewards, e.values, e.turns, Options{Gamma: 0.97, Lambda: 0.93, TurnGamma: 0.95, TurnLambda: 0.9})
			return append(a, g...), err
		}},
		{"grpo", "ee353414726c", func() ([][]float64, error) {
			return rows(GRPO(e.returns, e.groups, Options{NormalizeByStd: true, Epsilon: 1e-6}))
		}},
		{"leave one out", "71be4ab1b09b", func() ([][]float64, error) { return rows(LeaveOneOut(e.returns, e.groups)) }},
		{"reinforce++", "dbe50902b74c", func() ([][]float64, error) { return ReinforcePlusPlus(e.tokenRewards, e.mask, 0.97) }},
		{"gigpo", "36d57f7cc7f1", func() ([][]float64, error) {
			return GiGPO(e.rewards, e.groups, e.keys, Options{Gamma: 0.95, StepWeight: 0.7, NormalizeByStd: true, Epsilon: 1e-6})
		}},
		{"gdpo", "541b0aaa5dd2", func() ([][]float64, error) {
			components := make([][]float64, len(e.returns))
			for row := range components {
				components[row] = []float64{e.returns[row], e.rewards[row][0]}
			}
			return GDPO(components, []float64{1, 0.3}, e.groups, e.mask, Options{NormalizeByStd: true, Epsilon: 1e-6})
		}},
		{"blockwise", "f6ffe4c92241", func() ([][]float64, error) {
			outcomes := make([][]int, len(e.keys))
			for row, keys := range e.keys {
				for _, key := range keys {
					outcomes[row] = append(outcomes[row], int(key[0]))
				}
			}
			got, _, err := Blockwise(e.rewards, e.groups, outcomes)
			return got, err
		}},
		{"dr. mas", "c60d10e5270a", func() ([][]float64, error) {
			return DrMAS(e.rewards, e.keys, e.groups, Options{NormalizeByStd: true, Epsilon: 1e-6})
		}},
		{"turn returns", "c3a50f9136b6", func() ([][]float64, error) {
			a, g, _, err := TurnReturns(e.rewards, e.values, e.turns, Options{TurnGamma: 0.95, TurnLambda: 0.9, Whiten: true})
			return append(a, g...), err
		}},
		{"kl in the reward", "3b555a1f9e1c", func() ([][]float64, error) {
			penalised, mean, err := KLInReward(e.tokenRewards, e.values, Zeros(e.mask), e.mask, 0.1, loss.K2)
			return append(penalised, []float64{mean}), err
		}},
		{"state values", "e6f81d2a1946", func() ([][]float64, error) {
			seen, err := Observe(nil, e.returns, e.initialStates, 0.3)
			values := make([]float64, len(seen))
			for i, s := range seen {
				values[i] = s.Value
			}
			return [][]float64{values}, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.compute()
			require.NoError(t, err)
			h := sha256.New()
			for _, row := range got {
				for _, x := range row {
					h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
				}
			}
			require.Equal(t, c.want, hex.EncodeToString(h.Sum(nil)[:6]))
		})
	}
}
