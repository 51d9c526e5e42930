package validate

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/xla/executable"
	"github.com/reprise-rl/reprise/workflows/spec"
)

var large = flag.Bool("large", false, "compare the estimates with XLA's statistics at 100 M parameters and for long rows too")

// quickCode are XLA flags with which LLVM does not improve the code. Unlike model.QuickCompile they leave
// the program before that as it is, and with it what memory it needs.
const quickCode = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"

// onCPU are the estimates of a run's programs on a CPU.
func onCPU(t spec.Train, shape cost.Network) []cost.Program {
	job := t.Job(shape)
	job.CPU = true
	return job.Programs(1)
}

// What is estimated of the device's memory is what XLA's statistics of the compiled programs
// say, within 10 %: of each program, and of the most that is held at once. Nothing is computed,
// so it takes processor time and little memory.
func TestMemoryIsWhatXLASays(t *testing.T) {
	plugintest.Needs(t)
	device, err := model.OpenDevice(model.DeviceOptions{XLAFlags: quickCode})
	require.NoError(t, err)
	defer device.Close()
	of := func(hidden, inner, layers, heads, keys int) model.Config {
		return model.Config{
			VocabSize: 8192, HiddenSize: hidden, IntermediateSize: inner, Layers: layers, Heads: heads, KVHeads: keys, HeadDim: 64,
			MaxPositions: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05,
		}
	}
	small, big := of(512, 1536, 12, 8, 4), of(768, 2048, 14, 12, 4)
	for _, c := range []struct {
		name   string
		config model.Config
		// prompt, fresh and chunk are tokens, micro the rows of a micro-batch.
		prompt, fresh, chunk, micro int
		dtype, credit, recompute    string
		large                       bool
		rank                        int // of adapters; 0: all weights are trained
	}{
		{"42 M", small, 128, 64, 16, 4, "float32", "gae", "always", false, 0},
		{"42 M, kept", small, 128, 64, 16, 4, "float32", "gae", "never", true, 0},
		{"42 M, long rows", small, 512, 512, 0, 2, "float32", "grpo", "always", true, 0},
		{"42 M, long rows, kept", small, 512, 512, 0, 2, "float32", "grpo", "never", true, 0},
		{"42 M, bfloat16", small, 128, 64, 0, 4, "bfloat16", "grpo", "always", true, 0},
		{"42 M, bfloat16, kept", small, 128, 64, 0, 4, "bfloat16", "grpo", "never", false, 0},
		{"42 M, adapters", small, 128, 64, 16, 4, "float32", "gae", "always", true, 16},
		{"42 M, adapters, kept, in blocks and shards", small, 128, 64, 16, 4, "float32", "gae", "never", false, 16},
		{"42 M, adapters of rank 64, long rows", small, 512, 512, 0, 2, "float32", "grpo", "always", true, 64},
		{"42 M, adapters of rank 64, long rows, kept", small, 512, 512, 0, 2, "float32", "grpo", "never", true, 64},
		{"42 M, adapters, bfloat16", small, 128, 64, 0, 4, "bfloat16", "grpo", "always", true, 16},
		{"42 M, adapters, bfloat16, kept", small, 128, 64, 0, 4, "bfloat16", "grpo", "never", true, 16},
		{"100 M", big, 256, 128, 32, 4, "float32", "grpo", "always", true, 0},
		{"100 M, kept", big, 256, 128, 32, 4, "float32", "grpo", "never", true, 0},
		{"100 M, long rows", big, 896, 128, 0, 2, "float32", "gae", "always", true, 0},
		{"100 M, long rows, kept", big, 896, 128, 0, 2, "float32", "gae", "never", true, 0},
		{"100 M, bfloat16", big, 256, 128, 32, 4, "bfloat16", "grpo", "always", true, 0},
		{"100 M, bfloat16, kept", big, 256, 128, 32, 4, "bfloat16", "grpo", "never", true, 0},
	} {
		if c.large && !*large {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			blocks := strings.HasSuffix(c.name, "in blocks and shards")
			document := fmt.Sprintf(`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab","compute_dtype":%q%s},
				"rollout":{"groups":4,"group_size":4,"turns":1,"prompt_tokens":[%d],"max_new_tokens":%d%s%s},"update":{"micro_batch":%d,"recompute":%q%s},
				"credit":{"algorithm":%q},"evaluation":{"every":0}}`,
				c.dtype, map[bool]string{true: fmt.Sprintf(`,"lora":{"rank":%d}`, c.rank)}[c.rank > 0], c.prompt, c.fresh, map[bool]string{true: fmt.Sprintf(`,"chunk_tokens":%d`, c.chunk)}[c.chunk > 0],
				map[bool]string{true: `,"pass_rows":16,"block_rows":32`}[blocks], c.micro, c.recompute, map[bool]string{true: `,"shards":2`}[blocks], c.credit)
			train, err := spec.Decode([]byte(document), run.Known())
			require.NoError(t, err)
			if c.rank > 0 {
				c.config.LoRA = model.LoRA{Rank: c.rank, Alpha: 64, Targets: model.AllLinear}
			}
			shapes := model.Shapes{
				GenerateRows: 16, BlockRows: train.Rollout.BlockRows, PromptTokens: c.prompt, MaxNewTokens: c.fresh, ChunkTokens: c.chunk,
				MicroBatch: c.micro, Sequence: c.prompt + c.fresh, ComputeDtype: c.dtype, Keep: train.Update.Keeps(), Sharded: blocks,
			}
			said := statistics(t, device, c.config, shapes)
			if train.Credit.Critic() {
				critic := model.Shapes{MicroBatch: shapes.MicroBatch, Sequence: shapes.Sequence, ComputeDtype: c.dtype, Keep: shapes.Keep, Sharded: blocks}
				maps.Copy(said, statistics(t, device, c.config.Critic(), critic))
			}
			shape := run.ShapeOf(c.config)
			t.Logf("%.1f M parameters", float64(shape.Parameters())/1e6)
			programs := onCPU(train, shape)
			var peak, estimated int64
			for _, p := range programs {
				m, ok := said[p.Name]
				require.True(t, ok, p.Name)
				peak, estimated = max(peak, m.Bytes()+p.Beside), max(estimated, p.Peak())
				t.Logf("%-18s estimated %7.1f MB, %7.1f temporary; XLA says %7.1f, %7.1f temporary", p.Name,
					float64(p.Bytes())/1e6, float64(p.Temporary)/1e6, float64(m.Bytes())/1e6, float64(m.Temporary)/1e6)
				within(t, p.Name, p.Bytes(), m.Bytes())
				within(t, p.Name+"'s inputs", p.Inputs, m.Inputs)
				within(t, p.Name+"'s outputs", p.Outputs, m.Outputs)
				within(t, p.Name+"'s aliases", p.Aliases, m.Aliases)
			}
			t.Logf("peak: estimated %.1f MB; by XLA %.1f", float64(estimated)/1e6, float64(peak)/1e6)
			within(t, "peak", estimated, peak)
			if c.dtype == "float32" {
				require.Equal(t, estimated, spec.Derive(train, shape).Memory.Peak, "as on a GPU")
			}
		})
	}
}

