package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The tensors of batch.safetensors, [rows, width] or [rows], where rows is a
// multiple of the micro-batch. Position t of a row is the token at index t: its
// mask is 1 where that token was sampled.
const (
	tensorIDs         = "ids"           // int32 [rows, width]
	tensorLengths     = "lengths"       // int32 [rows]
	tensorLossMask    = "loss_mask"     // float32 [rows, width]
	tensorOldLogProbs = "old_log_probs" // float32 [rows, width]
	tensorAdvantages  = "advantages"    // float32 [rows, width]
	tensorRowWeights  = "row_weights"   // float32 [rows]; 0 is padding
	tensorTurns       = "turns"         // int32 [rows, width]: the turn of a sampled token, from 1
	tensorRow         = "row"           // int32 [rows]: the trajectory's row, −1 for padding
	tensorOrigin      = "origin"        // int32 [rows]: the iteration that rolled it out, −1 for padding

	// With a second network, and with a reference in the loss. Of a process reward model the first
	// are the weights that preferences give its log-probs, and the second these.
	tensorReturns     = "returns"       // float32 [rows, width], or [rows, width, values]
	tensorOldValues   = "old_values"    // float32 [rows, width], or [rows, width, values]
	tensorRefLogProbs = "ref_log_probs" // float32 [rows, width]
	// With a critic that does not learn at every sampled token: 1 where it does.
	tensorReturnsMask = "returns_mask" // float32 [rows, width], or [rows, width, values]

	// With mismatch weights, which the update computes: the sampler's.
	tensorRolloutLogProbs = "rollout_log_probs" // float32 [rows, width]

	// With supervised rows: 1 where a row is learned from by its log-likelihood.
	tensorSupervised = "supervised" // int32 [rows]
)

// EncodeBatch is all that an update reads, as safetensors: rows of one width, and
// padding up to a multiple of the micro-batch b.
func EncodeBatch(rows []BatchRow, b int) ([]byte, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("a batch needs rows")
	}
	width, count := len(rows[0].Ids), (len(rows)+b-1)/b*b
	ints := func(of func(BatchRow) []int32) []int32 {
		out := make([]int32, count*width)
		for i, r := range rows {
			copy(out[i*width:], of(r))
		}
		return out
	}
	floatsOf := func(each int, of func(BatchRow) []float32) []float32 {
		out := make([]float32, each*count*width)
		for i, r := range rows {
			copy(out[each*i*width:], of(r))
		}
		return out
	}
	floats := func(of func(BatchRow) []float32) []float32 { return floatsOf(1, of) }
	lengths, row, origin := make([]int32, count), make([]int32, count), make([]int32, count)
	weights := make([]float32, count)
	flagsOf := func(each int, of func(BatchRow) []bool) []float32 {
		out := make([]float32, each*count*width)
		for i, r := range rows {
			for t, yes := range of(r) {
				if yes {
					out[each*i*width+t] = 1
				}
			}
		}
		return out
	}
	flags := func(of func(BatchRow) []bool) []float32 { return flagsOf(1, of) }
	for i := range count {
		if i >= len(rows) {
			row[i], origin[i] = -1, -1
			continue
		}
		r := rows[i]
		lengths[i], row[i], origin[i], weights[i] = r.Length, r.Row, r.Origin, 1
	}
	wide, flat := []int{count, width}, []int{count}
	tensors := []safetensors.Tensor{
		safetensors.I32(tensorIDs, wide, ints(func(r BatchRow) []int32 { return r.Ids })),
		safetensors.I32(tensorLengths, flat, lengths),
		safetensors.F32(tensorLossMask, wide, flags(func(r BatchRow) []bool { return r.Mask })),
		safetensors.F32(tensorOldLogProbs, wide, floats(func(r BatchRow) []float32 { return r.Old })),
		safetensors.F32(tensorAdvantages, wide, floats(func(r BatchRow) []float32 { return r.Advantages })),
		safetensors.F32(tensorRowWeights, flat, weights),
		safetensors.I32(tensorTurns, wide, ints(func(r BatchRow) []int32 { return r.Turns })),
		safetensors.I32(tensorRow, flat, row),
		safetensors.I32(tensorOrigin, flat, origin),
	}
	if rows[0].Returns != nil {
		each, shape := len(rows[0].Returns)/width, wide
		if each > 1 {
			shape = []int{count, width, each}
		}
		tensors = append(tensors,
			safetensors.F32(tensorReturns, shape, floatsOf(each, func(r BatchRow) []float32 { return r.Returns })),
			safetensors.F32(tensorOldValues, shape, floatsOf(each, func(r BatchRow) []float32 { return r.OldValues })))
		if rows[0].Learns != nil {
			tensors = append(tensors, safetensors.F32(tensorReturnsMask, shape, flagsOf(each, func(r BatchRow) []bool { return r.Learns })))
		}
	}
	if rows[0].Reference != nil {
		tensors = append(tensors, safetensors.F32(tensorRefLogProbs, wide, floats(func(r BatchRow) []float32 { return r.Reference })))
	}
	if rows[0].Rollout != nil {
		tensors = append(tensors, safetensors.F32(tensorRolloutLogProbs, wide, floats(func(r BatchRow) []float32 { return r.Rollout })))
	}
	if slices.ContainsFunc(rows, func(r BatchRow) bool { return r.Supervised }) {
		marks := make([]int32, count)
		for i, r := range rows {
			if r.Supervised {
				marks[i] = 1
			}
		}
		tensors = append(tensors, safetensors.I32(tensorSupervised, flat, marks))
	}
	return safetensors.Encode(tensors, nil)
}

