package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A network that is not trained gives the log-probs and the replies of the same weights in programs that train too, at all widths and in both
// dtypes. It has no program besides, and in bfloat16 its matrices are on the device once.
func TestFrozenNetworks(t *testing.T) {
	d := testDevice(t)
	params := tinyParams(tiny())
	for _, dtype := range []string{"float32", "bfloat16"} {
		t.Run(dtype, func(t *testing.T) {
			sh := Shapes{MicroBatch: 3, Sequence: 9, Narrower: [2]int{7}, ComputeDtype: dtype}
			p, err := d.Programs(tiny(), nil, sh)
			require.NoError(t, err)
			defer p.Free()
			sh.Frozen = true
			q, err := d.Programs(tiny(), nil, sh)
			require.NoError(t, err)
			defer q.Free()
			whole, err := p.UploadParams(params)
			require.NoError(t, err)
			defer whole.Free()
			frozen, err := q.LoadFrozen(params.source())
			require.NoError(t, err)
			defer frozen.Free()
			for _, width := range []int{9, 7} {
				b := batchOf(randomRows(1, tiny(), 3, width), 1)
				b.Width = width
				want, _, err := p.Scorer.Score(bg, whole, b, 0.7)
				require.NoError(t, err)
				got, _, err := q.Scorer.Score(bg, frozen, b, 0.7)
				require.NoError(t, err)
				for i := range want {
					require.Equal(t, want[i], got[i])
				}
			}
			generate := Shapes{GenerateRows: 2, PromptTokens: 6, MaxNewTokens: 5, ComputeDtype: dtype}
			in := GenerateInput{Prompts: randomRows(1, tiny(), 3, 6), Greedy: true}
			var wrote []GenerateOutput
			for _, frozenToo := range []bool{false, true} {
				generate.Frozen = frozenToo
				g, err := d.Programs(tiny(), nil, generate)
				require.NoError(t, err)
				defer g.Free()
				st := whole
				if frozenToo {
					st, err = g.LoadFrozen(params.source())
					require.NoError(t, err)
					defer st.Free()
				}
				got, err := g.Sampler.Generate(bg, st, in)
				require.NoError(t, err)
				wrote = append(wrote, got)
			}
			require.Equal(t, wrote[0], wrote[1])
			for i := range frozen.params {
				require.True(t, (frozen.params[i] == nil) != (frozen.copies == nil || frozen.copies[i] == nil), "tensor %d is there once", i)
			}
			hashes, err := q.Hashes()
			require.NoError(t, err)
			require.Contains(t, hashes, "forward")
			require.Contains(t, hashes, "forward-7")
			for _, kind := range []string{"backward", "backward-7", "apply", "square"} {
				require.NotContains(t, hashes, kind)
			}
		})
	}
	p, _ := tinyPrograms(t, tiny())
	_, err := p.LoadFrozen(params.source())
	require.ErrorIs(t, err, ErrInput)
}
