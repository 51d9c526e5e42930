package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// wholeBatch is someBatch with everything that a batch may have.
func wholeBatch() []Row {
	rows := someBatch()
	for i := range rows {
		v := float32(i)
		rows[i].Columns[Returns], rows[i].Columns[OldValues] = []float32{v, 1, 2, 3, 4, 5}, []float32{6, 7, v, 8, 9, 10}
		rows[i].Columns[ReturnsMask] = Flags([]bool{i == 0, true, false, i == 1, false, true})
		rows[i].Columns[RefLogProbs], rows[i].Columns[RolloutLogProbs], rows[i].Supervised = []float32{-v, -1, -2}, []float32{-3, -v, -4}, i == 1
	}
	return rows
}

// A batch with all of its tensors is read as it was written, and has the same bytes every time.
func TestWholeBatch(t *testing.T) {
	raw, err := Encode(wholeBatch(), 2)
	require.NoError(t, err)
	got, err := Decode(raw, 2, 3, 2, OldLogProbs, Advantages, Returns, OldValues, RefLogProbs)
	require.NoError(t, err)
	require.Equal(t, wholeBatch(), got)
	for range 8 {
		again, err := Encode(wholeBatch(), 2)
		require.NoError(t, err)
		require.Equal(t, raw, again)
	}
	plain := wholeBatch()
	for i := range plain {
		plain[i].Supervised = false
	}
	raw, err = Encode(plain, 2)
	require.NoError(t, err)
	got, err = Decode(raw, 2, 3, 2, OldLogProbs, Advantages, Returns, OldValues, RefLogProbs)
	require.NoError(t, err)
	require.Equal(t, plain, got)
	require.NotContains(t, string(raw), TensorSupervised, "such a batch has the bytes that it had before")
}

// Each field of a row has a place of its own in the bytes.
func TestEveryFieldOfABatchCounts(t *testing.T) {
	raw, err := Encode(wholeBatch(), 2)
	require.NoError(t, err)
	seen := map[string]string{string(raw): "nothing"}
	for name, change := range map[string]func(*Row){
		"row": func(r *Row) { r.Row++ }, "origin": func(r *Row) { r.Origin++ }, "id": func(r *Row) { r.IDs[2]++ }, "length": func(r *Row) { r.Length++ },
		"mask": func(r *Row) { r.Mask[2] = !r.Mask[2] }, "log-prob": func(r *Row) { r.Columns[OldLogProbs][2]++ }, "advantage": func(r *Row) { r.Columns[Advantages][2]++ }, "turn": func(r *Row) { r.Turns[2]++ },
		"return": func(r *Row) { r.Columns[Returns][5]++ }, "value": func(r *Row) { r.Columns[OldValues][5]++ }, "learns": func(r *Row) { r.Columns[ReturnsMask][4] = 1 }, "reference": func(r *Row) { r.Columns[RefLogProbs][2]++ },
		"rollout": func(r *Row) { r.Columns[RolloutLogProbs][2]++ }, "supervised": func(r *Row) { r.Supervised = true },
	} {
		rows := wholeBatch()
		change(&rows[2])
		raw, err := Encode(rows, 2)
		require.NoError(t, err)
		require.NotContains(t, seen, string(raw), "%s and %s", name, seen[string(raw)])
		seen[string(raw)] = name
		got, err := Decode(raw, 2, 3, 2, OldLogProbs, Advantages, Returns, OldValues, RefLogProbs)
		require.NoError(t, err)
		require.Equal(t, rows, got, name)
	}
}

// A batch that fills its micro-batches has no padding.
func TestFullBatch(t *testing.T) {
	for b, want := range map[int]int{1: 3, 2: 4, 3: 3, 4: 4, 5: 5} {
		raw, err := Encode(someBatch(), b)
		require.NoError(t, err)
		_, err = Decode(raw, want, 3, 0, OldLogProbs, Advantages)
		require.NoError(t, err, "%d rows", want)
		_, err = Decode(raw, want+1, 3, 0, OldLogProbs, Advantages)
		require.ErrorIs(t, err, ErrInput)
	}
}

// someBatch is three rows of three tokens: two micro-batches of two, the last of
// which is padded.
func someBatch() []Row {
	var out []Row
	for n := range 3 {
		r := Row{Row: int32(5 * n), Origin: int32(n), Length: int32(1 + n), Turns: []int32{0, 1, 2}}
		if n == 1 {
			r.Turns = []int32{0, 0, 3}
		}
		for at := range 3 {
			v := n*10 + at
			r.IDs, r.Mask = append(r.IDs, int32(v)), append(r.Mask, at%2 == 1)
			r.Columns[OldLogProbs], r.Columns[Advantages] = append(r.Columns[OldLogProbs], -float32(v)), append(r.Columns[Advantages], float32(v)/8)
		}
		out = append(out, r)
	}
	return out
}

