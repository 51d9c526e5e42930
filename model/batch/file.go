package batch

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// The tensors of batch.safetensors beside the columns that are kept, [rows, width] or [rows], where rows is a
// multiple of the micro-batch. Position t of a row is the token at index t.
const (
	TensorIDs        = "ids"         // int32 [rows, width]
	TensorLengths    = "lengths"     // int32 [rows]
	TensorMask       = "loss_mask"   // float32 [rows, width]: 1 where a sampled token is learned from
	TensorRowWeights = "row_weights" // float32 [rows]; 0 is padding
	TensorTurns      = "turns"       // int32 [rows, width]: the turn of a sampled token, from 1
	TensorRow        = "row"         // int32 [rows]: the trajectory's row, −1 for padding
	TensorOrigin     = "origin"      // int32 [rows]: the iteration that rolled it out, −1 for padding
	// With supervised rows: 1 where a row is learned from by its log-likelihood.
	TensorSupervised = "supervised" // int32 [rows]
)

// Encode is all that an update reads, as safetensors: rows of one width, with the columns that the first one has,
// and padding up to a multiple of the micro-batch b.
func Encode(rows []Row, b int) ([]byte, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("a batch needs rows")
	}
	width, n := len(rows[0].IDs), (len(rows)+b-1)/b*b
	wide, flat := []int{n, width}, []int{n}
	number := func(of func(Row) int32, padding int32) []int32 {
		out := slices.Repeat([]int32{padding}, n)
		for i, r := range rows {
			out[i] = of(r)
		}
		return out
	}
	weights := make([]float32, n)
	for i := range rows {
		weights[i] = 1
	}
	tensors := []safetensors.Tensor{
		safetensors.I32(TensorIDs, wide, laid(rows, n*width, func(r Row) []int32 { return r.IDs })),
		safetensors.I32(TensorLengths, flat, number(func(r Row) int32 { return r.Length }, 0)),
		safetensors.F32(TensorMask, wide, laid(rows, n*width, func(r Row) []float32 { return Flags(r.Mask) })),
		safetensors.F32(TensorRowWeights, flat, weights),
		safetensors.I32(TensorTurns, wide, laid(rows, n*width, func(r Row) []int32 { return r.Turns })),
		safetensors.I32(TensorRow, flat, number(func(r Row) int32 { return r.Row }, -1)),
		safetensors.I32(TensorOrigin, flat, number(func(r Row) int32 { return r.Origin }, -1)),
	}
	for c, numbers := range rows[0].Columns {
		if numbers == nil {
			continue
		}
		shape := wide
		if each := len(numbers) / width; each > 1 {
			shape = []int{n, width, each}
		}
		tensors = append(tensors, safetensors.F32(columns[c].Name, shape,
			laid(rows, n*len(numbers), func(r Row) []float32 { return r.Columns[c] })))
	}
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Supervised }) {
		tensors = append(tensors, safetensors.I32(TensorSupervised, flat, number(func(r Row) int32 {
			if r.Supervised {
				return 1
			}
			return 0
		}, 0)))
	}
	return safetensors.Encode(tensors, nil)
}

// laid are what rows have, one after the other, in so many numbers, of which those of padding are 0.
func laid[T any](rows []Row, numbers int, of func(Row) []T) []T {
	out, each := make([]T, numbers), len(of(rows[0]))
	for i, r := range rows {
		copy(out[i*each:(i+1)*each], of(r))
	}
	return out
}

// Decode reads the rows of a batch of micro-batches of b rows and the given width. The wanted columns must be
// there, with so many values a token; the others are read if they are there, those with values only if values
// is above 0. Anything else is an ErrInput.
func Decode(raw []byte, b, width, values int, wanted ...Column) ([]Row, error) {
	f, err := safetensors.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	lengths, err := Values(f, TensorLengths, -1, safetensors.Tensor.Int32s)
	if err != nil {
		return nil, err
	}
	n := len(lengths)
	if n == 0 || n%b != 0 {
		return nil, fmt.Errorf("%w: %d rows are no multiple of the micro-batch of %d", ErrInput, n, b)
	}
	ints := map[string][]int32{}
	for _, t := range []struct {
		name string
		size int
	}{{TensorRow, n}, {TensorOrigin, n}, {TensorIDs, n * width}, {TensorTurns, n * width}, {TensorSupervised, n}} {
		if _, there := f.Get(t.name); t.name == TensorSupervised && !there {
			continue
		}
		if ints[t.name], err = Values(f, t.name, t.size, safetensors.Tensor.Int32s); err != nil {
			return nil, err
		}
	}
	weights, err := Values(f, TensorRowWeights, n, safetensors.Tensor.Float32s)
	if err != nil {
		return nil, err
	}
	mask, err := Values(f, TensorMask, n*width, safetensors.Tensor.Float32s)
	if err != nil {
		return nil, err
	}
	var numbers RowColumns // of all rows
	for c, about := range columns {
		_, there := f.Get(about.Name)
		if !about.Kept || !slices.Contains(wanted, Column(c)) && (!there || about.Values && values == 0) {
			continue
		}
		if numbers[c], err = Values(f, about.Name, n*width*Column(c).each(values), safetensors.Tensor.Float32s); err != nil {
			return nil, err
		}
	}
	var out []Row
	for r, weight := range weights {
		if weight == 0 {
			continue
		}
		row := Row{
			Row: ints[TensorRow][r], Origin: ints[TensorOrigin][r], Length: lengths[r],
			IDs: ints[TensorIDs][r*width : (r+1)*width], Turns: ints[TensorTurns][r*width : (r+1)*width],
			Supervised: ints[TensorSupervised] != nil && ints[TensorSupervised][r] == 1,
		}
		own := mask[r*width : (r+1)*width]
		if err := valid(TensorMask, own, flag, r); err != nil {
			return nil, err
		}
		row.Mask = make([]bool, width)
		for t, v := range own {
			row.Mask[t] = v == 1
		}
		for c, all := range numbers {
			if all == nil {
				continue
			}
			each := len(all) / n
			row.Columns[c] = all[r*each : (r+1)*each]
			if err := valid(columns[c].Name, row.Columns[c], columns[c].Valid, r); err != nil {
				return nil, err
			}
		}
		out = append(out, row)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no row has a weight", ErrInput)
	}
	return out, nil
}

// valid returns an error if a number of a row is none that the tensor may have.
func valid(name string, numbers []float32, may func(float32) bool, row int) error {
	for t, v := range numbers {
		if may != nil && !may(v) {
			return fmt.Errorf("%w: tensor %q is %v at row %d, token %d", ErrInput, name, v, row, t)
		}
	}
	return nil
}

// Values are the numbers of a tensor, as decode gives them, of which there must be size if that is not
// negative. A tensor that is missing or of another type is an ErrInput.
func Values[T any](f *safetensors.File, name string, size int, decode func(safetensors.Tensor) ([]T, error)) ([]T, error) {
	t, ok := f.Get(name)
	if !ok {
		return nil, fmt.Errorf("%w: tensor %q is missing", ErrInput, name)
	}
	v, err := decode(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	if size >= 0 && len(v) != size {
		return nil, fmt.Errorf("%w: tensor %q has %d values, want %d", ErrInput, name, len(v), size)
	}
	return v, nil
}
