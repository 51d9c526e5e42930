package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// someBatch is three rows of three tokens: two micro-batches of two, the last of
// which is padded.
func someBatch() []BatchRow {
	var out []BatchRow
	for n := range 3 {
		r := BatchRow{Row: int32(5 * n), Origin: int32(n), Length: int32(1 + n), Turns: []int32{0, 1, 2}}
		if n == 1 {
			r.Turns = []int32{0, 0, 3}
		}
		for at := range 3 {
			v := n*10 + at
			r.Ids, r.Mask = append(r.Ids, int32(v)), append(r.Mask, at%2 == 1)
			r.Old, r.Advantages = append(r.Old, -float32(v)), append(r.Advantages, float32(v)/8)
		}
		out = append(out, r)
	}
	return out
}

func TestBatchRoundTrip(t *testing.T) {
	raw, err := EncodeBatch(someBatch(), 2)
	require.NoError(t, err)
	again, err := EncodeBatch(someBatch(), 2)
	require.NoError(t, err)
	require.Equal(t, raw, again)
	got, err := DecodeBatch(raw, 2, 3, 0, false)
	require.NoError(t, err)
	require.Equal(t, someBatch(), got, "padding is no row")
	f, err := safetensors.Decode(raw)
	require.NoError(t, err)
	for name, want := range map[string][]int32{tensorRow: {0, 5, 10, -1}, tensorOrigin: {0, 1, 2, -1}, tensorLengths: {1, 2, 3, 0}} {
		have, err := TensorValues(f, name, safetensors.Tensor.Int32s)
		require.NoError(t, err)
		require.Equal(t, want, have, name)
	}
	_, err = EncodeBatch(nil, 2)
	require.Error(t, err)
}

// A demonstration may be longer than what the policy can say: it is cut at the rows' width, as in a
// warm start.
func TestSupervisedRowsAreCut(t *testing.T) {
	long := episode.Stretch{Row: -1, Ids: []int32{7, 8, 9, 10}, Sampled: []bool{false, true, true, true}, Turns: []int32{0, 1, 1, 1}}
	rows := SupervisedRows([]episode.Stretch{long}, 3, someBatch()[0])
	require.Len(t, rows, 1)
	require.EqualValues(t, 3, rows[0].Length)
	require.Equal(t, []int32{7, 8, 9}, rows[0].Ids)
	require.Equal(t, []bool{false, true, true}, rows[0].Mask)
}

// Where the critic does not learn at every token, the batch says where it does.
func TestBatchOfWhatTheCriticLearns(t *testing.T) {
	rows := someBatch()
	for i := range rows {
		rows[i].Returns, rows[i].OldValues, rows[i].Learns = make([]float32, 3), make([]float32, 3), make([]bool, 3)
	}
	rows[2].Learns[1] = true
	raw, err := EncodeBatch(rows, 2)
	require.NoError(t, err)
	got, err := DecodeBatch(raw, 2, 3, 1, false)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	for i := range got {
		got[i].Length = 3
	}
	sh := model.Shapes{MicroBatch: 2, Sequence: 3}
	laid, err := CriticMinibatch(got, sh, spec.Update{Aggregation: "token_mean"}, 1, 1)
	require.NoError(t, err)
	require.Equal(t, rows[2].Learns, laid[1].Mask[0])
	require.Equal(t, []float32{0, 1, 0}, laid[1].Columns[batch.Weights][0], "the only token that is learned")
	laid, err = Minibatch(got, sh, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	require.Equal(t, someBatch()[2].Mask, laid[1].Mask[0], "the policy learns where it did")
}

// A critic of several values has several returns for a token, and learns those that the batch says.
// Its loss is their mean, whatever the policy's aggregation is.
func TestBatchOfSeveralValues(t *testing.T) {
	rows := someBatch()
	for i := range rows {
		rows[i].Length = 3
		rows[i].Returns, rows[i].OldValues, rows[i].Learns = make([]float32, 6), make([]float32, 6), make([]bool, 6)
		rows[i].Returns[1], rows[i].OldValues[5] = float32(i), float32(-i)
	}
	rows[0].Learns[2], rows[0].Learns[3], rows[2].Learns[5] = true, true, true
	raw, err := EncodeBatch(rows, 2)
	require.NoError(t, err)
	got, err := DecodeBatch(raw, 2, 3, 2, false)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	laid, err := CriticMinibatch(got, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "turn_mean"}, 1, 2)
	require.NoError(t, err)
	require.Len(t, laid, 2)
	require.Equal(t, 2, laid[0].Values)
	third := float32(1) / 3
	require.Equal(t, []float32{0, 0, third, third, 0, 0}, laid[0].Columns[batch.Weights][0])
	require.Equal(t, []float32{0, 0, 0, 0, 0, third}, laid[1].Columns[batch.Weights][0])
	require.Equal(t, rows[2].OldValues, laid[1].Columns[batch.OldValues][0])
	require.Equal(t, make([]bool, 6), laid[1].Mask[1], "padding")
}

