package model

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

const lastDraw = 1 - 1.0/(1<<24)

func uniforms(seed uint64, rows, n int) [][]float32 {
	out := make([][]float32, rows)
	for i := range out {
		out[i] = make([]float32, n)
		draw.Address{Seed: seed, Purpose: draw.Sample, Member: int64(i)}.Uniforms(out[i])
	}
	return out
}

func TestGenerateRowsAreIndependent(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	prompts := [][]int32{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10}, {11, 12}}
	us := uniforms(1, 4, 8)
	base, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: prompts, Uniforms: us, Temperature: 0.9})
	require.NoError(t, err)
	for i := range prompts {
		require.Len(t, base.Tokens[i], 8)
		require.True(t, base.Truncated[i])
	}
	// Other companions, none at all, another pass: the same bits.
	for i := range prompts {
		other := [][]int32{{30}, {31, 32}, {33, 34, 35}, {36}}
		otherUs := uniforms(2, 4, 8)
		other[i], otherUs[i] = prompts[i], us[i]
		alive := make([]bool, 4)
		alive[i] = true
		for _, in := range []GenerateInput{
			{Prompts: other, Uniforms: otherUs, Temperature: 0.9},
			{Prompts: other, Uniforms: otherUs, Temperature: 0.9, Alive: alive},
			{Prompts: append(slices.Clone(prompts), other...), Uniforms: append(slices.Clone(us), otherUs...), Temperature: 0.9},
		} {
			out, err := p.Sampler.Generate(bg, s, in)
			require.NoError(t, err)
			at := i + len(in.Prompts) - 4
			require.Equal(t, base.Tokens[i], out.Tokens[at])
			require.Equal(t, base.LogProbs[i], out.LogProbs[at])
			if in.Alive != nil {
				require.Empty(t, out.Tokens[(i+1)%4])
			}
		}
	}
	// A row ends where its own stop id comes.
	stop := base.Tokens[2][3]
	out, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: prompts, Uniforms: us, Temperature: 0.9, Stop: []int32{36, stop}})
	require.NoError(t, err)
	for i := range prompts {
		end := slices.IndexFunc(base.Tokens[i], func(id int32) bool { return id == 36 || id == stop })
		require.Equal(t, end < 0, out.Truncated[i])
		if end < 0 {
			end = 7
		}
		require.Equal(t, base.Tokens[i][:end+1], out.Tokens[i])
		require.Equal(t, base.LogProbs[i][:end+1], out.LogProbs[i])
	}
	ignored, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: prompts, Uniforms: us, Temperature: 0.9, Stop: []int32{stop}, IgnoreStop: true})
	require.NoError(t, err)
	require.Equal(t, base, ignored)
}

func TestScoreRowsAreIndependent(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	ids := randomRows(1, p.c, 3, 7)
	lp, ent, err := p.Scorer.Score(bg, s, batch.MicroBatch{IDs: ids, Lengths: []int32{7, 5, 0}}, 1)
	require.NoError(t, err)
	require.Equal(t, float32(0), lp[0][0])
	require.Equal(t, []float32{0, 0}, lp[1][5:])
	require.Equal(t, []float32{0, 0}, ent[1][5:])
	require.NotZero(t, lp[1][4])
	require.Equal(t, make([]float32, 7), lp[2])
	other := randomRows(2, p.c, 3, 7)
	other[1] = append(slices.Clone(ids[1][:5]), 0, 36) // other padding too
	lp2, ent2, err := p.Scorer.Score(bg, s, batch.MicroBatch{IDs: other[:2], Lengths: []int32{7, 5}}, 1)
	require.NoError(t, err)
	require.Equal(t, lp[1], lp2[1])
	require.Equal(t, ent[1], ent2[1])
}

