package model

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// benchConfig is a policy of the starter's size, about 0.8 M parameters.
func benchConfig() Config {
	return Config{VocabSize: 512, HiddenSize: 128, IntermediateSize: 320, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32,
		MaxPositions: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05}
}

// wideConfig is a policy of 42 M parameters.
func wideConfig() Config {
	return Config{VocabSize: 8192, HiddenSize: 512, IntermediateSize: 1536, Layers: 12, Heads: 8, KVHeads: 4, HeadDim: 64,
		MaxPositions: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05}
}

// batchOf makes a micro-batch with a loss on the second half of each row.
func batchOf(ids [][]int32, advantage float32) batch.MicroBatch {
	b := batch.MicroBatch{IDs: ids}
	for _, row := range ids {
		mask, old, adv := make([]bool, len(row)), make([]float32, len(row)), make([]float32, len(row))
		for t := len(row) / 2; t < len(row); t++ {
			mask[t], old[t], adv[t] = true, -3, advantage
		}
		b.Lengths = append(b.Lengths, int32(len(row)))
		b.Mask = append(b.Mask, mask)
		b.Columns[batch.OldLogProbs], b.Columns[batch.Advantages] = append(b.Columns[batch.OldLogProbs], old), append(b.Columns[batch.Advantages], adv)
	}
	return b
}

func benchPrograms(b *testing.B, keep bool) (*Programs, *State) {
	p, err := testDevice(b).Programs(benchConfig(), nil, Shapes{GenerateRows: 64, PromptTokens: 128, MaxNewTokens: 64, MicroBatch: 16, Sequence: 128, Keep: keep})
	require.NoError(b, err)
	s, err := p.NewState(NewParams(benchConfig(), draw.Address{Purpose: draw.Weights}))
	require.NoError(b, err)
	for k, prog := range p.progs {
		start := time.Now()
		require.NoError(b, prog.compile())
		b.Logf("compile %s: %v", k, time.Since(start))
	}
	b.ResetTimer()
	return p, s
}

// eachRecompute runs a benchmark with layers computed again, and with activations kept.
func eachRecompute(b *testing.B, of func(b *testing.B, keep bool)) {
	b.Run("always", func(b *testing.B) { of(b, false) })
	b.Run("never", func(b *testing.B) { of(b, true) })
}

func BenchmarkScore(b *testing.B) {
	eachRecompute(b, func(b *testing.B, keep bool) {
		p, s := benchPrograms(b, keep)
		batch := batchOf(randomRows(1, benchConfig(), 16, 128), 1)
		for b.Loop() {
			_, _, err := p.Scorer.Score(bg, s, batch, 1)
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.N*16*128)/b.Elapsed().Seconds(), "tokens/s")
	})
}

func BenchmarkUpdate(b *testing.B) {
	eachRecompute(b, func(b *testing.B, keep bool) {
		p, s := benchPrograms(b, keep)
		var batches []batch.MicroBatch
		for i := range 4 {
			batches = append(batches, batchOf(randomRows(uint64(i), benchConfig(), 16, 128), 1))
		}
		begin := processorTime(b)
		for b.Loop() {
			var err error
			s, _, err = p.Learner.Update(bg, s, batches, testSettings())
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.N*4*16*128)/b.Elapsed().Seconds(), "tokens/s")
		b.ReportMetric((processorTime(b)-begin).Seconds()/float64(b.N), "processor-s/op")
	})
}

// processorTime is what all threads of the process have computed.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkUpdateAtSize is an update of 42 M parameters on few tokens, so that what an update
// costs whatever its batch is seen.
func BenchmarkUpdateAtSize(b *testing.B) { eachRecompute(b, updateAtSize) }

func updateAtSize(b *testing.B, keep bool) {
	c := wideConfig()
	p, err := testDevice(b).Programs(c, nil, Shapes{MicroBatch: 2, Sequence: 64, Keep: keep})
	require.NoError(b, err)
	defer p.Free()
	start := time.Now()
	require.NoError(b, p.Compile(bg, nil))
	b.Logf("compile: %v", time.Since(start))
	s, err := p.NewState(NewParams(c, draw.Address{Purpose: draw.Weights}))
	require.NoError(b, err)
	defer func() { s.Free() }()
	batches := []batch.MicroBatch{batchOf(randomRows(1, c, 2, 64), 1), batchOf(randomRows(2, c, 2, 64), -1)}
	begin := processorTime(b)
	for b.Loop() {
		s, _, err = p.Learner.Update(bg, s, batches, testSettings())
		require.NoError(b, err)
	}
	b.ReportMetric((processorTime(b)-begin).Seconds()/float64(b.N), "processor-s/op")
}

func BenchmarkCriticUpdate(b *testing.B) {
	c := benchConfig().Critic()
	p, err := testDevice(b).Programs(c, nil, Shapes{MicroBatch: 16, Sequence: 128})
	require.NoError(b, err)
	s, err := p.NewState(NewCritic(NewParams(benchConfig(), draw.Address{Purpose: draw.Weights})))
	require.NoError(b, err)
	defer func() { s.Free() }()
	var batches []batch.MicroBatch
	for i := range 4 {
		x := batchOf(randomRows(uint64(i), c, 16, 128), 1)
		x.Columns[batch.Returns], x.Columns[batch.OldValues] = x.Columns[batch.Advantages], x.Columns[batch.OldLogProbs]
		batches = append(batches, x)
	}
	k := CriticSettings{Optimizer: testSettings().Optimizer, Clip: 0.5}
	start := time.Now()
	require.NoError(b, p.Compile(bg, nil))
	b.Logf("compile: %v", time.Since(start))
	for b.Loop() {
		var err error
		s, _, err = p.Learner.CriticUpdate(bg, s, batches, k)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.N*4*16*128)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkGenerate(b *testing.B) {
	p, s := benchPrograms(b, false)
	in := GenerateInput{Prompts: randomRows(1, benchConfig(), 64, 128), Temperature: 1, IgnoreStop: true}
	for i := range in.Prompts {
		u := make([]float32, 64)
		draw.Address{Purpose: draw.Sample, Member: int64(i)}.Uniforms(u)
		in.Uniforms = append(in.Uniforms, u)
	}
	for b.Loop() {
		_, err := p.Sampler.Generate(bg, s, in)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.N*64*64)/b.Elapsed().Seconds(), "new-tokens/s")
}

// BenchmarkFingerprint reports the bytes of the state that are read.
func BenchmarkFingerprint(b *testing.B) {
	for name, c := range map[string]Config{"starter": benchConfig(), "42M": wideConfig()} {
		b.Run(name, func(b *testing.B) {
			p, err := testDevice(b).Programs(c, nil, Shapes{})
			require.NoError(b, err)
			defer p.Free()
			s, err := p.NewState(NewParams(c, draw.Address{Purpose: draw.Weights}))
			require.NoError(b, err)
			defer s.Free()
			mark(b, s)
			b.SetBytes(12 * c.Parameters())
			for b.Loop() {
				mark(b, s)
			}
		})
	}
}

func testSettings() Settings {
	return Settings{
		Optimizer: Optimizer{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.999, AdamEpsilon: 1e-8, WeightDecay: 0.01, MaxGradNorm: 1},
		ClipLow:   0.2, ClipHigh: 0.28, EntropyCoefficient: 0.01, Temperature: 1,
	}
}