func TestBatchErrors(t *testing.T) {
	raw, err := EncodeBatch(someBatch(), 2)
	require.NoError(t, err)
	f, err := safetensors.Decode(raw)
	require.NoError(t, err)
	without := func(name string, instead ...safetensors.Tensor) []byte {
		var list []safetensors.Tensor
		for _, tensor := range f.Tensors {
			if tensor.Name != name {
				list = append(list, tensor)
			}
		}
		b, err := safetensors.Encode(append(list, instead...), nil)
		require.NoError(t, err)
		return b
	}
	for name, c := range map[string]struct {
		raw      []byte
		b, width int
		says     string
	}{
		"no batch":             {[]byte("hello"), 2, 3, "safetensors"},
		"truncated":            {raw[:len(raw)-1], 2, 3, "safetensors"},
		"other micro-batch":    {raw, 3, 3, "4 rows are no multiple of the micro-batch of 3"},
		"other width":          {raw, 2, 4, `tensor "ids" has 12 values, want 16`},
		"no ids":               {without(tensorIDs), 2, 3, `tensor "ids" is missing`},
		"no turns":             {without(tensorTurns), 2, 3, `tensor "turns" is missing`},
		"only padding":         {without(tensorRowWeights, safetensors.F32(tensorRowWeights, []int{4}, make([]float32, 4))), 2, 3, "no row has a weight"},
		"no origins":           {without(tensorOrigin), 2, 3, `tensor "origin" is missing`},
		"too few origins":      {without(tensorOrigin, safetensors.I32(tensorOrigin, []int{3}, make([]int32, 3))), 2, 3, `"origin" has 3 values, want 4`},
		"no lengths":           {without(tensorLengths), 2, 3, `tensor "lengths" is missing`},
		"no mask":              {without(tensorLossMask), 2, 3, `tensor "loss_mask" is missing`},
		"no log-probs":         {without(tensorOldLogProbs), 2, 3, `tensor "old_log_probs" is missing`},
		"no advantages":        {without(tensorAdvantages), 2, 3, `tensor "advantages" is missing`},
		"no weights":           {without(tensorRowWeights), 2, 3, `tensor "row_weights" is missing`},
		"no rows":              {without(tensorLengths, safetensors.I32(tensorLengths, []int{0}, nil)), 2, 3, "0 rows"},
		"ids of another type":  {without(tensorIDs, safetensors.F32(tensorIDs, []int{12}, make([]float32, 12))), 2, 3, "ids"},
		"mask of another type": {without(tensorLossMask, safetensors.I32(tensorLossMask, []int{12}, make([]int32, 12))), 2, 3, "loss_mask"},
		"too few ids":          {without(tensorIDs, safetensors.I32(tensorIDs, []int{3}, make([]int32, 3))), 2, 3, `"ids" has 3 values, want 12`},
		"half a mask":          {without(tensorLossMask, safetensors.F32(tensorLossMask, []int{4, 3}, append(append(make([]float32, 5), 0.5), make([]float32, 6)...))), 2, 3, "is 0.5 at row 1, token 2"},
		"too many weights":     {without(tensorRowWeights, safetensors.F32(tensorRowWeights, []int{5}, make([]float32, 5))), 2, 3, "has 5 values, want 4"},
	} {
		_, err := DecodeBatch(c.raw, c.b, c.width, 0, false)
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, c.says, name)
	}
}

