package credit_test

import (
	"testing"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	rows := func(values []float64, err error) ([][]float64, error) { return [][]float64{values}, err }
	credittest.SameBits(t,
		credittest.Bits{Name: "mean and deviation", Want: "b97e0fb7e1d9", Compute: func() ([][]float64, error) {
			mean, std := credit.MeanStd(e.Returns)
			return [][]float64{{mean, std}}, nil
		}},
		credittest.Bits{Name: "grpo", Want: "ee353414726c", Compute: func() ([][]float64, error) {
			return rows(credit.GRPO(e.Returns, e.Groups, credit.Options{NormalizeByStd: true, Epsilon: 1e-6}))
		}},
		credittest.Bits{Name: "leave one out", Want: "71be4ab1b09b", Compute: func() ([][]float64, error) { return rows(credit.LeaveOneOut(e.Returns, e.Groups)) }},
		credittest.Bits{Name: "kl in the reward", Want: "3b555a1f9e1c", Compute: func() ([][]float64, error) {
			penalised, mean, err := credit.KLInReward(e.Tokens, e.Values, credit.Zeros(e.Mask), e.Mask, 0.1, loss.K2)
			return append(penalised, []float64{mean}), err
		}},
		credittest.Bits{Name: "state values", Want: "e6f81d2a1946", Compute: func() ([][]float64, error) {
			seen, err := credit.Observe(nil, e.Returns, e.Starts, 0.3)
			values := make([]float64, len(seen))
			for i, s := range seen {
				values[i] = s.Value
			}
			return [][]float64{values}, err
		}},
	)
}
