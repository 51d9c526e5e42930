package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// qwen is Qwen2.5-0.5B, whose 494,032,768 parameters are published.
var qwen = cost.Network{
	Layers: 24, HiddenSize: 896, IntermediateSize: 4864, Heads: 14, KVHeads: 2, VocabSize: 151936, Tied: true,
}

// A starter of the first vocabulary has a little less than a million parameters.
func TestStarterParameters(t *testing.T) {
	starter := spec.Default(spec.FromStarter).Policy.Starter.Shape(512).Parameters()
	require.Greater(t, starter, int64(800_000))
	require.Less(t, starter, int64(1_000_000))
}

func TestDerive(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"},"iterations":45,"rollout":{"groups":9,"turns":2,"prompt_tokens":[64,128]},
		"update":{"micro_batch":12},"selection":{"keep":0.5},"evaluation":{"samples":2}}`)
	d := spec.Derive(train, train.Policy.Starter.Shape(512))
	require.Equal(t, 144, d.Trajectories)
	require.Equal(t, 4, d.KeptGroups)
	require.Equal(t, 64, d.RowsKept)
	require.Equal(t, 6, d.MicroBatches)
	require.Equal(t, 152, d.Sequence)
	require.EqualValues(t, 144*2*24, d.SampledTokens)
	require.EqualValues(t, 144*(64+128), d.ContextTokens)
	require.EqualValues(t, 6*12*152, d.UpdateTokens)
	require.Equal(t, 128, d.EvaluationRows)
	require.Equal(t, 5, d.Storage.Snapshots)
	require.Equal(t, 6, d.Storage.Evaluations)
	require.Equal(t, 12*d.Parameters, d.Storage.Snapshot)
	require.EqualValues(t, 16*6*12*152, d.Storage.Batch)
	require.EqualValues(t, 64*192*4*2*(32+64)*4, d.Memory.KVCache) // in multiples of 64
	require.Greater(t, d.Memory.Peak, d.Memory.Weights+d.Memory.Moments+d.Memory.Gradients)
	require.Greater(t, d.Storage.Run, 45*d.Storage.Batch+5*d.Storage.Snapshot)
	require.Equal(t, `trajectories an iteration      144
rows learned from              64         4 groups in 6 micro-batches
width of a row                 152        tokens
tokens sampled an iteration    6,912      at most
tokens prefilled an iteration  27,648     padding included
tokens scored, and trained on  10,944     padding included
`, firstLines(d.String(), 6))
}

func TestDeriveWithACritic(t *testing.T) {
	shape := func(document string) spec.Derived {
		return spec.Derive(decode(t, document), qwen)
	}
	plain := shape(`{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[64]}}`)
	with := shape(`{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[64]},"credit":{"algorithm":"gae"},"update":{"kl_in":"loss"}}`)
	require.Zero(t, plain.Memory.Critic+plain.Memory.Reference)
	require.Equal(t, 12*(with.Parameters+int64(qwen.HiddenSize)), with.Memory.Critic, "its head is a vector")
	require.Equal(t, 4*with.Parameters, with.Memory.Reference)
	require.Equal(t, plain.Memory.Peak+with.Memory.Critic+with.Memory.Reference, with.Memory.Peak)
	require.Equal(t, 2*plain.Storage.Snapshot, with.Storage.Snapshot)
	require.Contains(t, with.String(), "device: critic")
	require.NotContains(t, plain.String(), "device: reference")
}

// What is published of a version has the bytes that the sampler reads of it: float32, matrices in
// bfloat16, or adapters alone.
func TestDerivePublished(t *testing.T) {
	of := func(workers int, policy string) spec.Derived {
		return spec.Derive(decode(t, fmt.Sprintf(`{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"%s},
			"rollout":{"turns":1,"prompt_tokens":[64],"pass_rows":8,"block_rows":16,"workers":%d}}`, policy, workers)), qwen)
	}
	whole, half, adapters := of(2, `,"compute_dtype":"float32"`), of(2, `,"compute_dtype":"bfloat16"`), of(2, `,"lora":{"rank":8}`)
	require.Equal(t, 4*whole.Parameters, whole.Storage.Published)
	require.Equal(t, 4*half.Parameters-half.Memory.ComputeCopy, half.Storage.Published)
	require.Equal(t, 4*adapters.Adapters, adapters.Storage.Published)
	require.Contains(t, whole.String(), "S3: a published version")
	alone := of(1, `,"compute_dtype":"float32"`)
	require.Zero(t, alone.Storage.Published)
	require.NotContains(t, alone.String(), "published")
	require.Less(t, alone.Storage.Run, whole.Storage.Run)
}

func firstLines(s string, n int) string {
	for i := range s {
		if s[i] == '\n' {
			if n--; n == 0 {
				return s[:i+1]
			}
		}
	}
	return s
}

func TestDeriveWithoutContexts(t *testing.T) {
	d := spec.Derive(decode(t, `{"environment":{"name":"bandit"},"evaluation":{"every":0}}`), qwen)
	require.False(t, d.ContextsKnown)
	require.Zero(t, d.Memory.Peak)
	require.Zero(t, d.Storage.Run)
	require.Zero(t, d.EvaluationRows)
	require.Contains(t, d.String(), "unknown: the environment gives the context widths")
	require.NotContains(t, d.String(), "evaluation")
}

func TestDeriveFitsOnACard(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"},
		"rollout":{"prompt_tokens":[512,1024,1536,2048,2560]}}`)
	d := spec.Derive(train, qwen)
	require.Greater(t, d.Memory.Peak, int64(9<<30))
	require.Less(t, d.Memory.Peak, int64(40<<30))
	require.Contains(t, d.String(), "bfloat16")
}

