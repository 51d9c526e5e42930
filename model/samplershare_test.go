package model

import (
	"slices"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"
)

// groupsInput is rows of groups of so many, whose members share a prompt. Two rows are dead: the first
// of a group, and one between others.
func groupsInput(c Config, rows, group, prompt, fresh int) GenerateInput {
	in := blockInput(c, rows, prompt, fresh)
	for i := range in.Prompts {
		in.Prompts[i] = in.Prompts[i/group*group]
		in.Alive[i] = i != group && i != 1
	}
	return in
}

// generatedBy generates by programs of a tiny model, and counts the prefills. Nothing is left on the device.
func generatedBy(t *testing.T, sh Shapes, l limits, in GenerateInput) (out GenerateOutput, prefills int) {
	t.Helper()
	d := testDevice(t)
	before := pjrt.BuffersAlive()
	p, err := d.programsWith(tiny(), nil, sh, l)
	require.NoError(t, err)
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
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
	s.Free()
	p.Free()
	require.LessOrEqual(t, pjrt.BuffersAlive(), before) // buffers of tests before may be freed meanwhile
	return out, prefills
}

// The rows of a pass that share a prompt sample what they sample with a prefill of their own, and have
// the same bits in chunks, where a pass has more prompts than a prefill, and where its keys and values
// are in several parts.
func TestPassesShareAPrompt(t *testing.T) {
	const rows, group, prompt, fresh = 22, 3, 5, 9
	in := groupsInput(tiny(), rows, group, prompt, fresh)
	for _, dtype := range []string{"float32", "bfloat16"} {
		sh := Shapes{GenerateRows: 8, PromptTokens: prompt, MaxNewTokens: fresh, ComputeDtype: dtype}
		each, _ := generatedBy(t, sh, defaultLimits, in)
		sh.SharedPrompts = 4
		want, prefills := generatedBy(t, sh, defaultLimits, in)
		require.Equal(t, 3, prefills, "one for each pass")
		lengths := map[int]bool{}
		for i := range each.Tokens {
			lengths[len(want.Tokens[i])] = true
			if dtype == "float32" { // else rounding can choose another token
				require.Equal(t, each.Tokens[i], want.Tokens[i], "row %d", i)
				require.InDeltaSlice(t, each.LogProbs[i], want.LogProbs[i], 1e-5, "row %d", i)
			}
		}
		require.Greater(t, len(lengths), 3, "the lengths are unequal")

		sh.ChunkTokens = 4
		got, _ := generatedBy(t, sh, defaultLimits, in)
		require.Equal(t, want, got, "in chunks")

		// Two prompts at once: the passes have rows of three, four and three groups.
		sh.SharedPrompts = 2
		want, prefills = generatedBy(t, sh, defaultLimits, in)
		require.Equal(t, 2+2+2, prefills)
		few := defaultLimits
		few.prefill = 2 * prompt // parts of two rows, and prefills of two prompts
		sh.SharedPrompts = 3
		got, prefills = generatedBy(t, sh, few, in)
		require.Equal(t, 2+2+2, prefills)
		require.Equal(t, want, got, "in parts")
	}
}

// A row's bits do not depend on the prompts of other rows, on how many there are, or on who is alive.
func TestSharedPromptsAreIndependent(t *testing.T) {
	const rows, group, prompt, fresh = 8, 3, 5, 9
	sh := Shapes{GenerateRows: rows, SharedPrompts: 4, PromptTokens: prompt, MaxNewTokens: fresh}
	in := groupsInput(tiny(), rows, group, prompt, fresh)
	want, _ := generatedBy(t, sh, defaultLimits, in)
	for row := range rows {
		if !in.Alive[row] {
			continue
		}
		others := in
		others.Prompts, others.Alive = randomRows(uint64(100+row), tiny(), rows, prompt), slices.Repeat([]bool{true}, rows)
		others.Prompts[row] = in.Prompts[row]
		alone := in
		alone.Alive = make([]bool, rows)
		alone.Alive[row] = true
		for _, other := range []GenerateInput{others, alone} {
			got, _ := generatedBy(t, sh, defaultLimits, other)
			require.Equal(t, want.Tokens[row], got.Tokens[row])
			require.Equal(t, want.LogProbs[row], got.LogProbs[row])
		}
	}
}

// Blocks prefill as many prompts at once as passes do, and have the bits that they have with any number
// of executions.
func TestBlocksShareFewPrompts(t *testing.T) {
	const rows, group, prompt, fresh = 24, 6, 5, 9
	in := groupsInput(tiny(), rows, group, prompt, fresh)
	sh := Shapes{GenerateRows: 8, BlockRows: rows, PromptTokens: prompt, MaxNewTokens: fresh}
	each, prefills := generatedBy(t, sh, defaultLimits, in)
	require.Equal(t, 1, prefills)
	sh.SharedPrompts = 3
	got, prefills := generatedBy(t, sh, defaultLimits, in)
	require.Equal(t, 2, prefills, "four groups of three prompts at once")
	require.Equal(t, each.Tokens, got.Tokens)
	for i := range each.LogProbs {
		require.InDeltaSlice(t, each.LogProbs[i], got.LogProbs[i], 1e-5, "row %d", i)
	}
	sh.ChunkTokens = 1
	chunks, _ := generatedBy(t, sh, defaultLimits, in)
	require.Equal(t, got, chunks)
}

// Values that are kept begin with shared prompts. A later turn prefills none.
func TestKeptValuesOfSharedPrompts(t *testing.T) {
	prepared := func(keep bool, prompts int) (out []*Programs) {
		for i, sh := range turnShapes(keep, 0, 6, 20, 30) {
			if i == 0 {
				sh.SharedPrompts = prompts
			}
			p, err := testDevice(t).Programs(tiny(), nil, sh)
			require.NoError(t, err)
			t.Cleanup(p.Free)
			out = append(out, p)
		}
		return out
	}
	of := prepared(true, 3)
	s, err := of[0].NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	got := episodes{of, s, 1, false}.play(t, 0.9)
	require.Equal(t, got, episodes{of, s, 1, true}.play(t, 0.9), "dropped between the turns")
	for turn, want := range (episodes{prepared(false, 0), s, 1, false}).play(t, 0.9) {
		require.Equal(t, want.Tokens, got[turn].Tokens)
	}

	sh := turnShapes(true, 0, 6, 20)[1]
	sh.SharedPrompts = 2
	_, err = testDevice(t).Programs(tiny(), nil, sh)
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "prefills no prompt")
}