// The programs that continue kept keys and values are estimated as well, and what a rollout keeps
// is held while they and decoding run.
func TestMemoryOfKeptValues(t *testing.T) {
	plugintest.Needs(t)
	device, err := model.OpenDevice(model.DeviceOptions{XLAFlags: quickCode})
	require.NoError(t, err)
	defer device.Close()
	c := model.Config{
		VocabSize: 8192, HiddenSize: 512, IntermediateSize: 1536, Layers: 4, Heads: 8, KVHeads: 4, HeadDim: 64,
		MaxPositions: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05,
	}
	of := func(keep string) spec.Train {
		train, err := spec.Decode([]byte(`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab","compute_dtype":"float32"},
			"rollout":{"groups":8,"group_size":4,"pass_rows":16,"turns":2,"prompt_tokens":[96,256],"max_new_tokens":64`+keep+`},
			"update":{"micro_batch":4,"recompute":"never"},"evaluation":{"every":0}}`), run.Known())
		require.NoError(t, err)
		return train
	}
	train, shape := of(`,"keep_values":true`), run.ShapeOf(c)
	said := statistics(t, device, c, model.Shapes{
		GenerateRows: 16, PromptTokens: 256, MaxNewTokens: 64, Exact: true,
		Append: model.AppendShapes{Widest: 256, Before: 96, Tokens: train.Rollout.AppendTokens(2)},
	})
	kept := int64(2 * 4 * 4 * 32 * 256 * 4 * 64) // keys and values in float32: layers, rows, places, heads
	found := 0
	for _, p := range onCPU(train, shape) {
		m, ok := said[p.Name]
		if p.Name != "append" && p.Name != "append-room" {
			continue
		}
		found++
		require.True(t, ok, p.Name)
		t.Logf("%-12s estimated %7.1f MB, %7.1f temporary; XLA says %7.1f, %7.1f temporary", p.Name,
			float64(p.Bytes())/1e6, float64(p.Temporary)/1e6, float64(m.Bytes())/1e6, float64(m.Temporary)/1e6)
		within(t, p.Name, p.Bytes(), m.Bytes())
		within(t, p.Name+"'s inputs", p.Inputs, m.Inputs)
		within(t, p.Name+"'s outputs", p.Outputs, m.Outputs)
		within(t, p.Name+"'s aliases", p.Aliases, m.Aliases)
	}
	require.Equal(t, 2, found)
	beside := func(t spec.Train) int64 {
		for _, p := range onCPU(t, shape) {
			if p.Name == "decode" {
				return p.Beside
			}
		}
		return 0
	}
	require.Equal(t, kept, spec.Derive(train, shape).Memory.KeptValues)
	require.Equal(t, beside(of(""))+kept/2, beside(train), "half of the rows are in the pass")
}

// statistics compiles the programs of a configuration.
func statistics(t *testing.T, d *model.Device, c model.Config, shapes model.Shapes) map[string]executable.Memory {
	t.Helper()
	p, err := d.Programs(c, nil, shapes)
	require.NoError(t, err)
	defer p.Free()
	m, err := p.Memory()
	require.NoError(t, err)
	return m
}

// within compares two numbers of bytes: they differ by at most 10 %, or by a MiB.
func within(t *testing.T, what string, estimated, said int64) {
	t.Helper()
	assert.InDelta(t, float64(said), float64(estimated), max(0.1*float64(said), 1<<20), what)
}
