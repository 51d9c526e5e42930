package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// someRows is three rows of three tokens: two micro-batches of two, the last of which is padded.
func someRows() []batch.Row {
	var out []batch.Row
	for n := range int32(3) {
		r := batch.Row{Row: 5 * n, Origin: n, Length: 1 + n, IDs: []int32{10 * n, 10*n + 1, 10*n + 2}, Mask: []bool{false, true, false}, Turns: []int32{0, 1, 2}}
		if n == 1 {
			r.Turns = []int32{0, 0, 3}
		}
		r.Columns[batch.Advantages] = batch.Numbers(r.IDs)
		r.Columns[batch.OldLogProbs] = []float32{-1, -2, -3}
		out = append(out, r)
	}
	return out
}

// A demonstration may be longer than what the policy can say: it is cut at the rows' width, as in a
// warm start.
func TestSupervisedRowsAreCut(t *testing.T) {
	long := episode.Stretch{Row: -1, Ids: []int32{7, 8, 9, 10}, Sampled: []bool{false, true, true, true}, Turns: []int32{0, 1, 1, 1}}
	rows := SupervisedRows([]episode.Stretch{long}, 3, someRows()[0])
	require.Len(t, rows, 1)
	require.EqualValues(t, 3, rows[0].Length)
	require.Equal(t, []int32{7, 8, 9}, rows[0].IDs)
	require.Equal(t, []bool{false, true, true}, rows[0].Mask)
}

// Where the critic does not learn at every token, the batch says where it does.
func TestBatchOfWhatTheCriticLearns(t *testing.T) {
	rows := someRows()
	for i := range rows {
		rows[i].Columns[batch.Returns], rows[i].Columns[batch.OldValues], rows[i].Columns[batch.ReturnsMask] = make([]float32, 3), make([]float32, 3), make([]float32, 3)
	}
	rows[2].Columns[batch.ReturnsMask][1] = 1
	raw, err := batch.Encode(rows, 2)
	require.NoError(t, err)
	got, err := batch.Decode(raw, 2, 3, 1, batch.OldLogProbs, batch.Advantages, batch.Returns, batch.OldValues)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	for i := range got {
		got[i].Length = 3
	}
	sh := model.Shapes{MicroBatch: 2, Sequence: 3}
	laid, err := CriticMinibatch(got, sh, spec.Update{Aggregation: "token_mean"}, 1, 1)
	require.NoError(t, err)
	require.Equal(t, rows[2].Learns(), laid[1].Mask[0])
	require.Equal(t, []float32{0, 1, 0}, laid[1].Columns[batch.Weights][0], "the only token that is learned")
	laid, err = Minibatch(got, sh, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	require.Equal(t, someRows()[2].Mask, laid[1].Mask[0], "the policy learns where it did")
}

// A critic of several values has several returns for a token, and learns those that the batch says.
// Its loss is their mean, whatever the policy's aggregation is.
func TestBatchOfSeveralValues(t *testing.T) {
	rows := someRows()
	for i := range rows {
		rows[i].Length = 3
		rows[i].Columns[batch.Returns], rows[i].Columns[batch.OldValues], rows[i].Columns[batch.ReturnsMask] = make([]float32, 6), make([]float32, 6), make([]float32, 6)
		rows[i].Columns[batch.Returns][1], rows[i].Columns[batch.OldValues][5] = float32(i), float32(-i)
	}
	rows[0].Columns[batch.ReturnsMask][2], rows[0].Columns[batch.ReturnsMask][3], rows[2].Columns[batch.ReturnsMask][5] = 1, 1, 1
	raw, err := batch.Encode(rows, 2)
	require.NoError(t, err)
	got, err := batch.Decode(raw, 2, 3, 2, batch.OldLogProbs, batch.Advantages, batch.Returns, batch.OldValues)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	laid, err := CriticMinibatch(got, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "turn_mean"}, 1, 2)
	require.NoError(t, err)
	require.Len(t, laid, 2)
	require.Equal(t, 2, laid[0].Values)
	third := float32(1) / 3
	require.Equal(t, []float32{0, 0, third, third, 0, 0}, laid[0].Columns[batch.Weights][0])
	require.Equal(t, []float32{0, 0, 0, 0, 0, third}, laid[1].Columns[batch.Weights][0])
	require.Equal(t, rows[2].Columns[batch.OldValues], laid[1].Columns[batch.OldValues][0])
	require.Equal(t, make([]bool, 6), laid[1].Mask[1], "padding")
}

