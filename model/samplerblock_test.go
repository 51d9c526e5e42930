package model

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

// blockInput is rows with prompts of several lengths, of which one is dead.
func blockInput(c Config, rows, prompt, fresh int) GenerateInput {
	in := GenerateInput{Temperature: 1, Stop: []int32{1, 2, 3}}
	for i := range rows {
		u := make([]float32, fresh)
		draw.Address{Purpose: draw.Sample, Member: int64(i), Turn: 1}.Uniforms(u)
		in.Prompts = append(in.Prompts, randomRows(uint64(i), c, 1, 1+i%prompt)[0])
		in.Uniforms, in.Alive = append(in.Uniforms, u), append(in.Alive, i != 4)
	}
	return in
}

// The rows of a block, which get slots as others end, sample what they sample in passes: sampled,
// greedy, and without an end. Nothing is left on the device.
func TestBlocksSampleWhatPassesDo(t *testing.T) {
	const rows, prompt, fresh = 23, 5, 9
	d := testDevice(t)
	for _, dtype := range []string{"float32", "bfloat16"} {
		before := pjrt.BuffersAlive()
		sh := Shapes{GenerateRows: 4, PromptTokens: prompt, MaxNewTokens: fresh, ComputeDtype: dtype}
		passes, err := d.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		sh.BlockRows = 12
		blocks, err := d.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		s, err := passes.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		in := blockInput(tiny(), rows, prompt, fresh)
		lengths := map[int]bool{}
		for _, how := range []string{"sampled", "greedy", "no stop"} {
			of := in
			of.Greedy, of.IgnoreStop = how == "greedy", how == "no stop"
			want, err := passes.Sampler.Generate(t.Context(), s, of)
			require.NoError(t, err)
			got, err := blocks.Sampler.Generate(t.Context(), s, of)
			require.NoError(t, err)
			require.Equal(t, want.Truncated, got.Truncated, how)
			for i := range want.Tokens {
				lengths[len(got.Tokens[i])] = true
				if dtype == "bfloat16" && how != "greedy" {
					continue // rounding can choose another token
				}
				require.Equal(t, len(want.Tokens[i]), len(got.Tokens[i]), "%s, row %d", how, i)
				require.Equal(t, want.Tokens[i], got.Tokens[i], "%s, row %d", how, i)
				if dtype == "float32" {
					require.InDeltaSlice(t, want.LogProbs[i], got.LogProbs[i], 1e-5, "%s, row %d", how, i)
				}
			}
			require.Empty(t, got.Tokens[4], "a dead row")
		}
		require.Greater(t, len(lengths), 3, "the lengths are unequal")
		s.Free()
		passes.Free()
		blocks.Free()
		require.LessOrEqual(t, pjrt.BuffersAlive(), before) // buffers of tests before may be freed meanwhile
	}
}

// A block has the same bits on any number of devices and with any other blocks beside it.
func TestBlocksOnDevices(t *testing.T) {
	const rows, prompt, fresh = 23, 5, 9
	programs := filepath.Join(t.TempDir(), "programs")
	sh := Shapes{GenerateRows: 4, BlockRows: 8, PromptTokens: prompt, MaxNewTokens: fresh}
	var want GenerateOutput
	for _, n := range []int{1, 2, 4} {
		d := openDevices(t, programs, DeviceOptions{VirtualDevices: n})
		p, err := d.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		in := blockInput(tiny(), rows, prompt, fresh)
		got, err := p.Sampler.Generate(t.Context(), s, in)
		require.NoError(t, err)
		if n == 1 {
			want = got
			in.Prompts, in.Uniforms, in.Alive = in.Prompts[8:16], in.Uniforms[8:16], in.Alive[8:16]
			alone, err := p.Sampler.Generate(t.Context(), s, in)
			require.NoError(t, err)
			require.Equal(t, want.Tokens[8:16], alone.Tokens)
			require.Equal(t, want.LogProbs[8:16], alone.LogProbs)
		}
		require.Equal(t, want, got, "%d devices", n)
		s.Free()
		p.Free()
	}
}

