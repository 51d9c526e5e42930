package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// qwen is Qwen2.5-0.5B, whose 494,032,768 parameters are published.
var qwen = Network{
	Layers: 24, HiddenSize: 896, IntermediateSize: 4864, Heads: 14, KVHeads: 2, VocabSize: 151936, Tied: true,
}

func TestParameters(t *testing.T) {
	require.EqualValues(t, 494032768, qwen.Parameters())
	// Qwen2.5-7B has an untied head and 7,615,616,512 parameters.
	require.EqualValues(t, 7615616512, Network{
		Layers: 28, HiddenSize: 3584, IntermediateSize: 18944, Heads: 28, KVHeads: 4, HeadDim: 128, VocabSize: 152064,
	}.Parameters())
	// Qwen3-0.6B has 596,049,920, and Llama-3.2-1B 1,235,814,400.
	require.EqualValues(t, 596049920, Network{
		Layers: 28, HiddenSize: 1024, IntermediateSize: 3072, Heads: 16, KVHeads: 8, HeadDim: 128, VocabSize: 151936,
		Tied: true, Unbiased: true, HeadNorms: true,
	}.Parameters())
	require.EqualValues(t, 1235814400, Network{
		Layers: 16, HiddenSize: 2048, IntermediateSize: 8192, Heads: 32, KVHeads: 8, VocabSize: 128256, Tied: true, Unbiased: true,
	}.Parameters())
}

// Adapters of all maps have so many weights in each layer: the rank times the widths of each map's input and output.
func TestAdapters(t *testing.T) {
	require.Zero(t, qwen.Adapters(nil))
	require.Equal(t, qwen.Parameters(), qwen.Trained(nil))
	all := &Adapters{Rank: 8, Targets: LinearMaps[:]}
	layer := (896 + 896) + 2*(896+128) + (896 + 896) + 2*(896+4864) + (4864 + 896)
	require.EqualValues(t, 24*8*layer, qwen.Adapters(all))
	require.EqualValues(t, 24*8*(4864+896), qwen.Trained(&Adapters{Rank: 8, Targets: []string{"down_proj"}}))
}

// The parts of a pass are equal and have no more tokens than they may; one row is a part however wide it is.
func TestPartRows(t *testing.T) {
	require.Equal(t, 64, PartRows(64, 1024, PrefillTokens))
	require.Equal(t, 32, PartRows(64, 1025, PrefillTokens))
	require.Equal(t, 12, PartRows(24, 4000, PrefillTokens))
	require.Equal(t, 7, PartRows(7, 9000, PrefillTokens))
	require.Equal(t, 1, PartRows(7, 10000, PrefillTokens))
	require.Equal(t, 1, PartRows(64, 1<<17, PrefillTokens))
}

// The largest tensors are dealt first, of equals the first.
func TestOwners(t *testing.T) {
	require.Equal(t, []int{1, 0, 1, 1, 0}, Owners([]int{4, 9, 1, 4, 1}, 2))
	require.Equal(t, []int{0, 1, 2}, Owners([]int64{5, 5, 5}, 4))
	require.Empty(t, Owners[int](nil, 3))
}

// The devices own a model between them, and each byte of it once.
func TestOwnedBytesAreAll(t *testing.T) {
	for _, adapters := range []*Adapters{nil, {Rank: 8, Targets: LinearMaps[:]}} {
		for _, f := range (Job{Network: qwen, ComputeBytes: 2, Adapters: adapters, Values: 1}).models() {
			for _, n := range []int{1, 2, 3, 8} {
				var sum int64
				for _, bytes := range f.ownedBy(n) {
					sum += bytes
				}
				require.Equal(t, f.trained, sum)
			}
		}
	}
}