// With a critic, and with a reference in the loss, a batch has more.
func TestBatchOfACritic(t *testing.T) {
	rows := someRows()
	for i := range rows {
		v := float32(10 * i)
		rows[i].Columns[batch.Returns], rows[i].Columns[batch.OldValues], rows[i].Columns[batch.RefLogProbs] = []float32{v + 1, v + 2, v + 3}, []float32{v + 4, v + 5, v + 6}, []float32{-v, -v - 1, -v - 2}
	}
	raw, err := batch.Encode(rows, 2)
	require.NoError(t, err)
	got, err := batch.Decode(raw, 2, 3, 1, batch.OldLogProbs, batch.Advantages, batch.Returns, batch.OldValues, batch.RefLogProbs)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	for i := range got {
		got[i].Length = 3
	}
	laid, err := Minibatch(got, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	require.Equal(t, got[2].Columns[batch.RefLogProbs], laid[1].Columns[batch.RefLogProbs][0])
	require.Nil(t, laid[1].Columns[batch.RefLogProbs][1], "padding")
	require.Nil(t, laid[1].Columns[batch.Returns], "the policy does not learn them")
	laid, err = CriticMinibatch(got, model.Shapes{MicroBatch: 2, Sequence: 3}, spec.Update{Aggregation: "token_mean"}, 1, 1)
	require.NoError(t, err)
	require.Equal(t, got[2].Columns[batch.Returns], laid[1].Columns[batch.Returns][0])
	require.Nil(t, laid[1].Columns[batch.Returns][1], "padding")
	got, err = batch.Decode(raw, 2, 3, 0, batch.OldLogProbs, batch.Advantages)
	require.NoError(t, err)
	require.Nil(t, got[0].Columns[batch.Returns])
	raw, err = batch.Encode(someRows(), 2)
	require.NoError(t, err)
	_, err = batch.Decode(raw, 2, 3, 1, batch.OldLogProbs, batch.Advantages, batch.Returns, batch.OldValues)
	require.ErrorContains(t, err, `tensor "returns" is missing`)
	_, err = batch.Decode(raw, 2, 3, 0, batch.RefLogProbs)
	require.ErrorContains(t, err, `tensor "ref_log_probs" is missing`)
}

// Rows are laid out again for each optimizer step: padded, weighed over the step, and
// with the bounds of their turns.
func TestMinibatch(t *testing.T) {
	raw, err := batch.Encode(someRows(), 2)
	require.NoError(t, err)
	rows, err := batch.Decode(raw, 2, 3, 0, batch.OldLogProbs, batch.Advantages)
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

// A run reads a batch with the shapes and the tensors that its spec says.
func TestReadBatch(t *testing.T) {
	rc := newRun(t, `{"environment": {"name": "bandit"}, "credit": {"algorithm": "gae"}, "update": {"kl_in": "loss", "micro_batch": 2}, "rollout": {"turns": 1, "prompt_tokens": [200], "max_new_tokens": 20, "groups": 4, "group_size": 2}}`)
	width := rc.Shapes(rc.Training, 1).Sequence
	require.Equal(t, 224, width, "a multiple of 16")
	row := batch.Row{
		Row: 3, Origin: 1, IDs: make([]int32, width), Length: 4, Mask: make([]bool, width), Turns: make([]int32, width), Columns: batch.RowColumns{batch.OldLogProbs: make([]float32, width), batch.Advantages: make([]float32, width), batch.Returns: make([]float32, width), batch.OldValues: make([]float32, width), batch.RefLogProbs: make([]float32, width)},
	}
	row.IDs[3], row.Mask[3], row.Columns[batch.Returns][3], row.Columns[batch.RefLogProbs][3] = 7, true, 2, -1
	s := store.NewMemory()
	put := func(rows ...batch.Row) store.Ref {
		raw, err := batch.Encode(rows, 2)
		require.NoError(t, err)
		ref, err := store.PutArtifact(t.Context(), s, "runs/r", "batch", "safetensors", raw)
		require.NoError(t, err)
		return ref
	}
	got, err := rc.ReadBatch(t.Context(), s, put(row))
	require.NoError(t, err)
	require.Equal(t, []batch.Row{row}, got)
	without := row
	without.Columns[batch.Returns], without.Columns[batch.OldValues] = nil, nil
	_, err = rc.ReadBatch(t.Context(), s, put(without))
	require.ErrorContains(t, err, `tensor "returns" is missing`)
	require.ErrorContains(t, err, put(without).Key)
	without = row
	without.Columns[batch.RefLogProbs] = nil
	_, err = rc.ReadBatch(t.Context(), s, put(without))
	require.ErrorContains(t, err, `tensor "ref_log_probs" is missing`)
	gone := put(row)
	gone.Key = "runs/r/nothing"
	_, err = rc.ReadBatch(t.Context(), s, gone)
	require.ErrorIs(t, err, store.ErrNotFound)
}
