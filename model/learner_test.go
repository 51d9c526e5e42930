package model

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

func mark(t testing.TB, s *State) string {
	t.Helper()
	h, err := s.Fingerprint()
	require.NoError(t, err)
	require.Len(t, h, 32)
	return h
}

// twin is a state with the same bits, for an update to consume.
func twin(t testing.TB, p *Programs, s *State) *State {
	t.Helper()
	snap, err := s.Download()
	require.NoError(t, err)
	got, err := p.Load(snap.source().Over(s.base))
	require.NoError(t, err)
	t.Cleanup(got.Free)
	return got
}

// scoredBatch is a batch whose old log-probs are the state's own, and whose
// advantages differ by row.
func scoredBatch(t testing.TB, p *Programs, s *State, seed uint64, temperature float32) batch.MicroBatch {
	t.Helper()
	b := batchOf(randomRows(seed, p.c, p.sh.MicroBatch, p.sh.Sequence), 1)
	b.Lengths[1]-- // a shorter row
	b.Mask[1][p.sh.Sequence-1] = false
	var err error
	b.Columns[batch.OldLogProbs], _, err = p.Scorer.Score(bg, s, b, temperature)
	require.NoError(t, err)
	for r := range b.Columns[batch.Advantages] {
		for i := range b.Columns[batch.Advantages][r] {
			b.Columns[batch.Advantages][r][i] = float32(r) - 0.7
		}
	}
	return b
}

func TestUpdateIsDeterministicAndTheFirstRatioIsOne(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	before := mark(t, s)
	batches := []batch.MicroBatch{scoredBatch(t, p, s, 1, 0.7), scoredBatch(t, p, s, 2, 0.7)}
	k := testSettings()
	k.Temperature = 0.7
	one, m, err := p.Learner.Update(bg, twin(t, p, s), batches, k)
	require.NoError(t, err)
	two, m2, err := p.Learner.Update(bg, twin(t, p, s), batches, k)
	require.NoError(t, err)
	require.Equal(t, m, m2)
	require.Equal(t, mark(t, one), mark(t, two))
	require.NotEqual(t, before, mark(t, one))
	require.Equal(t, before, mark(t, s), "the old state stays")
	require.Equal(t, 0.0, m.RatioMax)
	require.Equal(t, 0.0, m.ClipFraction)
	require.Equal(t, 0.0, m.ApproxKL)
	require.Equal(t, 2*(4+3+4), m.Tokens)
	require.Greater(t, m.Entropy, 0.0)
	require.Greater(t, m.GradNorm, 0.0)
	require.False(t, m.Skipped)
	require.Equal(t, int64(1), one.Step())

	// At the new parameters the ratios have moved.
	three, m3, err := p.Learner.Update(bg, twin(t, p, one), batches, k)
	require.NoError(t, err)
	require.Greater(t, m3.RatioMax, 0.0)
	require.Greater(t, m3.ApproxKL, 0.0)
	require.Less(t, m3.Loss, m.Loss)

	// The order of micro-batches and pad rows are part of the bits; what is beside
	// the batch is not: pad rows and empty micro-batches change nothing.
	padded := []batch.MicroBatch{batches[0], {}, batches[1]}
	four, _, err := p.Learner.Update(bg, twin(t, p, s), padded, k)
	require.NoError(t, err)
	require.Equal(t, mark(t, one), mark(t, four))
	for _, x := range []*State{one, two, three, four} {
		x.Free()
	}
}

func TestRowWeightZeroIsAPadRow(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	b.RowWeights = []float32{1, 1, 0}
	whole, m, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	defer whole.Free()
	require.Equal(t, 7, m.Tokens)
	cut := batch.MicroBatch{IDs: b.IDs[:2], Lengths: b.Lengths[:2], Mask: b.Mask[:2], Columns: batch.Columns{batch.OldLogProbs: b.Columns[batch.OldLogProbs][:2], batch.Advantages: b.Columns[batch.Advantages][:2]}}
	without, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{cut}, testSettings())
	require.NoError(t, err)
	defer without.Free()
	require.Equal(t, mark(t, whole), mark(t, without))
}

func TestSnapshotRoundTripKeepsBits(t *testing.T) {
	c := tiny()
	c.TieEmbeddings = false
	p, s := tinyPrograms(t, c)
	next, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{scoredBatch(t, p, s, 1, 1)}, testSettings())
	require.NoError(t, err)
	defer next.Free()
	snap, err := next.Download()
	require.NoError(t, err)
	require.Equal(t, int64(1), snap.Step)
	back, err := readSnapshot(filesOf(t, snap))
	require.NoError(t, err)
	require.Equal(t, snap, back)
	again, err := p.Upload(back)
	require.NoError(t, err)
	defer again.Free()
	require.Equal(t, mark(t, next), mark(t, again))
	b := scoredBatch(t, p, next, 5, 1)
	x, _, err := p.Scorer.Score(bg, next, b, 1)
	require.NoError(t, err)
	y, _, err := p.Scorer.Score(bg, again, b, 1)
	require.NoError(t, err)
	require.Equal(t, x, y)
}