func TestGenerateAgreesWithScore(t *testing.T) {
	c := tiny()
	legal := make([]bool, c.VocabSize)
	for i := range legal {
		legal[i] = i%3 != 1
	}
	sh := Shapes{GenerateRows: 4, PromptTokens: 6, MaxNewTokens: 8, MicroBatch: 4, Sequence: 14}
	p, err := testDevice(t).Programs(c, legal, sh)
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(c))
	require.NoError(t, err)
	defer s.Free()
	in := GenerateInput{Prompts: [][]int32{{0, 2, 3}, {3}, {5, 6, 8, 9, 11, 12}, {11, 12}}, Uniforms: uniforms(3, 4, 8), Temperature: 0.6}
	for i, u := range []float32{0, lastDraw} { // the ends of the unit interval
		for j := range in.Uniforms[i] {
			in.Uniforms[i][j] = u
		}
	}
	out, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	var b batch.MicroBatch
	for i, prompt := range in.Prompts {
		b.IDs = append(b.IDs, append(slices.Clone(prompt), out.Tokens[i]...))
		b.Lengths = append(b.Lengths, int32(len(b.IDs[i])))
		for _, id := range out.Tokens[i] {
			require.True(t, legal[id], "row %d sampled %d", i, id)
		}
	}
	lp, _, err := p.Scorer.Score(bg, s, b, 0.6)
	require.NoError(t, err)
	for i, prompt := range in.Prompts {
		for j, x := range out.LogProbs[i] {
			require.InDelta(t, lp[i][len(prompt)+j], x, 1e-4, "row %d, token %d", i, j)
		}
	}
	// An illegal id has no probability in scores either.
	lp, ent, err := p.Scorer.Score(bg, s, batch.MicroBatch{IDs: [][]int32{{0, 1, 2}}, Lengths: []int32{3}}, 1)
	require.NoError(t, err)
	require.True(t, math.IsInf(float64(lp[0][1]), -1))
	require.False(t, math.IsNaN(float64(ent[0][1])))

	// Temperature 0 takes the likeliest: each token is a maximum of its distribution.
	greedy, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: in.Prompts})
	require.NoError(t, err)
	for i, prompt := range in.Prompts {
		var b batch.MicroBatch
		for id := range int32(c.VocabSize) {
			if legal[id] {
				b.IDs = append(b.IDs, append(slices.Clone(prompt), id))
				b.Lengths = append(b.Lengths, int32(len(prompt)+1))
			}
		}
		best, bestID := math.Inf(-1), int32(-1)
		for from := 0; from < len(b.IDs); from += 4 {
			to := min(from+4, len(b.IDs))
			lp, _, err := p.Scorer.Score(bg, s, batch.MicroBatch{IDs: b.IDs[from:to], Lengths: b.Lengths[from:to]}, 1)
			require.NoError(t, err)
			for r := range lp {
				if v := float64(lp[r][len(prompt)]); v > best {
					best, bestID = v, b.IDs[from+r][len(prompt)]
				}
			}
		}
		require.Equal(t, bestID, greedy.Tokens[i][0])
	}
}

// drawFrom runs the sampler alone on logits given by the test.
func drawFrom(t *testing.T, logits [][]float32, u []float32, greedy bool) ([]int32, []float32) {
	t.Helper()
	d := testDevice(t)
	rows, vocab := len(logits), len(logits[0])
	prog := &program{name: "sample", device: d, build: func(in *inputs) []*graph.Node {
		token, lp, _ := sample(in.next(dtypes.Float32, rows, vocab), in.next(dtypes.Float32, rows), in.next(dtypes.Bool))
		return []*graph.Node{token, lp}
	}}
	d.run.Lock()
	defer d.run.Unlock()
	var flat []float32
	for _, row := range logits {
		flat = append(flat, row...)
	}
	var args []compute.Buffer
	for _, up := range []func() (compute.Buffer, error){
		func() (compute.Buffer, error) { return upload(d, 0, flat, rows, vocab) },
		func() (compute.Buffer, error) { return upload(d, 0, u, rows) },
		func() (compute.Buffer, error) { return upload(d, 0, []bool{greedy}) },
	} {
		b, err := up()
		require.NoError(t, err)
		args = append(args, b)
	}
	out, err := prog.call(args...)
	require.NoError(t, err)
	tokens, err := download[int32](out[0], rows)
	require.NoError(t, err)
	lp, err := download[float32](out[1], rows)
	require.NoError(t, err)
	return tokens, lp
}

