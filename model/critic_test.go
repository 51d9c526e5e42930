package model

import (
	"math"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// tinyCritic is programs of a critic, one whose head is not 0 any more, and one
// whose is.
func tinyCritic(t testing.TB) (p *Programs, s, fresh *State) {
	t.Helper()
	p, err := testDevice(t).Programs(tiny().Critic(), nil, Shapes{MicroBatch: 3, Sequence: 7})
	require.NoError(t, err)
	params := NewCritic(tinyParams(tiny()))
	fresh, err = p.NewState(params)
	require.NoError(t, err)
	s, err = p.NewState(trainedCritic())
	require.NoError(t, err)
	t.Cleanup(func() { s.Free(); fresh.Free(); p.Free() })
	return p, s, fresh
}

// trainedCritic has a head of drawn numbers.
func trainedCritic() Params {
	p := NewCritic(tinyParams(tiny()))
	r := draw.Address{Seed: 5, Purpose: "test"}.Rand()
	head := p.Config.valueHead()
	for i := range p.Values[head] {
		p.Values[head][i] = float32(r.NormFloat64())
	}
	p.Values[head+1][0] = 0.3
	return p
}

// criticBatch has returns around the values, and old values a little off.
func criticBatch(t testing.TB, p *Programs, s *State, seed uint64) batch.MicroBatch {
	t.Helper()
	b := batchOf(randomRows(seed, p.c, 3, 7), 1)
	b.Lengths[1]-- // a shorter row
	b.Mask[1][6] = false
	b.RowWeights = []float32{1, 0.5, 2}
	values, err := p.Scorer.Values(bg, s, b)
	require.NoError(t, err)
	r := draw.Address{Seed: seed, Purpose: "test", Turn: 1}.Rand()
	for row := range values {
		returns, old := make([]float32, 7), make([]float32, 7)
		for at, v := range values[row] {
			returns[at], old[at] = v+float32(2*r.NormFloat64()), v+float32(0.8*r.NormFloat64())
		}
		b.Columns[batch.Returns], b.Columns[batch.OldValues] = append(b.Columns[batch.Returns], returns), append(b.Columns[batch.OldValues], old)
	}
	return b
}

func criticSettings() CriticSettings {
	return CriticSettings{Optimizer: testSettings().Optimizer, Clip: 0.5}
}

func TestCriticUpdate(t *testing.T) {
	p, s, fresh := tinyCritic(t)
	before := mark(t, s)
	batches := []batch.MicroBatch{criticBatch(t, p, s, 1), criticBatch(t, p, s, 2)}
	var values [][][]float32
	var mean, tokens float64
	for _, b := range batches {
		v, err := p.Scorer.Values(bg, s, b)
		require.NoError(t, err)
		values = append(values, v)
		for r := range b.IDs {
			for at := range b.Mask[r] {
				if b.Learns(r, at) {
					mean += float64(b.RowWeights[r]) * float64(v[r][at])
					tokens += float64(b.RowWeights[r])
				}
			}
		}
	}
	want, err := referenceValue(valueBatch(batches, values), ValueOptions{Clip: 0.5, Aggregation: loss.TokenMean})
	require.NoError(t, err)
	one, m, err := p.Learner.CriticUpdate(bg, twin(t, p, s), batches, criticSettings())
	require.NoError(t, err)
	defer one.Free()
	requireClose(t, want.Loss, m.Loss, 1)
	requireClose(t, want.ClipFraction, m.ClipFraction, 1)
	requireClose(t, mean/tokens, m.ValueMean, 1)
	require.Positive(t, m.GradNorm)
	require.Equal(t, 22, m.Tokens)
	require.False(t, m.Skipped)
	require.Equal(t, int64(1), one.Step())
	require.Equal(t, before, mark(t, s), "the old state stays")
	require.NotEqual(t, before, mark(t, one))

	// The same bits twice, and whatever is beside the rows.
	again, m2, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{batches[0], {}, batches[1]}, criticSettings())
	require.NoError(t, err)
	defer again.Free()
	require.Equal(t, m, m2)
	require.Equal(t, mark(t, one), mark(t, again))
	cut := batches[1]
	cut.RowWeights = []float32{1, 0.5, 0}
	padded, _, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{cut}, criticSettings())
	require.NoError(t, err)
	defer padded.Free()
	cut = batch.MicroBatch{IDs: cut.IDs[:2], Lengths: cut.Lengths[:2], Mask: cut.Mask[:2], RowWeights: cut.RowWeights[:2], Columns: batch.Columns{batch.Returns: cut.Columns[batch.Returns][:2], batch.OldValues: cut.Columns[batch.OldValues][:2]}}
	short, _, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{cut}, criticSettings())
	require.NoError(t, err)
	defer short.Free()
	require.Equal(t, mark(t, padded), mark(t, short))

	// It learns, from a head of zeros.
	k := criticSettings()
	k.LearningRate, k.Clip = 0.02, 0
	state := twin(t, p, fresh)
	var first, last float64
	for i := range 40 {
		next, m, err := p.Learner.CriticUpdate(bg, state, batches, k)
		require.NoError(t, err)
		if state = next; i == 0 {
			first = m.Loss
			require.Zero(t, m.ValueMean)
		}
		last = m.Loss
	}
	state.Free()
	require.Less(t, last, first/5)

	// Not finite: nothing changes.
	batches[0].Columns[batch.Returns][0][5] = float32(math.NaN())
	skipped, m, err := p.Learner.CriticUpdate(bg, twin(t, p, one), batches, criticSettings())
	require.NoError(t, err)
	defer skipped.Free()
	require.True(t, m.Skipped)
	require.Equal(t, mark(t, one), mark(t, skipped))
}

