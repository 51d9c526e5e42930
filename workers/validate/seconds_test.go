package validate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// round are figures with which seconds are easily computed by hand.
var round = Figures{
	Name: "round", Memory: 80e9, Operations: 2e12, Bandwidth: 2e9, Link: 2e9, OperationsShare: 0.5, BandwidthShare: 0.5, LinkShare: 0.5,
	BucketWrite: 1e6, BucketRead: 1e6, Call: 0.5, Step: 0.25, Detection: 10, Programs: 20,
}

// small is a model of 10 layers whose matrices have 10 · 64 · (2 · 64 + 2 · 32 + 3 · 128) = 368,640
// weights and whose table has 64,000.
var small = cost.Network{Layers: 10, HiddenSize: 64, IntermediateSize: 128, Heads: 4, KVHeads: 2, VocabSize: 1000, Tied: true}

const (
	smallMatrices = 10 * 64 * (2*64 + 2*32 + 3*128)
	smallTable    = 64_000
)

func trainOf(t *testing.T, more string) spec.Train {
	t.Helper()
	methodstest.NeedsOf(t, more)
	train, err := spec.Decode([]byte(`{"environment":{"name":"bandit"},"iterations":200,"policy":{"from":"model:0123456789ab","compute_dtype":"bfloat16","exact":false},
		"rollout":{"groups":4,"group_size":4,"turns":2,"prompt_tokens":[100,200],"max_new_tokens":50,"pass_rows":4},"selection":{"method":"all"},
		"update":{"micro_batch":2,"recompute":"never"`+more+`},"snapshot":{"every":5},"evaluation":{"every":0}}`), run.Known())
	require.NoError(t, err)
	return train
}

// The seconds of each part are those computed by hand: on one device, and on four with shards.
func TestSecondsByHand(t *testing.T) {
	parameters := float64(small.Parameters())
	bfloat16 := 2*float64(smallMatrices+smallTable) + 4*(parameters-smallMatrices-smallTable) // what programs read
	attention := func(width float64) float64 { return 4 * 10 * 64 * width }
	cache := func(width float64) float64 { return 2 * 2 * 10 * 4 * width * 32 } // of a pass
	for _, devices := range []int{1, 4} {
		n := float64(devices)
		got := SecondsOf(trainOf(t, `,"shards":4`), small, devices, round)
		by := map[string]float64{}
		sum := 0.0
		for _, p := range got.Parts {
			by[p.Part] = p.Seconds
			sum += p.Seconds
		}
		require.InDelta(t, sum, got.Iteration, 1e-9)
		near := func(part string, want float64) {
			t.Helper()
			require.InEpsilon(t, want, by[part], 1e-9, "%s on %d", part, devices)
		}
		// A pass has the rows of a group, whose first prompt is one of the two of a prefill.
		near("prefill", (8*100*(2*smallMatrices+attention(100))+16*200*(2*smallMatrices+attention(200)))/1e12/n)
		near("decode", 4/n*50*(2*bfloat16+cache(150)+cache(250))/1e9)
		forward := 16 * 250 * (2*(smallMatrices+smallTable) + attention(250))
		near("score", forward/1e12/n)
		near("update", 3*forward/1e12/n)
		// Of four devices each owns about a quarter of the tensors.
		require.InEpsilon(t, (4*parameters*(1+7+3)+3*2*(smallMatrices+smallTable))/1e9/n, by["optimizer step"], 0.02)
		if devices == 1 {
			require.Zero(t, by["copies between devices"])
		} else {
			require.InEpsilon(t, 0.75*(4*parameters+bfloat16)/1e9, by["copies between devices"], 0.02)
		}
		near("environment", 0.25*16*2)
		near("calls of activities", 0.5*(2+2+1+1+3))
		near("snapshot, a share of it", 12*parameters/1e6/5)

		update := by["update"] + by["optimizer step"] + by["copies between devices"]
		rollout := by["prefill"] + by["decode"]
		p := got.Preempted
		require.InEpsilon(t, 12*parameters/1e6+20, p.Load, 1e-9)
		require.InEpsilon(t, 4*update/2, p.Rebuild, 1e-9)
		require.InEpsilon(t, (rollout*rollout/2+by["score"]*by["score"]+update*update+8*8/2)/2/sum, p.Lost, 1e-9)
		require.InEpsilon(t, 4*update+max(rollout/2, update, 4), p.AtMost, 1e-9)
		require.InEpsilon(t, 100*(sum-12*parameters/1e6/5+12*parameters/1e6/100), got.Checkpointed.AtMost, 1e-9)
		require.InEpsilon(t, got.Checkpointed.AtMost/2, got.Checkpointed.Lost, 1e-9)
	}
}