func TestStateFingerprintSeesEveryPart(t *testing.T) {
	p, _ := tinyPrograms(t, tiny())
	seen := map[string]string{}
	for name, change := range map[string]func(*Snapshot){
		"nothing":   func(*Snapshot) {},
		"step":      func(s *Snapshot) { s.Step = 1 },
		"high step": func(s *Snapshot) { s.Step = 1 << 32 },
		"a parameter's last bit": func(s *Snapshot) {
			v := s.Params.Values[1]
			v[0] = math.Nextafter32(v[0], 2)
		},
		"the sign of a zero": func(s *Snapshot) { s.M.Values[0][3] = float32(math.Copysign(0, -1)) },
		"first moment":       func(s *Snapshot) { s.M.Values[0][0] = 1 },
		"its neighbour":      func(s *Snapshot) { s.M.Values[0][1] = 1 },
		"second moment":      func(s *Snapshot) { s.V.Values[0][0] = 1 },
		"another tensor":     func(s *Snapshot) { s.V.Values[1][0] = 1 },
		"two neighbours swapped": func(s *Snapshot) {
			v := s.Params.Values[0]
			v[0], v[1] = v[1], v[0]
		},
		"two far apart swapped": func(s *Snapshot) {
			v := s.Params.Values[0]
			v[0], v[len(v)-1] = v[len(v)-1], v[0]
		},
	} {
		snap := NewSnapshot(tinyParams(tiny()))
		change(&snap)
		s, err := p.Upload(snap)
		require.NoError(t, err)
		h := mark(t, s)
		require.Empty(t, seen[h], name)
		seen[h] = name
		s.Free()
		_, err = s.Fingerprint()
		require.ErrorIs(t, err, ErrFreed)
	}
}

func TestNonFiniteUpdatesAreSkipped(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	first, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{scoredBatch(t, p, s, 1, 1)}, testSettings())
	require.NoError(t, err)
	defer first.Free()
	for name, spoil := range map[string]func(*batch.MicroBatch){
		"infinite advantage": func(b *batch.MicroBatch) { b.Columns[batch.Advantages][0][4] = float32(math.Inf(1)) },
		"no number":          func(b *batch.MicroBatch) { b.Columns[batch.Advantages][0][4] = float32(math.NaN()) },
		"no old log-prob":    func(b *batch.MicroBatch) { b.Columns[batch.OldLogProbs][2][5] = float32(math.NaN()) },
	} {
		good, b := scoredBatch(t, p, first, 2, 1), scoredBatch(t, p, first, 1, 1)
		spoil(&b)
		next, m, err := p.Learner.Update(bg, twin(t, p, first), []batch.MicroBatch{good, b}, testSettings())
		require.NoError(t, err, name)
		require.True(t, m.Skipped, name)
		require.Equal(t, first.Step(), next.Step())
		require.Equal(t, mark(t, first), mark(t, next), name)
		next.Free()
	}
}

func TestBadBatchesAreRefused(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	for name, spoil := range map[string]func(*batch.MicroBatch, *Settings){
		"mask at 0":        func(b *batch.MicroBatch, _ *Settings) { b.Mask[0][0] = true },
		"mask past length": func(b *batch.MicroBatch, _ *Settings) { b.Lengths[0] = 3 },
		"length":           func(b *batch.MicroBatch, _ *Settings) { b.Lengths[0] = 8 },
		"id":               func(b *batch.MicroBatch, _ *Settings) { b.IDs[0][0] = 37 },
		"rows":             func(b *batch.MicroBatch, _ *Settings) { b.IDs = append(b.IDs, b.IDs[0]) },
		"no old":           func(b *batch.MicroBatch, _ *Settings) { b.Columns[batch.OldLogProbs] = nil },
		"all pad":          func(b *batch.MicroBatch, _ *Settings) { b.RowWeights = []float32{0, 0, 0} },
		"beta":             func(_ *batch.MicroBatch, k *Settings) { k.Beta1 = 1 },
		"rate":             func(_ *batch.MicroBatch, k *Settings) { k.LearningRate = float32(math.NaN()) },
		"temperature":      func(_ *batch.MicroBatch, k *Settings) { k.Temperature = -1 },
	} {
		b, k := batchOf(randomRows(1, p.c, 3, 7), 1), testSettings()
		spoil(&b, &k)
		_, _, err := p.Learner.Update(bg, s, []batch.MicroBatch{b}, k)
		require.ErrorIs(t, err, ErrInput, name)
	}
	done, cancel := context.WithCancel(bg)
	cancel()
	_, _, err := p.Learner.Update(done, s, []batch.MicroBatch{batchOf(randomRows(1, p.c, 3, 7), 1)}, testSettings())
	require.ErrorIs(t, err, context.Canceled)
	other, err := testDevice(t).Programs(benchConfig(), nil, Shapes{MicroBatch: 1, Sequence: 4})
	require.NoError(t, err)
	_, _, err = other.Scorer.Score(bg, s, batch.MicroBatch{}, 1)
	require.ErrorIs(t, err, ErrInput)
	_, err = other.Sampler.Generate(bg, s, GenerateInput{})
	require.ErrorIs(t, err, ErrInput)
}

