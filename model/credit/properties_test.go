package credit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// episodes are trajectories of random shape: prompts and turns of 1 to 4 tokens.
type episodes struct {
	turns         [][]Span
	lengths       []int
	rewards       [][]float64 // a turn
	values        [][]float64 // a token
	groups        []int
	mask          [][]bool
	tokenRewards  [][]float64
	returns       []float64
	keys          [][]string
	initialStates []string
}

func randomEpisodes(t *testing.T, seed uint64, rows int) episodes {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var e episodes
	for row := range rows {
		at := 0
		var spans []Span
		var rewards []float64
		var keys []string
		for range 1 + r.IntN(4) {
			from := at + 1 + r.IntN(4)
			at = from + 1 + r.IntN(4)
			spans = append(spans, Span{from, at})
			rewards = append(rewards, r.NormFloat64())
			keys = append(keys, fmt.Sprint(r.IntN(3)))
		}
		at += r.IntN(3)
		values := make([]float64, at)
		for i := range values {
			values[i] = r.NormFloat64()
		}
		e.turns, e.lengths = append(e.turns, spans), append(e.lengths, at)
		e.rewards, e.values = append(e.rewards, rewards), append(e.values, values)
		e.groups, e.keys = append(e.groups, row%3), append(e.keys, keys)
		e.initialStates = append(e.initialStates, fmt.Sprint(row%3))
	}
	var err error
	e.mask, err = Mask(e.turns, e.lengths)
	require.NoError(t, err)
	e.tokenRewards, err = TokenRewards(e.rewards, e.turns, e.lengths, AtTurns)
	require.NoError(t, err)
	e.returns = Returns(e.rewards)
	return e
}

func TestLeaveOneOutIsWithoutTheRow(t *testing.T) {
	for seed := range uint64(20) {
		e := randomEpisodes(t, seed, 12)
		got, err := LeaveOneOut(e.returns, e.groups)
		require.NoError(t, err)
		for row, g := range e.groups {
			var others []float64
			for i := range e.groups {
				if e.groups[i] == g && i != row {
					others = append(others, e.returns[i])
				}
			}
			mean, _ := MeanStd(others)
			require.InDelta(t, e.returns[row]-mean, got[row], 1e-12)
		}
		// The light baseline that knows nothing yet is the same.
		baseline, err := StateBaseline(nil, e.returns, e.initialStates)
		require.NoError(t, err)
		golden.Near(t, got, baseline, 1e-12)
	}
}

// Without a critic, γ = λ = 1, a token's advantage is what its row still gets.
func TestGAEOfNoValuesIsTheReturn(t *testing.T) {
	e := randomEpisodes(t, 7, 9)
	advantages, returns, err := GAE(e.tokenRewards, Zeros(e.mask), e.mask, Options{Gamma: 1, Lambda: 1})
	require.NoError(t, err)
	require.Equal(t, advantages, returns)
	for row, spans := range e.turns {
		for k, s := range spans {
			var rest float64
			for _, r := range e.rewards[row][k:] {
				rest += r
			}
			for _, a := range advantages[row][s.From:s.To] {
				require.InDelta(t, rest, a, 1e-12)
			}
		}
	}
	// REINFORCE++ is the same, whitened.
	plus, err := ReinforcePlusPlus(e.tokenRewards, e.mask, 1)
	require.NoError(t, err)
	require.Equal(t, Whiten(returns, e.mask), plus)
}

