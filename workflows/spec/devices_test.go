package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// manyDevices are specs of what differs between devices: shards, a critic, a reference, adapters, kept
// values, blocks, pieces.
func manyDevices(t *testing.T) map[string]spec.Train {
	t.Helper()
	out := map[string]spec.Train{}
	for _, policy := range []string{"", `,"lora":{}`, `,"compute_dtype":"float32"`} {
		for _, update := range []string{"", `,"shards":8`, `,"shards":3,"minibatch":32`, `,"kl_in":"loss","shards":4`} {
			for _, rollout := range []string{`"pass_rows":16`, `"pass_rows":16,"keep_values":true`, `"pass_rows":8,"block_rows":32`} {
				for _, more := range []string{"", `,"credit":{"algorithm":"gae"}`, `,"limits":{"generate_rows":64,"score_rows":16}`} {
					document := fmt.Sprintf(`{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"%s},
						"rollout":{"groups":16,"group_size":10,"turns":2,"prompt_tokens":[256,384],%s},"update":{"micro_batch":4%s}%s}`, policy, rollout, update, more)
					out[policy+" "+update+" "+rollout+" "+more] = decode(t, document)
				}
			}
		}
	}
	return out
}

// One device has today's figures; more never need more of a device.
func TestDevicesHoldNoMoreThanOne(t *testing.T) {
	for name, train := range manyDevices(t) {
		d := spec.Derive(train, qwen)
		one := spec.DevicesOf(train, qwen, 1)
		require.Equal(t, cost.Held{Peak: d.Memory.Peak, At: d.Memory.PeakAt}, one.First, name)
		require.Zero(t, one.Others, name)
		require.Zero(t, one.Copied, name)
		require.Empty(t, one.Warnings, name)
		for _, dealt := range []cost.Dealt{one.Rollout, one.Score} {
			require.Equal(t, cost.Dealt{Parts: dealt.Parts, Rounds: dealt.Parts, Busy: 1, Gain: 1}, dealt, name)
		}
		require.InDelta(t, 1, one.Update.Gain, 0, name)
		for _, n := range []int{2, 3, 4, 8, 64} {
			many := spec.DevicesOf(train, qwen, n)
			require.LessOrEqual(t, many.First.Peak, one.First.Peak, "%s on %d", name, n)
			require.LessOrEqual(t, many.Others.Peak, one.First.Peak, "%s on %d", name, n)
			require.Positive(t, many.Others.Peak, "%s on %d", name, n)
			for _, dealt := range []cost.Dealt{many.Rollout, many.Score, many.Update} {
				require.LessOrEqual(t, dealt.Gain, float64(n), "%s on %d", name, n)
				require.GreaterOrEqual(t, dealt.Gain, 1.0, "%s on %d", name, n)
			}
		}
	}
}

// A device of several holds what programs read, a gradient, and float32 weights and moments of the
// tensors that it owns: of Qwen2.5-0.5B on eight devices the first has the embedding, and the
// others share the layers.
func TestDevicesMemory(t *testing.T) {
	of := func(update string, n int) cost.Devices {
		return spec.DevicesOf(decode(t, `{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"},
			"rollout":{"groups":16,"group_size":8,"turns":1,"prompt_tokens":[256],"max_new_tokens":64,"pass_rows":8},"update":{"micro_batch":4`+update+`}}`), qwen, n)
	}
	one, whole, shards := of(`,"shards":8`, 1), of("", 8), of(`,"shards":8`, 8)
	require.Equal(t, "backward", one.First.At)
	require.Equal(t, "backward", shards.First.At)
	require.Equal(t, "backward", shards.Others.At)
	require.NotEqual(t, "backward", whole.Others.At)
	p, small := qwen.Parameters(), smallParameters(qwen)
	embedding := int64(qwen.VocabSize * qwen.HiddenSize)
	read := 2*(p-small) + 4*small
	alone := 12*p + 2*(p-small) + 4*p + 4*p // with a gradient and the total of the shards
	const mib = 1 << 20
	require.InDelta(t, alone-(read+3*4*embedding+4*p), one.First.Peak-shards.First.Peak, mib)
	require.InDelta(t, 3*4*float64(embedding-(p-embedding)/7), shards.First.Peak-shards.Others.Peak, 200*mib, "whole tensors, so not quite even")
	require.InDelta(t, 8*4*p-4*p+7*read, shards.Copied, mib, "a gradient from each to the owners of the rest, and the weights the other way")
}