func TestSampleInvertsTheDistribution(t *testing.T) {
	none := float32(math.Inf(-1))
	for _, vocab := range []int{1, 2, 5, 37, 1000, 5000} {
		r := draw.Address{Seed: uint64(vocab)}.Rand()
		const rows = 64
		logits, u := make([][]float32, rows), make([]float32, rows)
		for i := range logits {
			logits[i] = make([]float32, vocab)
			for j := range logits[i] {
				logits[i][j] = float32(r.NormFloat64() * 3)
				if r.IntN(3) == 0 || i%4 == 3 && j < vocab/2 || i%4 == 2 && j > vocab/2 {
					logits[i][j] = none
				}
			}
			logits[i][r.IntN(vocab)] = 1
			u[i] = float32(r.Uint32()>>8) / (1 << 24)
			switch i % 8 {
			case 0, 3:
				u[i] = 0
			case 1, 2:
				u[i] = lastDraw
			}
		}
		tokens, lps := drawFrom(t, logits, u, false)
		for i, id := range tokens {
			require.Greater(t, logits[i][id], none, "vocabulary %d, row %d: probability 0", vocab, i)
			var before, total float64
			for j, l := range logits[i] {
				p := math.Exp(float64(l))
				if j < int(id) {
					before += p
				}
				total += p
			}
			p := math.Exp(float64(logits[i][id]))
			require.LessOrEqual(t, before/total, float64(u[i])+2e-6, "row %d", i)
			require.Greater(t, (before+p)/total, float64(u[i])-2e-6, "row %d", i)
			require.InDelta(t, math.Log(p/total), lps[i], 1e-5)
		}
	}
	// The likeliest, the lowest of equals, in a vocabulary with illegal ids.
	tokens, _ := drawFrom(t, [][]float32{{none, 1, 3, 3, none}, {2, 2, 2, 2, 2}, {none, none, none, none, -5}}, []float32{0, lastDraw, 0.5}, true)
	require.Equal(t, []int32{2, 0, 4}, tokens)
	// Logits that are no numbers stay inside the vocabulary.
	nan := float32(math.NaN())
	tokens, _ = drawFrom(t, [][]float32{{nan, nan, nan}, {nan, 1, 2}}, []float32{0, lastDraw}, false)
	for _, id := range tokens {
		require.GreaterOrEqual(t, id, int32(0))
		require.Less(t, id, int32(3))
	}
}

func TestGenerateRefusesBadInput(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	good := func() GenerateInput {
		return GenerateInput{Prompts: [][]int32{{1}, {2}}, Uniforms: uniforms(1, 2, 8), Temperature: 1}
	}
	for name, spoil := range map[string]func(*GenerateInput){
		"long prompt":   func(in *GenerateInput) { in.Prompts[0] = make([]int32, 7) },
		"empty prompt":  func(in *GenerateInput) { in.Prompts[0] = nil },
		"id":            func(in *GenerateInput) { in.Prompts[0][0] = 37 },
		"negative id":   func(in *GenerateInput) { in.Prompts[0][0] = -1 },
		"uniform of 1":  func(in *GenerateInput) { in.Uniforms[0][0] = 1 },
		"few uniforms":  func(in *GenerateInput) { in.Uniforms[0] = in.Uniforms[0][:7] },
		"no uniforms":   func(in *GenerateInput) { in.Uniforms = nil },
		"alive":         func(in *GenerateInput) { in.Alive = []bool{true} },
		"temperature":   func(in *GenerateInput) { in.Temperature = -1 },
		"too many ends": func(in *GenerateInput) { in.Stop = make([]int32, MaxStops+1) },
	} {
		in := good()
		spoil(&in)
		_, err := p.Sampler.Generate(bg, s, in)
		require.ErrorIs(t, err, ErrInput, name)
	}
	done, cancel := context.WithCancel(bg)
	cancel()
	_, err := p.Sampler.Generate(done, s, good())
	require.ErrorIs(t, err, context.Canceled)
	out, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: [][]int32{nil}, Alive: []bool{false}})
	require.NoError(t, err)
	require.Empty(t, out.Tokens[0])
	s2, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	s2.Free()
	s2.Free()
	_, err = p.Sampler.Generate(bg, s2, good())
	require.ErrorIs(t, err, ErrFreed)
}

