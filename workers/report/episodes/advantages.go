package episodes

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// readAdvantages adds the advantages of the sampled tokens, in order, by the
// trajectory's row, of those that an iteration rolled out: a trajectory may have
// several rows of a batch. The values of an earlier batch stay.
func readAdvantages(ctx context.Context, s store.Store, ref store.Ref, iteration int, out map[int32][]float32) error {
	found, err := batchAdvantages(ctx, s, ref, iteration)
	for row, values := range found {
		if _, known := out[row]; !known {
			out[row] = values
		}
	}
	return err
}

// readPass appends those of a pass, whose turn follows on the turns that were read before.
func readPass(ctx context.Context, s store.Store, ref store.Ref, iteration int, out map[int32][]float32) error {
	found, err := batchAdvantages(ctx, s, ref, iteration)
	for row, values := range found {
		out[row] = append(out[row], values...)
	}
	return err
}

// batchAdvantages are the advantages in a batch, by the trajectory's row.
func batchAdvantages(ctx context.Context, s store.Store, ref store.Ref, iteration int) (map[int32][]float32, error) {
	body, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", s.Location(ref.Key), store.ErrInvalid, err)
	}
	found, err := advantagesOf(f, iteration)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", s.Location(ref.Key), store.ErrInvalid, err)
	}
	return found, nil
}

func advantagesOf(f *safetensors.File, iteration int) (map[int32][]float32, error) {
	rows, err := batch.Values(f, batch.TensorRow, -1, safetensors.Tensor.Int32s)
	if err != nil {
		return nil, err
	}
	var origin []int32 // older batches have none
	if _, has := f.Get(batch.TensorOrigin); has {
		if origin, err = batch.Values(f, batch.TensorOrigin, -1, safetensors.Tensor.Int32s); err != nil {
			return nil, err
		}
	}
	mask, err := batch.Values(f, batch.TensorMask, -1, safetensors.Tensor.Float32s)
	if err != nil {
		return nil, err
	}
	values, err := batch.Values(f, batch.Advantages.String(), -1, safetensors.Tensor.Float32s)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(mask) != len(values) || len(mask)%len(rows) != 0 || origin != nil && len(origin) != len(rows) {
		return nil, fmt.Errorf("%d rows, %d masks, %d advantages", len(rows), len(mask), len(values))
	}
	width := len(mask) / len(rows)
	out := map[int32][]float32{}
	for i, row := range rows {
		if row < 0 || origin != nil && int(origin[i]) != iteration {
			continue
		}
		for at := i * width; at < (i+1)*width; at++ {
			if mask[at] == 1 {
				out[row] = append(out[row], values[at])
			}
		}
	}
	return out, nil
}
