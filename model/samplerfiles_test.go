package model

import (
	"io"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"
)

// What is published of a state samples with its bits where it is loaded, in float32 and in
// bfloat16, whole and cut into files, and of a model with adapters. It has the fingerprint of what
// the state's programs read, which a change of one weight changes. Nothing is left on the device, and
// the programs' hashes are what they were.
func TestSamplerIsWhatProgramsRead(t *testing.T) {
	for name, c := range map[string]Config{"float32": tiny(), "bfloat16": tiny(), "adapters": tinyLoRA()} {
		t.Run(name, func(t *testing.T) {
			d := testDevice(t)
			before := pjrt.BuffersAlive()
			sh := Shapes{GenerateRows: 4, BlockRows: 8, PromptTokens: 5, MaxNewTokens: 9}
			if name == "bfloat16" {
				sh.ComputeDtype = name
			}
			p, err := d.Programs(c, nil, sh)
			require.NoError(t, err)
			hashes, err := p.Hashes()
			require.NoError(t, err)
			var base *Base
			params := tinyParams(c)
			if c.Adapted() {
				base, err = p.LoadBase(tinyParams(c.Base()).source())
				require.NoError(t, err)
				params = tinyAdapters(c)
			}
			s, err := p.Load(params.source().Over(base))
			require.NoError(t, err)
			want, err := p.Sampler.Generate(t.Context(), s, blockInput(c, 11, 5, 9))
			require.NoError(t, err)
			print, err := p.Sampler.Fingerprint(s)
			require.NoError(t, err)
			sizes := map[int64]int64{}
			for _, most := range []int64{1 << 30, 4000} {
				files, err := p.Sampler.Files(s, most)
				require.NoError(t, err)
				fsys := fstest.MapFS{}
				for _, f := range files {
					b, err := io.ReadAll(iotest.OneByteReader(f.Open()))
					require.NoError(t, err)
					whole, err := io.ReadAll(f.Open())
					require.NoError(t, err)
					require.Equal(t, whole, b, f.Name)
					require.Len(t, b, int(f.Size), f.Name)
					fsys[f.Name] = &fstest.MapFile{Data: b}
					sizes[most] += f.Size
				}
				var folder *Folder
				if c.Adapted() {
					folder, err = OpenAdapterFS(fsys, c.Base())
				} else {
					folder, err = OpenFS(fsys)
				}
				require.NoError(t, err)
				loaded, err := p.Sampler.Load(folder.First().Over(base))
				require.NoError(t, err)
				got, err := p.Sampler.Generate(t.Context(), loaded, blockInput(c, 11, 5, 9))
				require.NoError(t, err)
				require.Equal(t, want, got)
				there, err := p.Sampler.Fingerprint(loaded)
				require.NoError(t, err)
				require.Equal(t, print, there)
				loaded.Free()
			}
			require.Greater(t, sizes[4000], sizes[1<<30], "it was cut")
			if name == "bfloat16" {
				require.Less(t, sizes[1<<30], 3*int64(c.Parameters()), "matrices have two bytes a number")
			}
			params.Values[1][0] += 1
			other, err := p.Load(params.source().Over(base))
			require.NoError(t, err)
			changed, err := p.Sampler.Fingerprint(other)
			require.NoError(t, err)
			require.NotEqual(t, print, changed)
			again, err := p.Hashes()
			require.NoError(t, err)
			require.Equal(t, hashes, again)
			other.Free()
			s.Free()
			if base != nil {
				base.Free()
			}
			_, err = p.Sampler.Fingerprint(s)
			require.ErrorIs(t, err, ErrFreed)
			p.Free()
			require.LessOrEqual(t, pjrt.BuffersAlive(), before) // buffers of tests before may be freed meanwhile
		})
	}
}