// Bridging: the row without the tokens that were not sampled gives the same.
func TestGAEBridges(t *testing.T) {
	e := randomEpisodes(t, 3, 9)
	o := Options{Gamma: 0.9, Lambda: 0.8}
	advantages, returns, err := GAE(e.tokenRewards, e.values, e.mask, o)
	require.NoError(t, err)
	pack := func(x [][]float64) [][]float64 {
		out := make([][]float64, len(x))
		for row, sampled := range e.mask {
			for at, yes := range sampled {
				if yes {
					out[row] = append(out[row], x[row][at])
				}
			}
		}
		return out
	}
	all := pack(Zeros(e.mask))
	mask := make([][]bool, len(all))
	for row := range all {
		for range all[row] {
			mask[row] = append(mask[row], true)
		}
	}
	a, g, err := GAE(pack(e.tokenRewards), pack(e.values), mask, o)
	require.NoError(t, err)
	require.Equal(t, a, pack(advantages))
	require.Equal(t, g, pack(returns))
	// Values at the environment's tokens are not read.
	for row, sampled := range e.mask {
		for at, yes := range sampled {
			if !yes {
				e.values[row][at] = math.NaN()
			}
		}
	}
	again, _, err := GAE(e.tokenRewards, e.values, e.mask, o)
	require.NoError(t, err)
	require.Equal(t, advantages, again)
}

// Two levels that neither discount nor trust the critic are the one level.
func TestTurnGAEOfOnesIsGAE(t *testing.T) {
	e := randomEpisodes(t, 5, 9)
	want, _, err := GAE(e.tokenRewards, e.values, e.mask, Options{Gamma: 1, Lambda: 1, Whiten: true})
	require.NoError(t, err)
	for _, at := range []ValuePlace{LastPromptToken, FinalToken} {
		got, _, err := TurnGAE(e.rewards, e.values, e.turns, Options{Gamma: 1, Lambda: 1, TurnGamma: 1, TurnLambda: 1, ValueAt: at, Whiten: true})
		require.NoError(t, err)
		near(t, want, got)
	}
}

// The first token of a turn has the turn's own advantage where its value is read
// there, and the upper level alone gives the same number.
func TestTurnGAEFirstToken(t *testing.T) {
	e := randomEpisodes(t, 11, 9)
	of := make([][]float64, len(e.turns))
	for row, spans := range e.turns {
		for _, s := range spans {
			of[row] = append(of[row], e.values[row][s.From])
		}
	}
	upper, err := TurnAdvantages(e.rewards, of, 0.95, 0.7)
	require.NoError(t, err)
	got, _, err := TurnGAE(e.rewards, e.values, e.turns, Options{Gamma: 1, Lambda: 1, TurnGamma: 0.95, TurnLambda: 0.7})
	require.NoError(t, err)
	spread, err := OverTurns(upper, e.turns, e.lengths)
	require.NoError(t, err)
	for row, spans := range e.turns {
		for _, s := range spans {
			require.InDelta(t, spread[row][s.From], got[row][s.From], 1e-12)
		}
	}
}

// Whiten is whiten of a copy.
func Whiten(values [][]float64, mask [][]bool) [][]float64 {
	out := Zeros(mask)
	for row := range mask {
		copy(out[row], values[row])
	}
	Whiten(out, mask)
	return out
}

func TestWhiten(t *testing.T) {
	e := randomEpisodes(t, 13, 9)
	white := Whiten(e.values, e.mask)
	var flat []float64
	for row, sampled := range e.mask {
		for at, yes := range sampled {
			if yes {
				flat = append(flat, white[row][at])
			} else {
				require.Zero(t, white[row][at])
			}
		}
	}
	mean, std := MeanStd(flat)
	require.InDelta(t, 0, mean, 1e-12)
	require.InDelta(t, 1, std, 1e-6)
	for _, mask := range [][][]bool{{{true, true}, {false}}, {{true, false}, {false}}, {{false, false}, {false}}} {
		require.Equal(t, [][]float64{{0, 0}, {0}}, Whiten([][]float64{{0.1, 0.1}, {5}}, mask))
	}
}

