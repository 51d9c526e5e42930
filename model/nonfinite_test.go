package model

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// An update is skipped where its loss is not finite, though its gradient is, and
// where its gradient is not finite, though its loss is: either alone is enough, for
// every kind of update.
func TestEitherNonFiniteSkipsTheUpdate(t *testing.T) {
	c := tiny()
	legal := make([]bool, c.VocabSize)
	for id := range legal {
		legal[id] = id != 36
	}
	p, err := testDevice(t).Programs(c, legal, tinyShapes)
	require.NoError(t, err)
	defer p.Free()
	fresh, err := p.NewState(tinyParams(c))
	require.NoError(t, err)
	defer fresh.Free()
	rows := randomRows(4, c, tinyShapes.MicroBatch, tinyShapes.Sequence)
	for _, row := range rows {
		for i := range row {
			row[i] %= 36 // the legal ones
		}
	}
	scored := func() batch.MicroBatch {
		b := batchOf(rows, 1)
		var err error
		b.Columns[batch.OldLogProbs], _, err = p.Scorer.Score(bg, fresh, b, 1)
		require.NoError(t, err)
		return b
	}
	// Sums instead of means, so that two large tokens overflow.
	summed := func(batches []batch.MicroBatch) []batch.MicroBatch {
		require.NoError(t, batch.Weigh(batches, loss.Constant, 1))
		return batches
	}
	clippedFrom := func(advantage, logRatio float32) batch.MicroBatch {
		b := scored()
		for i := range b.IDs {
			for at, masked := range b.Mask[i] {
				if masked {
					b.Columns[batch.OldLogProbs][i][at] -= logRatio
					b.Columns[batch.Advantages][i][at] = advantage
				}
			}
		}
		return b
	}
	k := testSettings()
	k.EntropyCoefficient = 0
	update := func(b batch.MicroBatch) (*State, UpdateMetrics) {
		next, m, err := p.Learner.Update(bg, twin(t, p, fresh), summed([]batch.MicroBatch{scored(), b}), k)
		require.NoError(t, err)
		return next, m
	}
	unknown := scored()
	unknown.IDs = slices.Clone(rows)
	unknown.IDs[1] = append(slices.Clone(rows[1][:6]), 36) // an id without probability: its log-prob is −Inf, its gradient 1
	unknown.Columns[batch.OldLogProbs], unknown.Columns[batch.Advantages] = nil, nil
	for name, c := range map[string]struct {
		run            func() (*State, UpdateMetrics)
		finiteLoss     bool
		finiteGradient bool
	}{
		// Every token is clipped, so that its slope is 0, and worth −1.28·2e38 or 0.8·3e38.
		"loss, clipped above": {func() (*State, UpdateMetrics) { return update(clippedFrom(2e38, 1)) }, false, true},
		"loss, clipped below": {func() (*State, UpdateMetrics) { return update(clippedFrom(-3e38, -1)) }, false, true},
		"loss, supervised": {func() (*State, UpdateMetrics) {
			next, m, err := p.Learner.SupervisedUpdate(bg, twin(t, p, fresh), []batch.MicroBatch{unknown}, k)
			require.NoError(t, err)
			return next, m
		}, false, true},
		"gradient":     {func() (*State, UpdateMetrics) { return update(clippedFrom(1e30, 0)) }, true, false},
		"both":         {func() (*State, UpdateMetrics) { return update(clippedFrom(3e38, 0)) }, false, false},
		"neither":      {func() (*State, UpdateMetrics) { return update(clippedFrom(1, 0)) }, true, true},
		"neither, big": {func() (*State, UpdateMetrics) { return update(clippedFrom(1e15, 0)) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, m := c.run()
			defer next.Free()
			checkSkip(t, fresh, next, m.Loss, m.GradNorm, m.Skipped, c.finiteLoss, c.finiteGradient)
		})
	}

	// A skipped step leaves nothing: the update after it is the same as without it.
	spoiled, m := update(clippedFrom(2e38, 1))
	require.True(t, m.Skipped)
	defer spoiled.Free()
	one, _, err := p.Learner.Update(bg, twin(t, p, spoiled), []batch.MicroBatch{scored()}, k)
	require.NoError(t, err)
	defer one.Free()
	two, _, err := p.Learner.Update(bg, twin(t, p, fresh), []batch.MicroBatch{scored()}, k)
	require.NoError(t, err)
	defer two.Free()
	require.Equal(t, mark(t, two), mark(t, one))
}