// TestAdamW compares an update with AdamW written in Go on the same gradient.
func TestAdamW(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	k := testSettings()
	k.LearningRate, k.WeightDecay, k.MaxGradNorm = 0.01, 0.1, 0.5
	b := scoredBatch(t, p, s, 1, 1)
	want := NewSnapshot(tinyParams(p.c))
	state := s
	for step := 1; step <= 3; step++ {
		grads, _ := gradients(t, p, state, []batch.MicroBatch{b}, k, false)
		var square float64
		for _, g := range grads.Values {
			for _, x := range g {
				square += float64(x) * float64(x)
			}
		}
		norm := math.Sqrt(square)
		scale := math.Min(1, float64(k.MaxGradNorm)/(norm+1e-6))
		next, m, err := p.Learner.Update(bg, state, []batch.MicroBatch{b}, k)
		require.NoError(t, err)
		t.Cleanup(next.Free)
		require.InEpsilon(t, norm, m.GradNorm, 1e-5)
		b1, b2 := float64(k.Beta1), float64(k.Beta2)
		for i, ts := range p.c.Tensors() {
			for j, g := range grads.Values[i] {
				x, g := float64(want.Params.Values[i][j]), float64(g)*scale
				mo := b1*float64(want.M.Values[i][j]) + (1-b1)*g
				ve := b2*float64(want.V.Values[i][j]) + (1-b2)*g*g
				if len(ts.Shape) == 2 {
					x *= 1 - float64(k.LearningRate)*float64(k.WeightDecay)
				}
				mHat, vHat := mo/(1-math.Pow(b1, float64(step))), ve/(1-math.Pow(b2, float64(step)))
				x -= float64(k.LearningRate) * mHat / (math.Sqrt(vHat) + float64(k.AdamEpsilon))
				want.Params.Values[i][j], want.M.Values[i][j], want.V.Values[i][j] = float32(x), float32(mo), float32(ve)
			}
		}
		got, err := next.Download()
		require.NoError(t, err)
		require.Equal(t, int64(step), got.Step)
		for i, ts := range p.c.Tensors() {
			for j := range want.Params.Values[i] {
				require.InDelta(t, want.Params.Values[i][j], got.Params.Values[i][j], 2e-5, "%s %d", ts.Name, j)
				require.InDelta(t, want.M.Values[i][j], got.M.Values[i][j], 1e-6, ts.Name)
				require.InDelta(t, want.V.Values[i][j], got.V.Values[i][j], 1e-6, ts.Name)
			}
		}
		want, state = got, next
	}
}

func TestSupervisedUpdateLearns(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := batchOf(randomRows(9, p.c, 3, 7), 0)
	b.Columns[batch.OldLogProbs], b.Columns[batch.Advantages] = nil, nil
	k := testSettings()
	k.LearningRate, k.EntropyCoefficient = 0.01, 0
	var first, last float64
	state := s
	for i := range 60 {
		next, m, err := p.Learner.SupervisedUpdate(bg, state, []batch.MicroBatch{b}, k)
		require.NoError(t, err)
		state = next
		if i == 0 {
			first = m.Loss
		}
		last = m.Loss
	}
	state.Free()
	require.Less(t, last, first/10)
}

// A learner computes its log-probs with the scorer of its width, on its own device.
func TestLearnerReadsTheScorerOfItsWidth(t *testing.T) {
	p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 12, Narrower: [2]int{7, 5}})
	require.NoError(t, err)
	defer p.Free()
	require.Same(t, p.Learner, p.Learner.widths[0])
	for i, scorer := range p.Scorer.widths {
		of, err := p.Learner.of(batch.MicroBatch{Width: scorer.sh.Sequence})
		require.NoError(t, err)
		require.Same(t, p.Learner.widths[i], of)
		require.Same(t, scorer, of.scorer)
		there := of.at(1)
		require.Equal(t, 1, there.k)
		require.Same(t, there.core, there.scorer.core)
		require.Zero(t, of.k)
	}
	_, err = p.Learner.of(batch.MicroBatch{Width: 6})
	require.ErrorIs(t, err, ErrInput)
}