// The gradients of a minibatch's micro-batches are added in their order, each
// number rounded once an addition.
func TestMicroBatchesAddUpInOrder(t *testing.T) {
	p, s, _ := tinyCritic(t)
	k := criticSettings()
	var batches []batch.MicroBatch
	for seed := range uint64(3) {
		batches = append(batches, criticBatch(t, p, s, seed))
	}
	all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss))
	require.NoError(t, err)
	gradient := func(b ...packed) Params {
		g, _ := gradientsOf(t, p, s, b, pass{knobs: k.knobs(p.sh.Loss)})
		return g
	}
	whole, a, b, c := gradient(all...), gradient(all[0]), gradient(all[1]), gradient(all[2])
	for i := range whole.Values {
		for j, g := range whole.Values[i] {
			require.Equal(t, float32(a.Values[i][j]+b.Values[i][j])+c.Values[i][j], g)
		}
	}
}

// The gradient of the critic's whole loss by every tensor, with the clip and without.
func TestCriticGradientsAgreeWithDifferences(t *testing.T) {
	p, s, _ := tinyCritic(t)
	d := inFloat64(t, p, nil, 0)
	batches := []batch.MicroBatch{criticBatch(t, p, s, 3), criticBatch(t, p, s, 4)}
	for _, c := range []struct {
		clip        float32
		aggregation loss.Aggregation
	}{{0.5, loss.TokenMean}, {0.5, loss.SeqMeanTokenMean}, {0, loss.SeqMeanTokenSum}, {0.5, loss.Constant}} {
		k := criticSettings()
		k.Clip = c.clip
		require.NoError(t, batch.Weigh(batches, c.aggregation, 40))
		all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss))
		require.NoError(t, err)
		m := d.minibatch(t, valueLossOnly(d.p), all, k.knobs(p.sh.Loss))
		said, want := d.agreeWithDifferences(t, trainedCritic(), m, p.metric(terms.ValueClipFraction))
		m.free()
		require.Equal(t, c.clip > 0, said[p.metric(terms.ValueClipFraction)] > 0)
		got, _ := gradientsOf(t, p, s, all, pass{knobs: k.knobs(p.sh.Loss)})
		requireRounded(t, want, got)
	}
}

func TestCriticBFloat16(t *testing.T) {
	p, s, _ := tinyCritic(t)
	q, err := p.device.Programs(p.c, nil, Shapes{MicroBatch: 3, Sequence: 7, ComputeDtype: "bfloat16"})
	require.NoError(t, err)
	defer q.Free()
	b := criticBatch(t, q, s, 1)
	full, err := p.Scorer.Values(bg, s, b)
	require.NoError(t, err)
	half, err := q.Scorer.Values(bg, s, b)
	require.NoError(t, err)
	for r := range full {
		require.InDeltaSlice(t, full[r], half[r], 0.2)
	}
	next, m, err := q.Learner.CriticUpdate(bg, twin(t, q, s), []batch.MicroBatch{b}, criticSettings())
	require.NoError(t, err)
	defer next.Free()
	require.False(t, m.Skipped)
	require.Positive(t, m.GradNorm)
}

