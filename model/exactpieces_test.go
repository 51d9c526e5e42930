package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each piece has the same bits for few rows and for many, and with keys that are empty.
func TestExactPieces(t *testing.T) {
	d := testDevice(t)
	for _, dtype := range []string{"float32", "bfloat16"} {
		for _, headDim := range []int{32, 64} {
			c := exactCase{Family: Qwen2, HeadDim: headDim, Grouped: true, Tied: true, Vocabulary: 97}.config()
			pieces, err := d.ExactPieces(bg, c, dtype, PieceSizes{Rows: []int{2, 5, 64, 300}, Widths: []int{20, 100, 700}})
			require.NoError(t, err)
			for _, p := range pieces {
				require.GreaterOrEqual(t, len(p.As), 4, p.Name)
				require.Empty(t, p.Differing, "%s in %s", p.Name, dtype)
			}
		}
	}
}

// CheckExact compares both and says so. A worker's doctor asks it.
func TestCheckExact(t *testing.T) {
	d := testDevice(t)
	c := exactCase{Family: Qwen2, HeadDim: 32, Grouped: true, Tied: true, Vocabulary: 97}.config()
	c.Layers = 1
	got, err := d.CheckExact(bg, c, "float32", []int{2, 64})
	require.NoError(t, err)
	require.True(t, got.Exact(), "%v", got)
	require.Equal(t, "204 tokens in rows of [72 620], and 12 pieces of the network in few rows and many, have the same bits", got.String())
	got.Pieces[1].Differing = got.Pieces[1].As[1:]
	require.False(t, got.Exact())
	require.Equal(t, "204 tokens in rows of [72 620] have the same bits; other bits has the product of 48 numbers with 128 (64 rows, not as 2 rows)", got.String())
	got.compare(Difference{"entropy", 3, 44, 72, 1.5, 1.25})
	require.Contains(t, got.String(), "1 of 205 tokens differ: the entropy of row 3 at place 44 is 1.5 by the sampler and 1.25 by the trainer in rows of 72")
}