func TestProgramsAreSharedAndHashed(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	h, err := p.Hashes()
	require.NoError(t, err)
	require.Len(t, h, 8)
	seen := map[string]bool{}
	for name, x := range h {
		require.Len(t, x, 64, name)
		seen[x] = true
	}
	require.Len(t, seen, 8)
	var compiled []string
	require.NoError(t, p.Compile(bg, func(name string) { compiled = append(compiled, name) }))
	require.Equal(t, []string{"apply", "backward", "decode", "fill", "fingerprint", "forward", "prefill", "square"}, compiled)

	sh := p.Shapes()
	sh.PromptTokens = 5
	q, err := testDevice(t).Programs(tiny(), nil, sh)
	require.NoError(t, err)
	defer q.Free()
	h2, err := q.Hashes()
	require.NoError(t, err)
	for name := range h {
		if name == "prefill" || name == "decode" {
			require.NotEqual(t, h[name], h2[name], name)
		} else {
			require.Equal(t, h[name], h2[name], name)
			require.Same(t, p.progs[kind(name)][0], q.progs[kind(name)][0])
		}
	}
	out, err := q.Sampler.Generate(bg, s, GenerateInput{Prompts: [][]int32{{1, 2}}}) // another Programs' state
	require.NoError(t, err)
	require.Len(t, out.Tokens[0], 8)

	// Lowered again, before compiling, the text is the same.
	fresh := &program{name: "forward", device: p.device, build: p.Scorer.buildForward}
	x, err := fresh.digest()
	require.NoError(t, err)
	require.Equal(t, h["forward"], x)
	require.NoError(t, fresh.compile())
	x, err = fresh.digest()
	require.NoError(t, err)
	require.Equal(t, h["forward"], x)

	for name, sh := range map[string]Shapes{
		"dtype": {ComputeDtype: "float64"}, "rows": {MicroBatch: -1}, "sequence": {MicroBatch: 1, Sequence: 1},
		"prompt": {GenerateRows: 1, MaxNewTokens: 1},
	} {
		_, err := testDevice(t).Programs(tiny(), nil, sh)
		require.ErrorIs(t, err, ErrInput, name)
	}
	_, err = testDevice(t).Programs(tiny(), []bool{true}, Shapes{})
	require.ErrorIs(t, err, ErrInput)
	_, err = testDevice(t).Programs(tiny(), make([]bool, 37), Shapes{})
	require.ErrorContains(t, err, "no id is legal")
}

func TestLogProbsRefusesRaggedRows(t *testing.T) {
	f := tinyParams(tiny()).source()
	_, _, err := LogProbs(bg, testDevice(t), f, [][]int32{{1, 2}, {1}})
	require.ErrorIs(t, err, ErrInput)
	lp, ent, err := LogProbs(bg, testDevice(t), f, [][]int32{{1}})
	require.NoError(t, err)
	require.Empty(t, lp[0])
	require.Len(t, ent[0], 1)
	sampled, err := GreedyOrSample(bg, testDevice(t), f, [][]int32{{1, 2}, {1}}, GenerateOptions{MaxNewTokens: 3, Temperature: 1})
	require.NoError(t, err)
	require.Len(t, sampled[1], 3)
}