func TestBatchRoundTrip(t *testing.T) {
	raw, err := Encode(someBatch(), 2)
	require.NoError(t, err)
	again, err := Encode(someBatch(), 2)
	require.NoError(t, err)
	require.Equal(t, raw, again)
	got, err := Decode(raw, 2, 3, 0, OldLogProbs, Advantages)
	require.NoError(t, err)
	require.Equal(t, someBatch(), got, "padding is no row")
	f, err := safetensors.Decode(raw)
	require.NoError(t, err)
	for name, want := range map[string][]int32{TensorRow: {0, 5, 10, -1}, TensorOrigin: {0, 1, 2, -1}, TensorLengths: {1, 2, 3, 0}} {
		have, err := Values(f, name, -1, safetensors.Tensor.Int32s)
		require.NoError(t, err)
		require.Equal(t, want, have, name)
	}
	_, err = Encode(nil, 2)
	require.Error(t, err)
}

func TestBatchErrors(t *testing.T) {
	raw, err := Encode(someBatch(), 2)
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
		"no ids":               {without(TensorIDs), 2, 3, `tensor "ids" is missing`},
		"no turns":             {without(TensorTurns), 2, 3, `tensor "turns" is missing`},
		"only padding":         {without(TensorRowWeights, safetensors.F32(TensorRowWeights, []int{4}, make([]float32, 4))), 2, 3, "no row has a weight"},
		"no origins":           {without(TensorOrigin), 2, 3, `tensor "origin" is missing`},
		"too few origins":      {without(TensorOrigin, safetensors.I32(TensorOrigin, []int{3}, make([]int32, 3))), 2, 3, `"origin" has 3 values, want 4`},
		"no lengths":           {without(TensorLengths), 2, 3, `tensor "lengths" is missing`},
		"no mask":              {without(TensorMask), 2, 3, `tensor "loss_mask" is missing`},
		"no log-probs":         {without(OldLogProbs.String()), 2, 3, `tensor "old_log_probs" is missing`},
		"no advantages":        {without(Advantages.String()), 2, 3, `tensor "advantages" is missing`},
		"no weights":           {without(TensorRowWeights), 2, 3, `tensor "row_weights" is missing`},
		"no rows":              {without(TensorLengths, safetensors.I32(TensorLengths, []int{0}, nil)), 2, 3, "0 rows"},
		"ids of another type":  {without(TensorIDs, safetensors.F32(TensorIDs, []int{12}, make([]float32, 12))), 2, 3, "ids"},
		"mask of another type": {without(TensorMask, safetensors.I32(TensorMask, []int{12}, make([]int32, 12))), 2, 3, "loss_mask"},
		"too few ids":          {without(TensorIDs, safetensors.I32(TensorIDs, []int{3}, make([]int32, 3))), 2, 3, `"ids" has 3 values, want 12`},
		"half a mask":          {without(TensorMask, safetensors.F32(TensorMask, []int{4, 3}, append(append(make([]float32, 5), 0.5), make([]float32, 6)...))), 2, 3, "is 0.5 at row 1, token 2"},
		"too many weights":     {without(TensorRowWeights, safetensors.F32(TensorRowWeights, []int{5}, make([]float32, 5))), 2, 3, "has 5 values, want 4"},
	} {
		_, err := Decode(c.raw, c.b, c.width, 0, OldLogProbs, Advantages)
		require.ErrorIs(t, err, ErrInput, name)
		require.ErrorContains(t, err, c.says, name)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	raw, err := Encode(someBatch(), 2)
	require.NoError(f, err)
	f.Add(raw, 2, 3)
	f.Add(raw[:20], 2, 3)
	f.Add(raw, 1, 6)
	f.Add([]byte{}, 1, 1)
	f.Fuzz(func(t *testing.T, raw []byte, b, width int) {
		if b < 1 || width < 1 || b > 1<<20 || width > 1<<20 {
			return // the spec's, never the file's
		}
		got, err := Decode(raw, b, width, 0, OldLogProbs, Advantages)
		if err != nil {
			require.ErrorIs(t, err, ErrInput)
			return
		}
		require.NotEmpty(t, got)
		for _, r := range got {
			require.Len(t, r.IDs, width)
			require.Len(t, r.Columns[Advantages], width)
		}
	})
}