// A slot is given to the next row only where the one before has ended: the steps of a block of rows
// of unequal lengths are nearer to the mean length than to the longest.
func TestBlocksWasteLittle(t *testing.T) {
	d := testDevice(t)
	const rows, fresh = 24, 64
	steps := func(block int) (n int) {
		p, err := d.Programs(tiny(), nil, Shapes{GenerateRows: 4, BlockRows: block, PromptTokens: 2, MaxNewTokens: fresh, ChunkTokens: 4})
		require.NoError(t, err)
		defer p.Free()
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		defer s.Free()
		ran := d.Before
		defer func() { d.Before = ran }()
		d.Before = func(program string) error {
			if program == string(kindDecodeBlock) || program == string(kindDecodeChunk) {
				n++
			}
			return nil
		}
		in := blockInput(tiny(), rows, 2, fresh)
		_, err = p.Sampler.Generate(t.Context(), s, in)
		require.NoError(t, err)
		return n
	}
	passes, blocks := steps(0), steps(rows)
	require.Less(t, blocks, passes, fmt.Sprintf("executions of 4 steps: %d in blocks, %d in passes", blocks, passes))
}

// Neighbours with the same prompt, as the members of a group have in their first turn, share one
// prefill, and sample what they sample in passes.
func TestBlocksShareAPrompt(t *testing.T) {
	const rows, group, prompt, fresh = 24, 6, 5, 9
	d := testDevice(t)
	in := blockInput(tiny(), rows, prompt, fresh)
	for i := range in.Prompts {
		in.Prompts[i] = in.Prompts[i/group*group]
	}
	generate := func(block int) (out GenerateOutput, prefills int) {
		p, err := d.Programs(tiny(), nil, Shapes{GenerateRows: 4, BlockRows: block, PromptTokens: prompt, MaxNewTokens: fresh})
		require.NoError(t, err)
		defer p.Free()
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		defer s.Free()
		ran := d.Before
		defer func() { d.Before = ran }()
		d.Before = func(program string) error {
			if program == string(kindPrefill) {
				prefills++
			}
			return nil
		}
		out, err = p.Sampler.Generate(t.Context(), s, in)
		require.NoError(t, err)
		return out, prefills
	}
	want, passes := generate(0)
	got, blocks := generate(rows)
	require.Equal(t, rows/4, passes)
	require.Equal(t, 1, blocks, "four groups of the block are one prefill of four prompts")
	require.Equal(t, want.Tokens, got.Tokens)
	for i := range want.LogProbs {
		require.InDeltaSlice(t, want.LogProbs[i], got.LogProbs[i], 1e-5, "row %d", i)
	}
	_, blocks = generate(group) // a block ends where a group does
	require.Equal(t, rows/group, blocks)
}

// A prompt's keys and values have the same bits at any place of a prefill and beside any other
// prompts: so rows may share them.
func TestPrefillIgnoresPlaces(t *testing.T) {
	t.Run("as many as a pass has rows", func(t *testing.T) { prefillIgnoresPlaces(t, 8, 0) })
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("%d shared", n), func(t *testing.T) { prefillIgnoresPlaces(t, n, n) })
	}
}

func prefillIgnoresPlaces(t *testing.T, rows, shared int) {
	const prompt = 24
	c := benchConfig()
	p, err := testDevice(t).Programs(c, nil, Shapes{GenerateRows: 8, BlockRows: 16, SharedPrompts: shared, PromptTokens: prompt, MaxNewTokens: 4})
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(NewParams(c, draw.Address{Purpose: draw.Weights}))
	require.NoError(t, err)
	defer s.Free()
	prompts := randomRows(1, c, rows, prompt)
	keys := func(order ...int) [][]float32 { // of each place, all layers'
		var ids []int32
		for _, of := range order {
			ids = append(ids, prompts[of]...)
		}
		buffers, err := p.Sampler.prefill(s, ids)
		require.NoError(t, err)
		defer free(buffers)
		out := make([][]float32, rows)
		for _, b := range buffers {
			each := c.KVHeads * prompt * c.HeadDim
			values, err := download[float32](b, rows*each)
			require.NoError(t, err)
			for place := range rows {
				out[place] = append(out[place], values[place*each:(place+1)*each]...)
			}
		}
		return out
	}
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}[:rows]
	all := keys(order...)
	for i, of := range []int{3, 3, 0, 7, 3, 3, 3, 1}[:rows] {
		order[i] = of % rows
	}
	for place, got := range keys(order...) {
		of := order[place]
		require.Equal(t, all[of], got, "prompt %d at place %d", of, place)
	}
}