// Chunks change no bit: not where they end, not how many there are, not where rows end.
func TestGenerateInChunks(t *testing.T) {
	for _, dtype := range []string{"float32", "bfloat16"} {
		t.Run(dtype, func(t *testing.T) {
			chunks := []int{1, 3, 4, 7, 8, 100}
			if dtype != "float32" {
				chunks = []int{3} // each is compiled
			}
			sh := Shapes{GenerateRows: 4, PromptTokens: 6, MaxNewTokens: 8, ComputeDtype: dtype}
			p, err := testDevice(t).Programs(tiny(), nil, sh)
			require.NoError(t, err)
			defer p.Free()
			s, err := p.NewState(tinyParams(tiny()))
			require.NoError(t, err)
			defer s.Free()
			in := GenerateInput{
				Prompts: [][]int32{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10}, {11, 12}, {13}, {14, 15}}, Uniforms: uniforms(1, 6, 8), Temperature: 0.9,
				Alive: []bool{true, true, true, false, true, true},
			}
			whole, err := p.Sampler.Generate(bg, s, in)
			require.NoError(t, err)
			stopped := in
			stopped.Stop = []int32{whole.Tokens[0][2], whole.Tokens[2][3], whole.Tokens[4][0], whole.Tokens[5][6]}
			early, err := p.Sampler.Generate(bg, s, stopped)
			require.NoError(t, err)
			require.Less(t, len(early.Tokens[0]), 8)
			greedy, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: in.Prompts[:2]})
			require.NoError(t, err)
			for _, k := range chunks {
				sh.ChunkTokens = k
				chunked, err := testDevice(t).Programs(tiny(), nil, sh)
				require.NoError(t, err)
				got, err := chunked.Sampler.Generate(bg, s, in)
				require.NoError(t, err)
				require.Equal(t, whole, got, "chunks of %d", k)
				got, err = chunked.Sampler.Generate(bg, s, stopped)
				require.NoError(t, err)
				require.Equal(t, early, got, "chunks of %d, with stop ids", k)
				got, err = chunked.Sampler.Generate(bg, s, GenerateInput{Prompts: in.Prompts[:2]})
				require.NoError(t, err)
				require.Equal(t, greedy, got, "chunks of %d, greedy", k)
				chunked.Free()
			}
		})
	}
}

// A generation in chunks ends between two of them when its context does, and begins no
// chunk in which no row is alive.
func TestGenerateBetweenChunks(t *testing.T) {
	d := testDevice(t)
	p, err := d.Programs(tiny(), nil, Shapes{GenerateRows: 2, PromptTokens: 4, MaxNewTokens: 8, ChunkTokens: 2})
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	ctx, cancel := context.WithCancel(bg)
	chunks := 0
	d.Before = func(program string) error {
		if program == string(kindDecodeChunk) {
			if chunks++; chunks == 2 {
				cancel()
			}
		}
		return nil
	}
	defer func() { d.Before = nil }()
	in := GenerateInput{Prompts: [][]int32{{1}, {2, 3}}, Uniforms: uniforms(1, 2, 8), Temperature: 1}
	_, err = p.Sampler.Generate(ctx, s, in)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, chunks)
	out, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	require.Equal(t, 2+4, chunks)
	in.Stop = []int32{out.Tokens[0][0], out.Tokens[1][2]}
	_, err = p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	require.LessOrEqual(t, chunks, 2+4+2)
}

// A chunk writes its keys and values in the memory of those before it: nothing of their size is
// needed besides.
func TestChunksWriteInPlace(t *testing.T) {
	sh := Shapes{GenerateRows: 8, PromptTokens: 500, MaxNewTokens: 12, ChunkTokens: 4}
	for _, dtype := range []string{"float32", "bfloat16"} {
		sh.ComputeDtype = dtype
		p, err := testDevice(t).Programs(tiny(), nil, sh)
		require.NoError(t, err)
		defer p.Free()
		memory, err := p.Memory()
		require.NoError(t, err)
		c, width := tiny(), int64(p.net.dtype.Size())
		caches := int64(2*c.Layers*8*c.KVHeads*(500+12)*c.HeadDim) * width
		require.Equal(t, caches, memory["decode-chunk"].Aliases, dtype)
		if dtype == "float32" { // on a CPU others are widened to be multiplied
			require.Less(t, memory["decode-chunk"].Temporary, caches/2)
		}
	}
}