func TestDeriveDoesNotOverflow(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"},"iterations":1000000,"snapshot":{"every":1},
		"rollout":{"groups":64,"group_size":1024,"turns":1,"max_new_tokens":32768,"prompt_tokens":[131072]},"update":{"micro_batch":1024}}`)
	d := spec.Derive(train, qwen)
	require.Positive(t, d.Storage.Run)
	require.Positive(t, d.Memory.Peak)
}

// A device is too small if it is not the one that the run is made for, or else for what the
// run needs.
func TestTooSmall(t *testing.T) {
	for name, test := range map[string]struct {
		limits string
		memory int64
		want   string
	}{
		"not known":           {`"device_gb":80`, 0, ""},
		"a card of 80 GB":     {`"device_gb":80`, 85_520_809_984, ""},
		"a card of 24 GB":     {`"device_gb":80`, 25_757_220_864, "the run is made for a device of 80 GB (limits.device_gb), this one has 25.8 GB"},
		"any, it has room":    {``, 25_757_220_864, ""},
		"any, it has no room": {``, 8_000_000_000, "the run needs 9.7 GB, this device has 8.0 GB"},
		"made for that one":   {`"device_gb":8`, 8_000_000_000, ""},
	} {
		train := decode(t, `{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[64]},"limits":{`+test.limits+`}}`)
		require.Equal(t, test.want, spec.TooSmall(train, qwen, 1, test.memory), name)
	}
	// Of two devices each has less.
	train := decode(t, `{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[64]},"limits":{}}`)
	require.Empty(t, spec.TooSmall(train, qwen, 2, 8_000_000_000))
	require.Equal(t, "the run needs 7.7 GB, this device has 4.0 GB", spec.TooSmall(train, qwen, 2, 4_000_000_000))
}

// The advice names what takes the memory at its peak.
func TestMemoryAdvice(t *testing.T) {
	advice := func(document string, m cost.Network) string {
		train := decode(t, document)
		return spec.Derive(train, m).MemoryAdvice(train)
	}
	require.Equal(t, "the spec is estimated to need 9.0 GiB at its peak: weights and moments 5.5 GiB, gradients 1.8 GiB, "+
		"activations 1.6 GiB, KV cache 192.0 MiB; most of it is the model's: take a smaller one, or a device with more memory",
		advice(`{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[64]}}`, qwen))
	require.Contains(t, advice(`{"environment":{"name":"bandit"},"rollout":{"turns":1,"groups":64,"group_size":64,"pass_rows":2048,"prompt_tokens":[512]}}`, qwen),
		"; lower rollout.pass_rows (2048)")
	require.Contains(t, advice(`{"environment":{"name":"bandit"},"update":{"micro_batch":64},"rollout":{"turns":1,"prompt_tokens":[1024]}}`, qwen),
		"; lower update.micro_batch (64)")
	require.Equal(t, "reprise validate shows what the spec needs the device's memory for",
		advice(`{"environment":{"name":"bandit"}}`, cost.Network{}))
}

// The host holds the largest tensor, or an iteration's tables.
func TestHostBytes(t *testing.T) {
	d := spec.Derive(decode(t, `{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[64]}}`), qwen)
	require.Equal(t, int64(4*qwen.VocabSize*qwen.HiddenSize), d.HostBytes())
	small := qwen
	small.Layers, small.VocabSize = 1, 16
	d = spec.Derive(decode(t, `{"environment":{"name":"bandit"},"rollout":{"turns":10,"groups":256,"group_size":64,"prompt_tokens":[64,128,256,512,1024,2048,4096,4096,4096,4096]}}`), small)
	require.Equal(t, 4*d.Storage.Iteration, d.HostBytes())
}
