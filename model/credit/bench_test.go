package credit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCredit is the host's work on 128 trajectories of 3,600 tokens: 9 turns
// of 100 prompt and 300 sampled tokens.
func BenchmarkCredit(b *testing.B) {
	const rows, turns, prompt, sampled = 128, 9, 100, 300
	r := rand.New(rand.NewPCG(1, 1))
	spans, rewards := make([][]Span, rows), make([][]float64, rows)
	values, keys := make([][]float64, rows), make([][]string, rows)
	lengths, groups := make([]int, rows), make([]int, rows)
	for row := range rows {
		for k := range turns {
			from := k*(prompt+sampled) + prompt
			spans[row] = append(spans[row], Span{from, from + sampled})
			rewards[row] = append(rewards[row], r.NormFloat64())
			keys[row] = append(keys[row], fmt.Sprint("state ", r.IntN(50)))
		}
		lengths[row], groups[row] = turns*(prompt+sampled), row/16
		for range lengths[row] {
			values[row] = append(values[row], r.NormFloat64())
		}
	}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, f())
			}
		})
	}
	overRows := func(advantages []float64) error {
		mask, err := Mask(spans, lengths)
		if err != nil {
			return err
		}
		_, err = OverRows(advantages, mask)
		return err
	}
	run("gae", func() error {
		mask, err := Mask(spans, lengths)
		if err != nil {
			return err
		}
		tokens, err := TokenRewards(rewards, spans, lengths, AtTurns)
		if err != nil {
			return err
		}
		_, _, err = GAE(tokens, values, mask, GAEOptions{Gamma: 1, Lambda: 1, Whiten: true})
		return err
	})
	run("turn_gae", func() error {
		_, _, err := TurnGAE(rewards, values, spans, TurnGAEOptions{Gamma: 1, Lambda: 1, TurnGamma: 0.95, TurnLambda: 1, Whiten: true})
		return err
	})
	run("grpo", func() error {
		a, err := GRPO(Returns(rewards), groups, GRPOOptions{NormalizeByStd: true, Epsilon: 1e-6})
		if err != nil {
			return err
		}
		return overRows(a)
	})
	run("gigpo", func() error {
		a, err := GiGPO(rewards, groups, keys, GiGPOOptions{Gamma: 0.95, StepWeight: 1})
		if err != nil {
			return err
		}
		_, err = OverTurns(a, spans, lengths)
		return err
	})
}