func TestCriticErrors(t *testing.T) {
	p, s, _ := tinyCritic(t)
	q, policy := tinyPrograms(t, tiny())
	b := criticBatch(t, p, s, 1)
	b.Columns[batch.OldLogProbs], b.Columns[batch.Advantages] = b.Columns[batch.Returns], b.Columns[batch.Returns]
	for name, err := range map[string]error{
		"score a critic":             second(p.Scorer.Score(bg, s, b, 1)),
		"score with a critic":        second(q.Scorer.Score(bg, s, b, 1)),
		"values of a policy":         first(q.Scorer.Values(bg, policy, b)),
		"values with a policy":       first(p.Scorer.Values(bg, policy, b)),
		"update a critic":            second(p.Learner.Update(bg, s, []batch.MicroBatch{b}, testSettings())),
		"teach a critic":             second(p.Learner.SupervisedUpdate(bg, s, []batch.MicroBatch{b}, testSettings())),
		"update a policy's critic":   second(q.Learner.CriticUpdate(bg, policy, []batch.MicroBatch{b}, criticSettings())),
		"generate with a critic":     first(p.Sampler.Generate(bg, s, GenerateInput{Prompts: b.IDs})),
		"upload a policy":            first(p.NewState(tinyParams(tiny()))),
		"upload a critic":            first(q.NewState(NewCritic(tinyParams(tiny())))),
		"no returns":                 second(p.Learner.CriticUpdate(bg, s, []batch.MicroBatch{without(b, true)}, criticSettings())),
		"no old values":              second(p.Learner.CriticUpdate(bg, s, []batch.MicroBatch{without(b, false)}, criticSettings())),
		"a clip below 0":             second(p.Learner.CriticUpdate(bg, s, []batch.MicroBatch{b}, CriticSettings{Clip: -1})),
		"a rate":                     second(p.Learner.CriticUpdate(bg, s, []batch.MicroBatch{b}, CriticSettings{Optimizer: Optimizer{LearningRate: -1}})),
		"a critic that generates":    first(p.device.Programs(p.c, nil, Shapes{GenerateRows: 1, PromptTokens: 1, MaxNewTokens: 1})),
		"a critic with legal ids":    first(p.device.Programs(p.c, make([]bool, 37), Shapes{MicroBatch: 1, Sequence: 4})),
		"a critic with a dual clip":  first(p.device.Programs(p.c, nil, Shapes{MicroBatch: 1, Sequence: 4, Loss: LossOptions{Guards: terms.DualClip}})),
		"a pair of two policies":     first(PairFingerprint(policy, policy)),
		"a pair the other way round": first(PairFingerprint(s, policy)),
	} {
		require.ErrorIs(t, err, ErrInput, name)
	}
	next, _, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{without(b, false)}, CriticSettings{})
	require.NoError(t, err, "old values are read for the clip alone")
	next.Free()
}

func without(b batch.MicroBatch, returns bool) batch.MicroBatch {
	if returns {
		b.Columns[batch.Returns] = nil
	} else {
		b.Columns[batch.OldValues] = nil
	}
	return b
}

func first[A any](_ A, err error) error          { return err }
func second[A, B any](_ A, _ B, err error) error { return err }

func TestNothingOfACriticIsLeftOnTheDevice(t *testing.T) {
	p, s, _ := tinyCritic(t)
	b := criticBatch(t, p, s, 1)
	once := func() {
		_, err := p.Scorer.Values(bg, s, b)
		require.NoError(t, err)
		next, _, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{b, b}, criticSettings())
		require.NoError(t, err)
		mark(t, next)
		next.Free()
		lone, err := p.UploadParams(trainedCritic())
		require.NoError(t, err)
		mark(t, lone)
		lone.Free()
	}
	once()
	before := pjrt.BuffersAlive()
	for range 3 {
		once()
	}
	require.LessOrEqual(t, pjrt.BuffersAlive(), before)
}
