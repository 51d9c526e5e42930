package loss

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainedVarianceErrors(t *testing.T) {
	one, mask := [][]float64{{0, 0}}, [][]bool{{true, true}}
	for _, x := range [][2][][]float64{{nil, one}, {one, nil}} {
		_, err := ExplainedVariance(x[0], x[1], mask)
		require.ErrorIs(t, err, ErrInput)
	}
}