// The same for a critic.
func TestEitherNonFiniteSkipsTheCriticsUpdate(t *testing.T) {
	p, s, _ := tinyCritic(t)
	for name, c := range map[string]struct {
		old, returns               float32
		finiteLoss, finiteGradient bool
	}{
		// The clipped value is −3e19 and its error the greater: the slope is 0.
		"loss":     {-3e19, 0, false, true},
		"both":     {0, 1e30, false, false},
		"neither":  {0, 1, true, true},
		"gradient": {0, 1.5e19, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := batchOf(randomRows(4, p.c, 3, 7), 0)
			b.Columns[batch.OldLogProbs], b.Columns[batch.Advantages] = nil, nil
			for _, mask := range b.Mask {
				old, returns := make([]float32, len(mask)), make([]float32, len(mask))
				for at, masked := range mask {
					if masked {
						old[at], returns[at] = c.old, c.returns
					}
				}
				b.Columns[batch.OldValues], b.Columns[batch.Returns] = append(b.Columns[batch.OldValues], old), append(b.Columns[batch.Returns], returns)
			}
			next, m, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{b}, criticSettings())
			require.NoError(t, err)
			defer next.Free()
			checkSkip(t, s, next, m.Loss, m.GradNorm, m.Skipped, c.finiteLoss, c.finiteGradient)
		})
	}
}

func checkSkip(t *testing.T, before, after *State, loss, norm float64, skipped, finiteLoss, finiteGradient bool) {
	t.Helper()
	finite := func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
	require.Equal(t, finiteLoss, finite(loss), "the case is about a loss of %v", loss)
	require.Equal(t, finiteGradient, finite(norm), "the case is about a gradient of norm %v", norm)
	skip := !finiteLoss || !finiteGradient
	require.Equal(t, skip, skipped)
	if skip {
		require.Equal(t, before.Step(), after.Step())
		require.Equal(t, mark(t, before), mark(t, after), "not a bit has changed")
	} else {
		require.Equal(t, before.Step()+1, after.Step())
		require.NotEqual(t, mark(t, before), mark(t, after))
	}
}

// A NaN or an infinity in a row reaches no other row, in either dtype, by the sampler or by the scorer.
func TestNonFiniteRowStays(t *testing.T) {
	c := tiny()
	c.TieEmbeddings = false // the head must not have the NaN
	const broken, sound = 5, 6
	legal := slices.Repeat([]bool{true}, c.VocabSize)
	legal[broken] = false // it is not sampled
	for _, dtype := range []string{"float32", "bfloat16"} {
		for _, exact := range []bool{true, false} {
			sh := tinyShapes
			sh.ComputeDtype, sh.Exact = dtype, exact
			p, err := testDevice(t).Programs(c, legal, sh)
			require.NoError(t, err)
			defer p.Free()
			for _, bad := range []float64{math.NaN(), math.Inf(1)} {
				params := tinyParams(c)
				require.Equal(t, "model.embed_tokens.weight", c.Tensors()[0].Name)
				for i := range c.HiddenSize {
					params.Values[0][broken*c.HiddenSize+i] = float32(bad)
				}
				s, err := p.NewState(params)
				require.NoError(t, err)
				defer s.Free()
				rows := randomRows(4, c, sh.GenerateRows, sh.Sequence)
				for _, row := range rows {
					for i := range row {
						if row[i] == broken {
							row[i] = sound
						}
					}
				}
				var sampledBy, scoredBy [2][][]float32 // with the NaN and without
				for i, first := range []int32{broken, sound} {
					rows[0][0] = first
					in := GenerateInput{Temperature: 1, IgnoreStop: true, Uniforms: uniforms(3, sh.GenerateRows, sh.MaxNewTokens)}
					for _, row := range rows {
						in.Prompts = append(in.Prompts, row[:4])
					}
					got, err := p.Sampler.Generate(bg, s, in)
					require.NoError(t, err)
					sampledBy[i] = got.LogProbs
					scoredBy[i], _, err = p.Scorer.Score(bg, s, batchOf(rows[:sh.MicroBatch], 1), 1)
					require.NoError(t, err)
				}
				require.NotEqual(t, sampledBy[0][0], sampledBy[1][0])
				require.True(t, math.IsNaN(float64(scoredBy[0][0][2])))
				require.Equal(t, sampledBy[1][1:], sampledBy[0][1:], "%s, exact %v, %v", dtype, exact, bad)
				require.Equal(t, scoredBy[1][1:], scoredBy[0][1:], "%s, exact %v, %v", dtype, exact, bad)
			}
		}
	}
}
