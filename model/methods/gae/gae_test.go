package gae

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) {
	credittest.ComputeWorked(t, Entry, EntryTurns, EntryTurnReturns)
}

// The key of a GAE case says its γ and λ.
func TestGAEGolden(t *testing.T) {
	for i, c := range golden.RLCases(t, filepath.Join("..", "..", "credit", "testdata")) {
		found := 0
		for name, want := range c.Adv {
			if !strings.HasPrefix(name, "gae_") {
				continue
			}
			o := credit.Options{Whiten: want.Whitened}
			_, err := fmt.Sscanf(strings.ReplaceAll(name, "_", " "), "gae g%g l%g", &o.Gamma, &o.Lambda)
			require.NoError(t, err, name)
			advantages, returns, err := GAE(c.TokenRewards, c.Values, c.Sampled(), o)
			require.NoError(t, err)
			credittest.EqualRL(t, c, want.Advantages, advantages)
			credittest.EqualRL(t, c, want.Returns, returns)
			found++
		}
		require.Positive(t, found, "case %d", i)
	}
}

func TestGAEWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Rewards, Values, Advantages, Returns [][]float64
		Mask                                 [][]bool
		Options                              credit.Options
	}](t, "worked.json", "gae")
	advantages, returns, err := GAE(e.Rewards, e.Values, e.Mask, e.Options)
	require.NoError(t, err)
	credittest.Near(t, e.Advantages, advantages)
	credittest.Near(t, e.Returns, returns)
}

func TestTurnGAEWorked(t *testing.T) {
	type example struct {
		Turns  [][]credit.Span
		Values [][]float64
		Cases  []struct {
			Name                         string
			Rewards, Advantages, Returns [][]float64
			Options                      credit.Options
		}
	}
	e := credittest.Worked[example](t, "turn_gae.json", "")
	for _, c := range e.Cases {
		t.Run(c.Name, func(t *testing.T) {
			advantages, returns, err := TurnGAE(c.Rewards, e.Values, e.Turns, c.Options)
			require.NoError(t, err)
			credittest.Near(t, c.Advantages, advantages)
			credittest.Near(t, c.Returns, returns)
		})
	}
}

// Without a critic, γ = λ = 1, a token's advantage is what its row still gets.
func TestGAEOfNoValuesIsTheReturn(t *testing.T) {
	e := credittest.RandomEpisodes(t, 7, 9)
	advantages, returns, err := GAE(e.Tokens, credit.Zeros(e.Mask), e.Mask, credit.Options{Gamma: 1, Lambda: 1})
	require.NoError(t, err)
	require.Equal(t, advantages, returns)
	for row, spans := range e.Turns {
		for k, s := range spans {
			var rest float64
			for _, r := range e.Rewards[row][k:] {
				rest += r
			}
			for _, a := range advantages[row][s.From:s.To] {
				require.InDelta(t, rest, a, 1e-12)
			}
		}
	}
}

// Bridging: the row without the tokens that were not sampled gives the same.
func TestGAEBridges(t *testing.T) {
	e := credittest.RandomEpisodes(t, 3, 9)
	o := credit.Options{Gamma: 0.9, Lambda: 0.8}
	advantages, returns, err := GAE(e.Tokens, e.Values, e.Mask, o)
	require.NoError(t, err)
	pack := func(x [][]float64) [][]float64 {
		out := make([][]float64, len(x))
		for row, sampled := range e.Mask {
			for at, yes := range sampled {
				if yes {
					out[row] = append(out[row], x[row][at])
				}
			}
		}
		return out
	}
	all := pack(credit.Zeros(e.Mask))
	mask := make([][]bool, len(all))
	for row := range all {
		for range all[row] {
			mask[row] = append(mask[row], true)
		}
	}
	a, g, err := GAE(pack(e.Tokens), pack(e.Values), mask, o)
	require.NoError(t, err)
	require.Equal(t, a, pack(advantages))
	require.Equal(t, g, pack(returns))
	// Values at the environment's tokens are not read.
	for row, sampled := range e.Mask {
		for at, yes := range sampled {
			if !yes {
				e.Values[row][at] = math.NaN()
			}
		}
	}
	again, _, err := GAE(e.Tokens, e.Values, e.Mask, o)
	require.NoError(t, err)
	require.Equal(t, advantages, again)
}

// Two levels that neither discount nor trust the critic are the one level.
func TestTurnGAEOfOnesIsGAE(t *testing.T) {
	e := credittest.RandomEpisodes(t, 5, 9)
	want, _, err := GAE(e.Tokens, e.Values, e.Mask, credit.Options{Gamma: 1, Lambda: 1, Whiten: true})
	require.NoError(t, err)
	for _, at := range []credit.ValuePlace{credit.LastPromptToken, credit.FinalToken} {
		got, _, err := TurnGAE(e.Rewards, e.Values, e.Turns, credit.Options{Gamma: 1, Lambda: 1, TurnGamma: 1, TurnLambda: 1, ValueAt: at, Whiten: true})
		require.NoError(t, err)
		credittest.Near(t, want, got)
	}
}

// The first token of a turn has the turn's own advantage where its value is read
// there, and the upper level alone gives the same number.
func TestTurnGAEFirstToken(t *testing.T) {
	e := credittest.RandomEpisodes(t, 11, 9)
	of := make([][]float64, len(e.Turns))
	for row, spans := range e.Turns {
		for _, s := range spans {
			of[row] = append(of[row], e.Values[row][s.From])
		}
	}
	upper, err := TurnAdvantages(e.Rewards, of, 0.95, 0.7)
	require.NoError(t, err)
	got, _, err := TurnGAE(e.Rewards, e.Values, e.Turns, credit.Options{Gamma: 1, Lambda: 1, TurnGamma: 0.95, TurnLambda: 0.7})
	require.NoError(t, err)
	spread, err := credit.OverTurns(upper, e.Turns, e.Lengths)
	require.NoError(t, err)
	for row, spans := range e.Turns {
		for _, s := range spans {
			require.InDelta(t, spread[row][s.From], got[row][s.From], 1e-12)
		}
	}
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t,
		credittest.Bits{Name: "gae", Want: "32bc30e833e2", Compute: func() ([][]float64, error) {
			a, g, err := GAE(e.Tokens, e.Values, e.Mask, credit.Options{Gamma: 0.97, Lambda: 0.93, Whiten: true})
			return append(a, g...), err
		}},
		credittest.Bits{Name: "turn gae", Want: "6b99da5566d4", Compute: func() ([][]float64, error) {
			a, g, err := TurnGAE(e.Rewards, e.Values, e.Turns, credit.Options{Gamma: 0.97, Lambda: 0.93, TurnGamma: 0.95, TurnLambda: 0.9})
			return append(a, g...), err
		}},
		credittest.Bits{Name: "turn returns", Want: "c3a50f9136b6", Compute: func() ([][]float64, error) {
			a, g, _, err := TurnReturns(e.Rewards, e.Values, e.Turns, credit.Options{TurnGamma: 0.95, TurnLambda: 0.9, Whiten: true})
			return append(a, g...), err
		}},
	)
}
