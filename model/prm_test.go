package model

import (
	"io/fs"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	refs "github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// A process reward model begins as its policy, and a snapshot of both gives both back.
func TestPRM(t *testing.T) {
	p, policy := tinyPrograms(t, tiny())
	prm, err := p.Load(policy.NewPRM())
	require.NoError(t, err)
	defer prm.Free()
	b := scoredBatch(t, p, policy, 1, 1)
	scored, _, err := p.Scorer.Score(bg, prm, b, 1)
	require.NoError(t, err)
	require.Equal(t, b.Columns[batch.OldLogProbs], scored)
	pair, err := PairFingerprint(policy, prm)
	require.NoError(t, err)
	require.NotEqual(t, mark(t, policy), pair)
	_, err = PairFingerprint(prm, policy)
	require.ErrorIs(t, err, ErrInput)

	next, m, err := p.Learner.Update(bg, twin(t, p, prm), []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	defer next.Free()
	require.Zero(t, m.RatioMax)
	want, err := PairFingerprint(policy, next)
	require.NoError(t, err)
	require.NotEqual(t, pair, want, "the step counts")

	files := stored(t, policy)
	maps.Copy(files, stored(t, next))
	require.Contains(t, files, PRMFile)
	require.Contains(t, files, PRMOptimizerFile)
	require.Len(t, files, 5)
	require.False(t, OfPolicy(PRMFile))
	require.False(t, OfPolicy(PRMOptimizerFile))
	folder, err := OpenFS(held(files))
	require.NoError(t, err)
	src, err := folder.Second(tiny().PRM())
	require.NoError(t, err)
	back, err := p.Load(src)
	require.NoError(t, err)
	defer back.Free()
	got, err := PairFingerprint(policy, back)
	require.NoError(t, err)
	require.Equal(t, want, got)

	delete(files, PRMFile)
	folder, err = OpenFS(held(files))
	require.NoError(t, err)
	_, err = folder.Second(tiny().PRM())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func sigmoid(f float64) float64 { return 1 / (1 + math.Exp(-f)) }

// The loss of promises is golden.SoftCrossEntropy of the chances, and its derivative their difference
// from the targets.
func TestPromises(t *testing.T) {
	p, err := testDevice(t).Programs(tiny().Critic(), nil, Shapes{MicroBatch: 3, Sequence: 7, Loss: LossOptions{Value: terms.Promise}})
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(trainedCritic())
	require.NoError(t, err)
	defer s.Free()
	b := criticBatch(t, p, s, 1)
	b.RowWeights = nil
	values, err := p.Scorer.Values(bg, s, b)
	require.NoError(t, err)
	var targets, chances []float64
	mean := 0.0
	for row, of := range values {
		for at, f := range of {
			target := float64(at) / 6
			b.Columns[batch.Returns][row][at] = float32(target)
			if b.Mask[row][at] {
				targets, chances = append(targets, target), append(chances, sigmoid(float64(f)))
				mean += sigmoid(float64(f))
			}
		}
	}
	want := refs.SoftCrossEntropy(targets, chances)
	require.NoError(t, batch.Weigh([]batch.MicroBatch{b}, loss.TokenMean, 0))
	k := criticSettings()
	k.Clip = 0.5
	_, err = p.Learner.CriticGradient([]batch.MicroBatch{b}, k)
	require.ErrorIs(t, err, ErrInput, "logits have no clip")
	k.Clip = 0
	before := want
	for step := range 20 {
		next, m, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{b}, k)
		require.NoError(t, err)
		defer next.Free()
		s = next
		if step == 0 {
			require.InDelta(t, want, m.Loss, 1e-5)
			require.InDelta(t, mean/float64(len(chances)), m.ValueMean, 1e-5)
			require.Zero(t, m.ClipFraction)
		}
		before = m.Loss
	}
	require.Less(t, before, want-0.01, "it learns")
	for _, bad := range []struct {
		c  Config
		sh Shapes
	}{{tiny(), Shapes{MicroBatch: 3, Sequence: 7, Loss: LossOptions{Value: terms.Promise}}}, {tiny().Critic(), Shapes{MicroBatch: 3, Sequence: 7, Loss: LossOptions{Value: terms.Promise, Guards: terms.DualClip}}}} {
		_, err = testDevice(t).Programs(bad.c, nil, bad.sh)
		require.ErrorIs(t, err, ErrInput)
	}
}
