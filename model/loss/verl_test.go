package loss

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers are of verl's agg_loss, whose constant is the width of the responses.
func TestConstantIsVerls(t *testing.T) {
	content, err := os.ReadFile("testdata/verl.json")
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Mask   [][]int
			Losses [][]float64
			Sum    float64 `json:"sum_norm_earlier"`
			Mean   float64 `json:"sum_norm"`
		}
	}
	require.NoError(t, json.Unmarshal(content, &file))
	require.NotEmpty(t, file.Cases)
	for i, c := range file.Cases {
		mask := make([][]bool, len(c.Mask))
		for row, sampled := range c.Mask {
			for _, m := range sampled {
				mask[row] = append(mask[row], m != 0)
			}
		}
		for a, want := range map[Aggregation]float64{SumConstant: c.Sum, Constant: c.Mean} {
			weights, err := Weights(mask, nil, a, float64(len(mask[0])))
			require.NoError(t, err)
			var got float64
			for row := range weights {
				for at, w := range weights[row] {
					got += w * c.Losses[row][at]
				}
			}
			require.InDelta(t, want, got, 1e-8, "case %d, %s", i, a)
		}
	}
}