// With a critic, and with a reference in the loss, a batch has more.
func TestBatchOfACritic(t *testing.T) {
	rows := someBatch()
	for i := range rows {
		v := float32(10 * i)
		rows[i].Returns, rows[i].OldValues, rows[i].Reference = []float32{v + 1, v + 2, v + 3}, []float32{v + 4, v + 5, v + 6}, []float32{-v, -v - 1, -v - 2}
	}
	raw, err := EncodeBatch(rows, 2)
	require.NoError(t, err)
	got, err := DecodeBatch(raw, 2, 3, 1, true)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	for i := range got {
		got[i].Length = 3
	}
	laid, err := Minibatch(got, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	require.Equal(t, got[2].Reference, laid[1].Columns[batch.RefLogProbs][0])
	require.Nil(t, laid[1].Columns[batch.RefLogProbs][1], "padding")
	require.Nil(t, laid[1].Columns[batch.Returns], "the policy does not learn them")
	laid, err = CriticMinibatch(got, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "token_mean"}, 1, 1)
	require.NoError(t, err)
	require.Equal(t, got[2].Returns, laid[1].Columns[batch.Returns][0])
	require.Nil(t, laid[1].Columns[batch.Returns][1], "padding")
	got, err = DecodeBatch(raw, 2, 3, 0, false)
	require.NoError(t, err)
	require.Nil(t, got[0].Returns)
	raw, err = EncodeBatch(someBatch(), 2)
	require.NoError(t, err)
	_, err = DecodeBatch(raw, 2, 3, 1, false)
	require.ErrorContains(t, err, `tensor "returns" is missing`)
	_, err = DecodeBatch(raw, 2, 3, 0, true)
	require.ErrorContains(t, err, `tensor "ref_log_probs" is missing`)
}

func FuzzDecodeBatch(f *testing.F) {
	raw, err := EncodeBatch(someBatch(), 2)
	require.NoError(f, err)
	f.Add(raw, 2, 3)
	f.Add(raw[:20], 2, 3)
	f.Add(raw, 1, 6)
	f.Add([]byte{}, 1, 1)
	f.Fuzz(func(t *testing.T, raw []byte, b, width int) {
		if b < 1 || width < 1 || b > 1<<20 || width > 1<<20 {
			return // the spec's, never the file's
		}
		got, err := DecodeBatch(raw, b, width, 0, false)
		if err != nil {
			require.ErrorIs(t, err, store.ErrInvalid)
			return
		}
		require.NotEmpty(t, got)
		for _, r := range got {
			require.Len(t, r.Ids, width)
			require.Len(t, r.Advantages, width)
		}
	})
}

// Rows are laid out again for each optimizer step: padded, weighed over the step, and
// with the bounds of their turns.
func TestMinibatch(t *testing.T) {
	raw, err := EncodeBatch(someBatch(), 2)
	require.NoError(t, err)
	rows, err := DecodeBatch(raw, 2, 3, 0, false)
	require.NoError(t, err)
	for i := range rows {
		rows[i].Length = 3
	}
	rows[0].Mask, rows[1].Mask, rows[2].Mask = []bool{false, true, true}, []bool{false, false, true}, []bool{false, true, false}
	u := spec.Update{Aggregation: "token_mean", ClipTurns: []spec.Clip{{Low: 0.1, High: 0.2}, {Low: 0.3, High: 0.4}}}
	got, err := Minibatch(rows, model.Shapes{MicroBatch: 2, Sequence: 3}, u, 0)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []float32{1, 0}, got[1].RowWeights)
	require.Equal(t, []float32{0, 0.25, 0.25}, got[0].Columns[batch.Weights][0], "four tokens in all")
	require.Equal(t, []float32{0, 0.25, 0}, got[1].Columns[batch.Weights][0])
	require.Equal(t, []float32{0, 0.1, 0.3}, got[0].Columns[batch.ClipLow][0])
	require.Equal(t, []float32{0, 0, 0.4}, got[0].Columns[batch.ClipHigh][1], "turn 3 has the last bounds")
	u = spec.Update{Aggregation: "seq_mean_token_sum"}
	got, err = Minibatch(rows[:1], model.Shapes{MicroBatch: 2, Sequence: 3}, u, 0)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 1}, got[0].Columns[batch.Weights][0])
	require.Nil(t, got[0].Columns[batch.ClipLow])
	// By turn: of two rows, the first has a token in each of two turns.
	rows[0].Turns, rows[1].Turns = []int32{0, 1, 2}, []int32{0, 1, 1}
	rows[1].Mask = []bool{false, true, true}
	got, err = Minibatch(rows[:2], model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "turn_mean"}, 0)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{0, 0.5, 0.5}, {0, 0.25, 0.25}}, got[0].Columns[batch.Weights])
	_, err = Minibatch(rows, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "none"}, 0)
	require.ErrorIs(t, err, store.ErrInvalid)
}