// smallParameters is the number of weights of norms and biases.
func smallParameters(m cost.Network) int64 {
	width := int64(m.HiddenSize)
	keys := width / int64(m.Heads) * int64(m.KVHeads)
	return int64(m.Layers)*(2*width+width+2*keys) + width
}

// What is said of shards and devices is what dealing them one by one gives.
func TestDevicesDealShards(t *testing.T) {
	for _, batches := range []int{1, 3, 8, 9, 32} {
		for _, shards := range []int{1, 2, 4, 7, 8} {
			for _, devices := range []int{1, 2, 3, 4, 8} {
				train := decode(t, fmt.Sprintf(`{"environment":{"name":"bandit"},"rollout":{"groups":%d,"group_size":2,"turns":1,"prompt_tokens":[64]},
					"selection":{"method":"all"},"update":{"micro_batch":2,"shards":%d}}`, batches, shards))
				got := spec.DevicesOf(train, train.Policy.Starter.Shape(512), devices).Update
				has := make([]int, shards) // micro-batches
				for i := range batches {
					has[i%shards]++
				}
				rounds, longest, busy := 0, 0, map[int]bool{}
				for first := 0; first < shards; first += devices {
					most := 0
					for s := first; s < min(first+devices, shards); s++ {
						if most = max(most, has[s]); has[s] > 0 {
							busy[s%devices] = true
						}
					}
					if longest += most; most > 0 {
						rounds++
					}
				}
				name := fmt.Sprintf("%d micro-batches in %d shards on %d devices", batches, shards, devices)
				require.Equal(t, rounds, got.Rounds, name)
				require.Len(t, busy, got.Busy, name)
				require.InDelta(t, float64(batches)/float64(longest), got.Gain, 1e-12, name)
			}
		}
	}
}

// Devices without work are named, with what gives them some.
func TestDevicesWarn(t *testing.T) {
	of := func(rollout, update, limits string, n int) string {
		train := decode(t, `{"environment":{"name":"bandit"},"rollout":{"groups":8,"group_size":8,"turns":1,"prompt_tokens":[64]`+rollout+`},
			"selection":{"method":"all"},"update":{"micro_batch":8`+update+`},"limits":{"activity_seconds":30`+limits+`}}`)
		return strings.Join(spec.DevicesOf(train, train.Policy.Starter.Shape(512), n).Warnings, "\n")
	}
	require.Empty(t, of(`,"pass_rows":8`, `,"shards":8`, "", 8))
	require.Empty(t, of(`,"pass_rows":8`, `,"shards":8`, "", 4))
	require.Equal(t, "an update keeps 1 of 4 devices busy: update.shards is 1; 4 keeps as many busy and changes bits, so decide before the run begins",
		of(`,"pass_rows":8`, "", "", 4))
	require.Equal(t, "an update keeps 8 of 16 devices busy: the micro-batches of a step are 8; lower update.micro_batch (8)",
		of(`,"pass_rows":4`, `,"shards":16`, "", 16))
	require.Equal(t, "a rollout keeps 2 of 4 devices busy: it has 2 parts of 32 rows (rollout.block_rows); smaller ones change bits, so decide before the run begins",
		of(`,"pass_rows":8,"block_rows":32`, `,"shards":4`, "", 4))
	require.Equal(t, "a rollout keeps 2 of 4 devices busy: an activity of it has 2 parts of 8 rows (rollout.pass_rows); raise limits.generate_rows (16)",
		of(`,"pass_rows":8`, `,"shards":4`, `,"generate_rows":16`, 4))
}
