package credit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
)

func TestWorthAStep(t *testing.T) {
	rows := [][]float64{{0, .005}, {0, -.01}, {}, {math.NaN()}}
	got, err := credit.WorthAStep(rows, .01)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, false, true}, got, "what is not a number reaches the update, which skips its step")
	got, err = credit.WorthAStep(rows, 0)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true, true}, got)
}
