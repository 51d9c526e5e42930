package golden

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// RLTolerance is the allowed difference from the numbers of an RL case, which were computed
// in float32 and rounded to 7 places.
const RLTolerance = 1e-5

// RL is a case of golden rl: a batch and the results of verl 0.9.1. Tensors are
// [rows][tokens] unless a comment says otherwise.
type RL struct {
	// Group is the group of each row, [rows].
	Group []int
	// Mask is 1 at sampled tokens, else 0.
	Mask         [][]float64
	TokenRewards [][]float64 `json:"token_rewards"`
	Values       [][]float64
	// Adv are advantages and returns by the name of the algorithm.
	Adv map[string]struct {
		Advantages, Returns [][]float64
		Whitened            bool
	}
	LossInputs struct {
		Old        [][]float64 `json:"old_logprob"`
		New        [][]float64 `json:"new_logprob"`
		Ref        [][]float64 `json:"ref_logprob"`
		Advantages [][]float64
	} `json:"loss_inputs"`
	// Loss are losses, KLs and clip fractions by name.
	Loss map[string]float64
	// Value is a case of the critic's loss.
	Value struct {
		Values    [][]float64 `json:"vpreds"`
		OldValues [][]float64 `json:"old_values"`
		Returns   [][]float64
		Clip      float64 `json:"cliprange"`
		Loss      float64
	}
	Entropy struct {
		Logits [][][]float64 // [rows][tokens][vocabulary]
		Mean   float64
	}
}

// Sampled is the mask as bools.
func (c RL) Sampled() [][]bool {
	mask := make([][]bool, len(c.Mask))
	for row, tokens := range c.Mask {
		for _, m := range tokens {
			mask[row] = append(mask[row], m != 0)
		}
	}
	return mask
}

// RLCases reads the cases of golden rl; repository is the folder of the
// repository's copy.
func RLCases(t testing.TB, repository string) []RL {
	t.Helper()
	var file struct{ Cases []RL }
	require.NoError(t, json.Unmarshal(Read(t, "rl", "rl.json", repository), &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}
