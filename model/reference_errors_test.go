package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

func TestErrors(t *testing.T) {
	good := func() (PolicyBatch, PolicyOptions) {
		one := [][]float64{{0, 0}}
		return PolicyBatch{LogProbs: one, OldLogProbs: one, RefLogProbs: one, Advantages: one, Entropies: one, Mask: [][]bool{{true, true}}},
			PolicyOptions{Clips: []Clip{{0.2, 0.28}}, Aggregation: loss.TokenMean}
	}
	for text, change := range map[string]func(*PolicyBatch, *PolicyOptions){
		`ratio "word"`: func(_ *PolicyBatch, o *PolicyOptions) { o.Ratio = "word" },
		"no clip":      func(_ *PolicyBatch, o *PolicyOptions) { o.Clips = nil },
		"the clip of turn 0 is 1.5 below and 0 above 1": func(_ *PolicyBatch, o *PolicyOptions) { o.Clips = []Clip{{1.5, 0}} },
		"the clip of turn 0 is 0 below and +Inf above":  func(_ *PolicyBatch, o *PolicyOptions) { o.Clips = []Clip{{0, math.Inf(1)}} },
		"DualClip is 1, must be above 1":                func(_ *PolicyBatch, o *PolicyOptions) { o.DualClip = 1 },
		"EntropyCoefficient is NaN":                     func(_ *PolicyBatch, o *PolicyOptions) { o.EntropyCoefficient = math.NaN() },
		"KLCoefficient is -1":                           func(_ *PolicyBatch, o *PolicyOptions) { o.KLCoefficient = -1 },
		`KL estimator ""`:                               func(_ *PolicyBatch, o *PolicyOptions) { o.KLCoefficient = 1 },
		`aggregation "mean"`:                            func(_ *PolicyBatch, o *PolicyOptions) { o.Aggregation = "mean" },
		"the divisor is 0":                              func(_ *PolicyBatch, o *PolicyOptions) { o.Aggregation = loss.Constant },
		"0 rows of log-probs, 1 of the mask":            func(b *PolicyBatch, _ *PolicyOptions) { b.LogProbs = nil },
		"row 0 has 1 old log-probs for 2 tokens":        func(b *PolicyBatch, _ *PolicyOptions) { b.OldLogProbs = [][]float64{{0}} },
		"0 rows of advantages":                          func(b *PolicyBatch, _ *PolicyOptions) { b.Advantages = nil },
		"0 rows of entropies":                           func(b *PolicyBatch, o *PolicyOptions) { b.Entropies, o.EntropyCoefficient = nil, 1 },
		"0 rows of reference": func(b *PolicyBatch, o *PolicyOptions) {
			b.RefLogProbs, o.KLCoefficient, o.KLEstimator = nil, 1, loss.K3
		},
		"bounds or ratios by turn, but no turns": func(_ *PolicyBatch, o *PolicyOptions) { o.Clips = append(o.Clips, Clip{}) },
		"turns of 2 rows":                        func(b *PolicyBatch, _ *PolicyOptions) { b.Turns = [][]int{{0}, {0}} },
		"row 0 has 1 turns for 2 tokens":         func(b *PolicyBatch, _ *PolicyOptions) { b.Turns = [][]int{{0}} },
		"row 0, token 1 is of turn -1":           func(b *PolicyBatch, _ *PolicyOptions) { b.Turns = [][]int{{0, -1}} },
		"2 row weights for 1 rows":               func(b *PolicyBatch, _ *PolicyOptions) { b.RowWeights = []float64{1, 1} },
		"the weight of row 0 is -1, must":        func(b *PolicyBatch, _ *PolicyOptions) { b.RowWeights = []float64{-1} },
	} {
		t.Run(text, func(t *testing.T) {
			b, o := good()
			change(&b, &o)
			_, err := referencePolicy(b, o)
			require.ErrorIs(t, err, loss.ErrInput)
			require.ErrorContains(t, err, text)
		})
	}
	b, o := good()
	_, err := referencePolicy(b, o)
	require.NoError(t, err)
}

func TestValueErrors(t *testing.T) {
	one, mask := [][]float64{{0, 0}}, [][]bool{{true, true}}
	for text, c := range map[string]struct {
		b ValueBatch
		o ValueOptions
	}{
		"Clip is -1":             {ValueBatch{one, one, one, mask, nil}, ValueOptions{-1, loss.TokenMean, 0}},
		"0 rows of values":       {ValueBatch{nil, one, one, mask, nil}, ValueOptions{1, loss.TokenMean, 0}},
		"0 rows of old values":   {ValueBatch{one, nil, one, mask, nil}, ValueOptions{1, loss.TokenMean, 0}},
		"0 rows of returns":      {ValueBatch{one, one, nil, mask, nil}, ValueOptions{1, loss.TokenMean, 0}},
		`aggregation ""`:         {ValueBatch{one, one, one, mask, nil}, ValueOptions{1, "", 0}},
		"the weight of row 0 is": {ValueBatch{one, one, one, mask, []float64{math.NaN()}}, ValueOptions{1, loss.TokenMean, 0}},
	} {
		_, err := referenceValue(c.b, c.o)
		require.ErrorIs(t, err, loss.ErrInput)
		require.ErrorContains(t, err, text)
	}
	_, err := referenceValue(ValueBatch{one, nil, one, mask, nil}, ValueOptions{0, loss.TokenMean, 0})
	require.NoError(t, err)
}