// A step of decoding takes at least what the figures say, and a link that is slow bounds the copies.
func TestSecondsBounds(t *testing.T) {
	slow := round
	slow.DecodeStep, slow.Link = 7, 1
	bound := map[string]PartSeconds{}
	for _, p := range SecondsOf(trainOf(t, `,"shards":2`), small, 2, slow).Parts {
		bound[p.Part] = p
	}
	require.Equal(t, PartSeconds{"decode", 7 * 2 * 50 * 2, "steps"}, bound["decode"])
	require.Equal(t, "link", bound["copies between devices"].Bound)
	require.Equal(t, "operations", bound["update"].Bound)
}

// A critic is scored and trained besides, without a head; adapters have no gradients of the frozen
// matrices; layers that are computed again take another forward pass.
func TestSecondsOfUpdates(t *testing.T) {
	methodstest.Needs(t, "gae")
	of := func(train spec.Train) (score, update float64) {
		for _, p := range SecondsOf(train, small, 1, round).Parts {
			switch p.Part {
			case cost.WorkScore:
				score = p.Seconds
			case cost.WorkUpdate:
				update = p.Seconds
			}
		}
		return score, update
	}
	train := trainOf(t, "")
	score, update := of(train)
	require.InEpsilon(t, 3, update/score, 1e-9)
	train.Update.Recompute = spec.RecomputeAlways
	_, again := of(train)
	require.InEpsilon(t, 4, again/score, 1e-9)
	train.Policy.LoRA = spec.DefaultLoRA(train.Policy.From)
	withAdapters, adapters := of(train)
	require.InEpsilon(t, 3, adapters/withAdapters, 1e-9)
	train = trainOf(t, "")
	train.Credit.Algorithm = "gae"
	both, _ := of(train)
	require.InEpsilon(t, 16*250*2*smallTable/1e12, 2*score-both, 1e-9)
	train = trainOf(t, "")
	train.Update.KLIn = spec.KLLoss
	reference, _ := of(train)
	require.InEpsilon(t, 2*score, reference, 1e-9)
}

// A machine that is lost is found after the same time whatever the model is: what gives leases computes nothing.
func TestLossIsFoundAlikeForAllModels(t *testing.T) {
	known, err := families.ByName("qwen2.5-0.5b")
	require.NoError(t, err)
	for _, shape := range []cost.Network{small, run.ShapeOf(known.Config)} {
		require.InDelta(t, H100.Detection, SecondsOf(trainOf(t, ""), shape, 1, H100).Preempted.Detection, 0)
	}
}

func TestReadCard(t *testing.T) {
	require.NoError(t, H100.check())
	memory, figures, err := ReadCard("H100")
	require.NoError(t, err)
	require.Equal(t, H100, *figures)
	require.EqualValues(t, 80e9, memory)
	memory, figures, err = ReadCard("24GB")
	require.NoError(t, err)
	require.Nil(t, figures)
	require.EqualValues(t, 24e9, memory)
	memory, figures, err = ReadCard("../../docs/devices/h100-measured-0.5b.json")
	require.NoError(t, err)
	require.InDelta(t, 0.00238, figures.DecodeStep, 0)
	require.EqualValues(t, 80e9, memory)

	good, err := os.ReadFile("../../docs/devices/h100-measured-0.5b.json")
	require.NoError(t, err)
	_, _, err = ReadCard("there-is-none.json")
	require.ErrorContains(t, err, "--card: read the figures of a device: open there-is-none.json")
	for text, problem := range map[string]string{
		`{"share": 1}`:     `unknown field "share"`,
		`{}`:               `memory_bytes is 0: give a number above 0`,
		string(good) + " ": "",
		`{"name":"a","memory_bytes":1,"operations_a_second":1,"bandwidth_bytes_a_second":1,"link_bytes_a_second":1,"operations_share":2}`: `operations_share is 2: give a number above 0 and at most 1`,
	} {
		path := filepath.Join(t.TempDir(), "card.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, _, err = ReadCard(path); problem == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, problem)
		}
	}
}
