package model

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
)

// turnShapes are the shapes of turns whose keys and values are kept, or are prefilled whole.
func turnShapes(keep bool, chunk int, widths ...int) []Shapes {
	out := make([]Shapes, len(widths))
	for i, width := range widths {
		out[i] = Shapes{GenerateRows: 4, PromptTokens: width, MaxNewTokens: 4, ChunkTokens: chunk}
		if keep {
			out[i].Append.Widest = widths[len(widths)-1]
			if i > 0 {
				out[i].Append.Before, out[i].Append.Tokens = widths[i-1], 5
			}
		}
	}
	return out
}

// episodes are rows played for some turns, greedily or not: after each turn a row's context gets
// what was sampled and some ids more, another number in each row.
type episodes struct {
	programs []*Programs
	state    *State
	quit     int  // the row that ends after the first turn
	drop     bool // the keys and values after every turn
}

func (e episodes) play(t *testing.T, temperature float32) (out []GenerateOutput) {
	t.Helper()
	contexts := [][]int32{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10}, {11, 12}, {13}, {14, 15}}
	alive := []bool{true, true, true, true, true, true}
	var at [][][]int32 // by turn
	var kept *Kept
	for turn, p := range e.programs {
		now := make([][]int32, len(contexts))
		copy(now, contexts)
		at = append(at, now)
		var err error
		if p.sh.Append != (AppendShapes{}) {
			begin := turn
			if e.drop {
				if kept != nil {
					kept.Free()
				}
				kept, begin = nil, 0
			}
			for i := begin; i <= turn; i++ {
				kept, err = e.programs[i].Sampler.Append(bg, e.state, kept, at[i], alive)
				require.NoError(t, err)
			}
			require.Equal(t, int64(2*4*2*p.c.Layers*4*p.c.KVHeads*p.sh.PromptTokens*p.c.HeadDim), kept.Bytes(), "two passes of four rows")
		}
		in := GenerateInput{Prompts: now, Alive: alive, Uniforms: uniforms(uint64(turn), len(now), 4), Temperature: temperature, Kept: kept}
		got, err := p.Sampler.Generate(bg, e.state, in)
		require.NoError(t, err)
		out = append(out, got)
		next := make([][]int32, len(contexts))
		for r, c := range contexts {
			next[r] = append(next[r], c...)
			if alive[r] {
				next[r] = append(append(next[r], got.Tokens[r]...), randomRows(uint64(10*turn+r), p.c, 1, 1+r)[0]...)
			}
		}
		contexts = next
		alive = append([]bool{}, alive...)
		alive[e.quit] = false
	}
	if kept != nil {
		kept.Free()
		require.Zero(t, kept.Bytes())
	}
	return out
}

// What is kept from turn to turn has the bits of appending again from the first turn, in one
// execution of decoding or in several, on one device or more; and within rounding those of
// prefilling each context whole.
func TestKeptValues(t *testing.T) {
	plugintest.Needs(t)
	c := tiny()
	widths := []int{6, 20, 30}
	folder := filepath.Join(t.TempDir(), "programs")
	var want []GenerateOutput
	for _, devices := range []int{1, 2} {
		d, err := OpenDevice(DeviceOptions{ProgramCache: folder, VirtualDevices: devices})
		require.NoError(t, err)
		t.Cleanup(d.Close)
		prepared := func(shapes []Shapes) (out []*Programs) {
			for _, sh := range shapes {
				p, err := d.Programs(c, nil, sh)
				require.NoError(t, err)
				t.Cleanup(p.Free)
				out = append(out, p)
			}
			return out
		}
		of := prepared(turnShapes(true, 0, widths...))
		s, err := of[0].NewState(tinyParams(c))
		require.NoError(t, err)
		t.Cleanup(s.Free)
		got := episodes{of, s, 1, false}.play(t, 0.9)
		if devices == 1 {
			want = got
			require.Equal(t, want, episodes{of, s, 1, true}.play(t, 0.9), "dropped between the turns")
			require.Equal(t, want, episodes{prepared(turnShapes(true, 3, widths...)), s, 1, false}.play(t, 0.9), "in chunks")
			whole := prepared(turnShapes(false, 0, widths...))
			for _, temperature := range []float32{0, 0.9} {
				kept, apart := episodes{of, s, 1, false}.play(t, temperature), episodes{whole, s, 1, false}.play(t, temperature)
				for turn := range kept {
					require.Equal(t, apart[turn].Tokens, kept[turn].Tokens)
					for r := range apart[turn].LogProbs {
						require.InDeltaSlice(t, apart[turn].LogProbs[r], kept[turn].LogProbs[r], 1e-5)
					}
				}
			}
			other := episodes{of, s, 2, false}.play(t, 0.9) // another row ends
			for turn := range other {
				for _, r := range []int{0, 3, 4, 5} {
					require.Equal(t, want[turn].LogProbs[r], other[turn].LogProbs[r], "a row's neighbours")
				}
			}
		}
		require.Equal(t, want, got, "%d devices", devices)
	}
}

func TestKeptValuesAreChecked(t *testing.T) {
	d := testDevice(t)
	var p []*Programs
	for _, sh := range turnShapes(true, 0, 6, 20) {
		of, err := d.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		defer of.Free()
		p = append(p, of)
	}
	s, err := p[0].NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	rows := [][]int32{{1, 2}, {3}}
	first := func() *Kept {
		kept, err := p[0].Sampler.Append(bg, s, nil, rows, nil)
		require.NoError(t, err)
		return kept
	}
	for name, f := range map[string]func() error{
		"nothing before":  func() error { _, err := p[1].Sampler.Append(bg, s, nil, rows, nil); return err },
		"two first turns": func() error { _, err := p[0].Sampler.Append(bg, s, first(), rows, nil); return err },
		"a shorter row":   func() error { _, err := p[1].Sampler.Append(bg, s, first(), [][]int32{{1}, {3}}, nil); return err },
		"too long": func() error {
			_, err := p[1].Sampler.Append(bg, s, first(), [][]int32{make([]int32, 21), {3}}, nil)
			return err
		},
		"not kept": func() error { _, err := p[1].Sampler.Generate(bg, s, GenerateInput{Prompts: rows}); return err },
		"of other rows": func() error {
			kept := first()
			defer kept.Free()
			_, err := p[0].Sampler.Generate(bg, s, GenerateInput{Prompts: [][]int32{{1, 2, 3}, {3}}, Kept: kept})
			return err
		},
		"shapes": func() error {
			_, err := d.Programs(tiny(), nil, Shapes{GenerateRows: 4, PromptTokens: 6, MaxNewTokens: 4, Append: AppendShapes{Widest: 5}})
			return err
		},
	} {
		require.ErrorIs(t, f(), ErrInput, name)
	}
}