// ReadBatch reads the rows of a run's batch.
func (rc *Context) ReadBatch(ctx context.Context, s store.Store, ref store.Ref) ([]BatchRow, error) {
	raw, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return nil, fmt.Errorf("batch: %w", err)
	}
	t := rc.Train
	values := 0
	if t.Credit.Second() {
		values = t.Credit.Values()
	}
	rows, err := DecodeBatch(raw, t.Update.MicroBatch, rc.Shapes(rc.Training, 1).Sequence, values, t.Update.KLIn == spec.KLLoss)
	if err != nil {
		return nil, fmt.Errorf("batch %s: %w", ref.Key, err)
	}
	return rows, nil
}

// DecodeBatch reads the rows of a batch of micro-batches of b rows and the given
// width, with so many values a token that a second network learns, with the reference's log-probs, and with the sampler's if
// they are there. Anything else is a store.ErrInvalid.
func DecodeBatch(raw []byte, b, width, values int, reference bool) ([]BatchRow, error) {
	f, err := safetensors.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	lengths, err := TensorValues(f, tensorLengths, safetensors.Tensor.Int32s)
	if err != nil {
		return nil, err
	}
	rows := len(lengths)
	if rows == 0 || rows%b != 0 {
		return nil, fmt.Errorf("%d rows are no multiple of the micro-batch of %d: %w", rows, b, store.ErrInvalid)
	}
	ints, floats := map[string][]int32{}, map[string][]float32{}
	for _, t := range []struct {
		name string
		want int
	}{{tensorRow, rows}, {tensorOrigin, rows}, {tensorIDs, rows * width}, {tensorTurns, rows * width}, {tensorSupervised, rows}} {
		if _, there := f.Get(t.name); t.name == tensorSupervised && !there {
			continue
		}
		if ints[t.name], err = sizedValues(f, t.name, t.want, safetensors.Tensor.Int32s); err != nil {
			return nil, err
		}
	}
	wanted := []string{tensorLossMask, tensorOldLogProbs, tensorAdvantages, tensorRowWeights}
	if values > 0 {
		wanted = append(wanted, tensorReturns, tensorOldValues)
	}
	if reference {
		wanted = append(wanted, tensorRefLogProbs)
	}
	_, rollout := f.Get(tensorRolloutLogProbs)
	if rollout {
		wanted = append(wanted, tensorRolloutLogProbs)
	}
	_, learns := f.Get(tensorReturnsMask)
	if learns {
		wanted = append(wanted, tensorReturnsMask)
	}
	for _, name := range wanted {
		want := rows * width
		switch name {
		case tensorRowWeights:
			want = rows
		case tensorReturns, tensorOldValues, tensorReturnsMask:
			want *= max(values, 1)
		}
		if floats[name], err = sizedValues(f, name, want, safetensors.Tensor.Float32s); err != nil {
			return nil, err
		}
	}
	var out []BatchRow
	for r, weight := range floats[tensorRowWeights] {
		if weight == 0 {
			continue
		}
		wide := func(name string) []float32 { return floats[name][r*width : (r+1)*width] }
		valued := func(name string) []float32 { return floats[name][r*width*values : (r+1)*width*values] }
		row := BatchRow{
			Row: ints[tensorRow][r], Origin: ints[tensorOrigin][r],
			Ids: ints[tensorIDs][r*width : (r+1)*width], Turns: ints[tensorTurns][r*width : (r+1)*width],
			Length: lengths[r], Old: wide(tensorOldLogProbs), Advantages: wide(tensorAdvantages),
		}
		if values > 0 {
			row.Returns, row.OldValues = valued(tensorReturns), valued(tensorOldValues)
		}
		if reference {
			row.Reference = wide(tensorRefLogProbs)
		}
		row.Supervised = ints[tensorSupervised] != nil && ints[tensorSupervised][r] == 1
		if rollout {
			row.Rollout = wide(tensorRolloutLogProbs)
		}
		if row.Mask, err = flagsOf(tensorLossMask, wide(tensorLossMask), r); err != nil {
			return nil, err
		}
		if learns {
			if row.Learns, err = flagsOf(tensorReturnsMask, valued(tensorReturnsMask), r); err != nil {
				return nil, err
			}
		}
		out = append(out, row)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no row has a weight: %w", store.ErrInvalid)
	}
	return out, nil
}

// flagsOf reads a row of a tensor of zeros and ones.
func flagsOf(name string, values []float32, row int) ([]bool, error) {
	out := make([]bool, len(values))
	for t, v := range values {
		if v != 0 && v != 1 {
			return nil, fmt.Errorf("tensor %q is %v at row %d, token %d: %w", name, v, row, t, store.ErrInvalid)
		}
		out[t] = v == 1
	}
	return out, nil
}

// TensorValues are the values of a tensor, as decode gives them. A tensor that is missing
// or of another type is a store.ErrInvalid.
func TensorValues[T any](f *safetensors.File, name string, decode func(safetensors.Tensor) ([]T, error)) ([]T, error) {
	t, ok := f.Get(name)
	if !ok {
		return nil, fmt.Errorf("tensor %q is missing: %w", name, store.ErrInvalid)
	}
	v, err := decode(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	return v, nil
}

// sizedValues are TensorValues, of which there must be as many as wanted.
func sizedValues[T any](f *safetensors.File, name string, want int, decode func(safetensors.Tensor) ([]T, error)) ([]T, error) {
	v, err := TensorValues(f, name, decode)
	if err == nil && len(v) != want {
		err = fmt.Errorf("tensor %q has %d values, want %d: %w", name, len(v), want, store.ErrInvalid)
	}
	return v, err
}
