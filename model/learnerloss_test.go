package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

func TestOnPolicyNothingIsClipped(t *testing.T) {
	p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 7, Loss: LossOptions{Ratio: loss.SequenceRatio, KL: loss.K3, Guards: terms.DualClip}})
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	b := scoredBatch(t, p, s, 1, 0.7)
	b.Columns[batch.RefLogProbs] = b.Columns[batch.OldLogProbs]
	require.NoError(t, batch.Weigh([]batch.MicroBatch{b}, loss.SeqMeanTokenMean, 0))
	k := testSettings()
	k.Temperature, k.ClipLow, k.ClipHigh, k.KLCoefficient = 0.7, 0, 0, 0.1
	k.Knobs = terms.Knobs{terms.DualClip: 3}
	next, m, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{b}, k)
	require.NoError(t, err)
	defer next.Free()
	require.Zero(t, m.RatioMax)
	require.Zero(t, m.ClipFraction)
	require.Zero(t, m.DualClipFraction)
	require.Zero(t, m.BehaviourKL)
	require.Zero(t, m.ApproxKL)
	require.Zero(t, m.KL)
	require.InDelta(t, m.Loss, m.PolicyLoss-float64(k.EntropyCoefficient)*m.Entropy, 1e-6)

	// The options belong to the programs, the strengths to the settings.
	plain, _ := tinyPrograms(t, tiny())
	for name, spoil := range map[string]func(*Settings, *batch.MicroBatch){
		"no dual clip": func(k *Settings, _ *batch.MicroBatch) { k.Knobs = nil },
		"low":          func(k *Settings, _ *batch.MicroBatch) { k.Knobs = terms.Knobs{terms.DualClip: 1} },
		"no reference": func(_ *Settings, b *batch.MicroBatch) { b.Columns[batch.RefLogProbs] = nil },
		"a low bound":  func(_ *Settings, b *batch.MicroBatch) { b.Columns[batch.ClipLow] = [][]float32{{}, {}, {}} },
		"above 1":      func(k *Settings, _ *batch.MicroBatch) { k.ClipLow = 1.5 },
	} {
		k, b := k, b
		spoil(&k, &b)
		_, _, err := p.Learner.Update(bg, s, []batch.MicroBatch{b}, k)
		require.ErrorIs(t, err, ErrInput, name)
	}
	for _, k := range []Settings{{Knobs: terms.Knobs{terms.DualClip: 3}}, {KLCoefficient: 1}} {
		_, _, err = plain.Learner.Update(bg, s, []batch.MicroBatch{b}, k)
		require.ErrorIs(t, err, ErrInput)
		require.ErrorContains(t, err, "prepared without")
	}
	next, _, err = p.Learner.SupervisedUpdate(bg, twin(t, p, s), []batch.MicroBatch{{IDs: b.IDs, Lengths: b.Lengths, Mask: b.Mask}}, testSettings())
	require.NoError(t, err, "it reads neither")
	next.Free()
	for _, o := range []LossOptions{
		{Ratio: "word"}, {KL: "k4"}, {Surrogate: "tv"}, {Ratio: loss.TurnRatio}, {Turns: 2},
		{Surrogate: loss.CISPO, Ratio: loss.SequenceRatio}, {Surrogate: loss.SAPO, Guards: terms.DualClip},
	} {
		_, err := testDevice(t).Programs(tiny(), nil, Shapes{Loss: o})
		require.ErrorIs(t, err, ErrInput)
	}
}
