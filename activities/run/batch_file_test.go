package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// wholeBatch is someBatch with everything that a batch may have.
func wholeBatch() []BatchRow {
	rows := someBatch()
	for i := range rows {
		v := float32(i)
		rows[i].Returns, rows[i].OldValues, rows[i].Learns = []float32{v, 1, 2, 3, 4, 5}, []float32{6, 7, v, 8, 9, 10}, []bool{i == 0, true, false, i == 1, false, true}
		rows[i].Reference, rows[i].Rollout, rows[i].Supervised = []float32{-v, -1, -2}, []float32{-3, -v, -4}, i == 1
	}
	return rows
}

// A batch with all of its tensors is read as it was written, and has the same bytes every time.
func TestWholeBatch(t *testing.T) {
	raw, err := EncodeBatch(wholeBatch(), 2)
	require.NoError(t, err)
	got, err := DecodeBatch(raw, 2, 3, 2, true)
	require.NoError(t, err)
	require.Equal(t, wholeBatch(), got)
	for range repeats {
		again, err := EncodeBatch(wholeBatch(), 2)
		require.NoError(t, err)
		require.Equal(t, raw, again)
	}
	plain := wholeBatch()
	for i := range plain {
		plain[i].Supervised = false
	}
	raw, err = EncodeBatch(plain, 2)
	require.NoError(t, err)
	got, err = DecodeBatch(raw, 2, 3, 2, true)
	require.NoError(t, err)
	require.Equal(t, plain, got)
	require.NotContains(t, string(raw), tensorSupervised, "such a batch has the bytes that it had before")
}

// Each field of a row has a place of its own in the bytes.
func TestEveryFieldOfABatchCounts(t *testing.T) {
	raw, err := EncodeBatch(wholeBatch(), 2)
	require.NoError(t, err)
	seen := map[string]string{string(raw): "nothing"}
	for name, change := range map[string]func(*BatchRow){
		"row": func(r *BatchRow) { r.Row++ }, "origin": func(r *BatchRow) { r.Origin++ }, "id": func(r *BatchRow) { r.Ids[2]++ }, "length": func(r *BatchRow) { r.Length++ },
		"mask": func(r *BatchRow) { r.Mask[2] = !r.Mask[2] }, "log-prob": func(r *BatchRow) { r.Old[2]++ }, "advantage": func(r *BatchRow) { r.Advantages[2]++ }, "turn": func(r *BatchRow) { r.Turns[2]++ },
		"return": func(r *BatchRow) { r.Returns[5]++ }, "value": func(r *BatchRow) { r.OldValues[5]++ }, "learns": func(r *BatchRow) { r.Learns[4] = true }, "reference": func(r *BatchRow) { r.Reference[2]++ },
		"rollout": func(r *BatchRow) { r.Rollout[2]++ }, "supervised": func(r *BatchRow) { r.Supervised = true },
	} {
		rows := wholeBatch()
		change(&rows[2])
		raw, err := EncodeBatch(rows, 2)
		require.NoError(t, err)
		require.NotContains(t, seen, string(raw), "%s and %s", name, seen[string(raw)])
		seen[string(raw)] = name
		got, err := DecodeBatch(raw, 2, 3, 2, true)
		require.NoError(t, err)
		require.Equal(t, rows, got, name)
	}
}

// A batch that fills its micro-batches has no padding.
func TestFullBatch(t *testing.T) {
	for b, want := range map[int]int{1: 3, 2: 4, 3: 3, 4: 4, 5: 5} {
		raw, err := EncodeBatch(someBatch(), b)
		require.NoError(t, err)
		_, err = DecodeBatch(raw, want, 3, 0, false)
		require.NoError(t, err, "%d rows", want)
		_, err = DecodeBatch(raw, want+1, 3, 0, false)
		require.ErrorIs(t, err, store.ErrInvalid)
	}
}

// A run reads a batch with the shapes and the tensors that its spec says.
func TestReadBatch(t *testing.T) {
	rc := newRun(t, `{"environment": {"name": "bandit"}, "credit": {"algorithm": "gae"}, "update": {"kl_in": "loss", "micro_batch": 2}, "rollout": {"turns": 1, "prompt_tokens": [200], "max_new_tokens": 20, "groups": 4, "group_size": 2}}`)
	width := rc.Shapes(rc.Training, 1).Sequence
	require.Equal(t, 224, width, "a multiple of 16")
	row := BatchRow{
		Row: 3, Origin: 1, Ids: make([]int32, width), Length: 4, Mask: make([]bool, width), Turns: make([]int32, width), Old: make([]float32, width), Advantages: make([]float32, width),
		Returns: make([]float32, width), OldValues: make([]float32, width), Reference: make([]float32, width),
	}
	row.Ids[3], row.Mask[3], row.Returns[3], row.Reference[3] = 7, true, 2, -1
	s := store.NewMemory()
	put := func(rows ...BatchRow) store.Ref {
		raw, err := EncodeBatch(rows, 2)
		require.NoError(t, err)
		ref, err := store.PutArtifact(t.Context(), s, "runs/r", "batch", "safetensors", raw)
		require.NoError(t, err)
		return ref
	}
	got, err := rc.ReadBatch(t.Context(), s, put(row))
	require.NoError(t, err)
	require.Equal(t, []BatchRow{row}, got)
	without := row
	without.Returns, without.OldValues = nil, nil
	_, err = rc.ReadBatch(t.Context(), s, put(without))
	require.ErrorContains(t, err, `tensor "returns" is missing`)
	require.ErrorContains(t, err, put(without).Key)
	without = row
	without.Reference = nil
	_, err = rc.ReadBatch(t.Context(), s, put(without))
	require.ErrorContains(t, err, `tensor "ref_log_probs" is missing`)
	gone := put(row)
	gone.Key = "runs/r/nothing"
	_, err = rc.ReadBatch(t.Context(), s, gone)
	require.ErrorIs(t, err, store.ErrNotFound)
}