// Adding the same to every reward of a group changes no advantage of a method with
// a group baseline, and a group's advantages sum to 0.
func TestGroupBaselines(t *testing.T) {
	e := randomEpisodes(t, 17, 12)
	moved := make([]float64, len(e.returns))
	for row := range moved {
		moved[row] = e.returns[row] + 10*float64(e.groups[row]+1)
	}
	for name, f := range map[string]func([]float64) ([]float64, error){
		"grpo": func(r []float64) ([]float64, error) {
			return GRPO(r, e.groups, Options{NormalizeByStd: true, Epsilon: 1e-6, Floor: 0.5})
		},
		"dr_grpo":       func(r []float64) ([]float64, error) { return DrGRPO(r, e.groups) },
		"leave_one_out": func(r []float64) ([]float64, error) { return LeaveOneOut(r, e.groups) },
	} {
		a, err := f(e.returns)
		require.NoError(t, err, name)
		b, err := f(moved)
		require.NoError(t, err, name)
		golden.Near(t, a, b, 1e-9, name)
		sums := make([]float64, 3)
		for row, x := range a {
			sums[e.groups[row]] += x
		}
		golden.Near(t, []float64{0, 0, 0}, sums, 1e-9, name)
	}
}

// GiGPO with ω = 0 is GRPO, and where all states are one state and γ = 0 its steps
// compare rewards.
func TestGiGPOLimits(t *testing.T) {
	e := randomEpisodes(t, 19, 12)
	rows, err := GRPO(e.returns, e.groups, Options{NormalizeByStd: true, Epsilon: 1e-6})
	require.NoError(t, err)
	got, err := GiGPO(e.rewards, e.groups, e.keys, Options{Gamma: 0.95, NormalizeByStd: true, Epsilon: 1e-6})
	require.NoError(t, err)
	for row := range got {
		for _, a := range got[row] {
			require.Equal(t, rows[row], a)
		}
	}
	// Rows in another order give the same advantages, up to rounding.
	n := len(e.rewards)
	back := episodes{}
	for row := n - 1; row >= 0; row-- {
		back.rewards, back.groups, back.keys = append(back.rewards, e.rewards[row]), append(back.groups, e.groups[row]), append(back.keys, e.keys[row])
	}
	o := Options{Gamma: 0.95, StepWeight: 1, NormalizeByStd: true, Epsilon: 1e-6}
	got, err = GiGPO(e.rewards, e.groups, e.keys, o)
	require.NoError(t, err)
	reversed, err := GiGPO(back.rewards, back.groups, back.keys, o)
	require.NoError(t, err)
	for row := range got {
		golden.Near(t, got[row], reversed[n-1-row], 1e-9)
	}
}

// Values observed iteration by iteration are those observed at once.
func TestObserveFolds(t *testing.T) {
	e := randomEpisodes(t, 23, 12)
	for _, rate := range []float64{0, 0.25, 1} {
		whole, err := Observe(nil, e.returns, e.initialStates, rate)
		require.NoError(t, err)
		first, err := Observe(nil, e.returns[:5], e.initialStates[:5], rate)
		require.NoError(t, err)
		parts, err := Observe(first, e.returns[5:], e.initialStates[5:], rate)
		require.NoError(t, err)
		require.Equal(t, whole, parts)
		require.Len(t, whole, 3)
	}
}

func TestRewardPlacesAndSums(t *testing.T) {
	e := randomEpisodes(t, 29, 9)
	sums, err := TurnSums(e.tokenRewards, e.turns)
	require.NoError(t, err)
	require.Equal(t, e.rewards, sums)
	end, err := TokenRewards(e.rewards, e.turns, e.lengths, AtEnd)
	require.NoError(t, err)
	for row, spans := range e.turns {
		last := spans[len(spans)-1].To - 1
		for at, r := range end[row] {
			if at == last {
				require.InDelta(t, e.returns[row], r, 1e-12)
			} else {
				require.Zero(t, r)
			}
		}
	}
}

// KL in the reward with k1 takes β times the trajectory's log ratio off its return.
func TestKLInRewardSums(t *testing.T) {
	e := randomEpisodes(t, 31, 9)
	reference := Zeros(e.mask)
	got, _, err := KLInReward(e.tokenRewards, e.values, reference, e.mask, 0.1, loss.K1)
	require.NoError(t, err)
	for row, sampled := range e.mask {
		var ratio float64
		for at, yes := range sampled {
			if yes {
				ratio += e.values[row][at]
			}
		}
		require.InDelta(t, e.returns[row]-0.1*ratio, Returns(got)[row], 1e-12)
	}
}
