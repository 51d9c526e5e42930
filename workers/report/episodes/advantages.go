package episodes

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// The tensors of a batch that say what a token's advantage was; see
// activities.UpdateInput's Batch.
const (
	tensorRow        = "row"        // int32 [rows]: the trajectory's row, −1 for padding
	tensorMask       = "loss_mask"  // float32 [rows, width]: 1 where a token was sampled
	tensorAdvantages = "advantages" // float32 [rows, width]
	tensorOrigin     = "origin"     // int32 [rows]: the iteration that rolled it out; older batches have none
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
		return nil, fmt.Errorf("read %s: %w", s.Location(ref.Key), err)
	}
	return found, nil
}

func advantagesOf(f *safetensors.File, iteration int) (map[int32][]float32, error) {
	rows, err := run.TensorValues(f, tensorRow, safetensors.Tensor.Int32s)
	if err != nil {
		return nil, err
	}
	var origin []int32
	if _, has := f.Get(tensorOrigin); has {
		if origin, err = run.TensorValues(f, tensorOrigin, safetensors.Tensor.Int32s); err != nil {
			return nil, err
		}
	}
	mask, err := run.TensorValues(f, tensorMask, safetensors.Tensor.Float32s)
	if err != nil {
		return nil, err
	}
	values, err := run.TensorValues(f, tensorAdvantages, safetensors.Tensor.Float32s)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(mask) != len(values) || len(mask)%len(rows) != 0 || origin != nil && len(origin) != len(rows) {
		return nil, fmt.Errorf("%d rows, %d masks, %d advantages: %w", len(rows), len(mask), len(values), store.ErrInvalid)
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
