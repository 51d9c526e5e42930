package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// The three numbers of a head are those of three heads, and an update that learns one of them is that
// of the critic with that head.
func TestCriticOfThreeValues(t *testing.T) {
	one, s, _ := tinyCritic(t)
	three, err := testDevice(t).Programs(tiny().CriticOf(3), nil, Shapes{MicroBatch: 3, Sequence: 7})
	require.NoError(t, err)
	defer three.Free()
	params := trainedCritic()
	head := params.Config.valueHead()
	wide := Params{Config: tiny().CriticOf(3), Values: append([][]float32(nil), params.Values...)}
	wide.Values[head], wide.Values[head+1] = nil, nil
	for k := range 3 {
		for _, v := range params.Values[head] {
			wide.Values[head] = append(wide.Values[head], v*float32(k+1))
		}
		wide.Values[head+1] = append(wide.Values[head+1], params.Values[head+1][0]*float32(k+1))
	}
	state, err := three.NewState(wide)
	require.NoError(t, err)
	defer state.Free()
	b := criticBatch(t, one, s, 1)
	want, err := one.Scorer.Values(bg, s, b)
	require.NoError(t, err)
	got, err := three.Scorer.Values(bg, state, b)
	require.NoError(t, err)
	for r := range want {
		require.Len(t, got[r], 3*len(want[r]))
		for at, v := range want[r] {
			for k := range 3 {
				require.InDelta(t, v*float32(k+1), got[r][3*at+k], 1e-5)
			}
		}
	}

	// Only the first number is learned.
	alone := b
	alone.Values = 3
	alone.Mask, alone.Columns[batch.Returns], alone.Columns[batch.OldValues] = nil, nil, nil
	for r := range b.Mask {
		var mask []bool
		var returns, old []float32
		for at, yes := range b.Mask[r] {
			mask = append(mask, yes, false, false)
			returns, old = append(returns, b.Columns[batch.Returns][r][at], 100, 100), append(old, b.Columns[batch.OldValues][r][at], 100, 100)
		}
		alone.Mask, alone.Columns[batch.Returns], alone.Columns[batch.OldValues] = append(alone.Mask, mask), append(alone.Columns[batch.Returns], returns), append(alone.Columns[batch.OldValues], old)
	}
	for _, of := range []*batch.MicroBatch{&b, &alone} {
		batches := []batch.MicroBatch{*of}
		require.NoError(t, batch.Weigh(batches, loss.TokenMean, 0))
		*of = batches[0]
	}
	k := criticSettings()
	k.WeightDecay = 0
	first, m, err := one.Learner.CriticUpdate(bg, twin(t, one, s), []batch.MicroBatch{b}, k)
	require.NoError(t, err)
	defer first.Free()
	second, n, err := three.Learner.CriticUpdate(bg, twin(t, three, state), []batch.MicroBatch{alone}, k)
	require.NoError(t, err)
	defer second.Free()
	require.InDelta(t, m.Loss, n.Loss, 1e-6)
	require.InDelta(t, m.GradNorm, n.GradNorm, 1e-5)
	require.Equal(t, m.Tokens, n.Tokens)
	x, err := first.Download()
	require.NoError(t, err)
	y, err := second.Download()
	require.NoError(t, err)
	width := len(params.Values[head])
	require.Equal(t, wide.Values[head][width:], y.Params.Values[head][width:], "the other two stay")
	require.InDeltaSlice(t, x.Params.Values[head], y.Params.Values[head][:width], 1e-5)
	for i := range head {
		require.InDeltaSlice(t, x.M.Values[i], y.M.Values[i], 1e-6, params.Config.Tensors()[i].Name)
	}

	_, err = three.Learner.CriticGradient([]batch.MicroBatch{b}, k)
	require.ErrorIs(t, err, ErrInput, "one number a token, for a head of three")
	_, err = three.Load(s.NewCritic(1))
	require.ErrorIs(t, err, ErrInput)
}
