package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Pieces are cut by the spec and the model's size alone, and small runs are not cut.
func TestWithSizes(t *testing.T) {
	const loaded = `{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":2,"prompt_tokens":[512,1024]},"evaluation":{"instances":64}`
	starter := spec.Default(spec.FromStarter).Policy.Starter.Shape(512)
	for name, test := range map[string]struct {
		document        string
		model           cost.Network
		generate, score int
		snapshot        int
	}{
		"a starter":                {`{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[256]}}`, starter, 0, 0, 0},
		"half a billion":           {loaded + `}`, qwen, 64, 8, 3840},
		"contexts are not known":   {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"}}`, qwen, 0, 0, 0},
		"a longer bound":           {loaded + `,"limits":{"activity_seconds":1200}}`, qwen, 64, 84, 0},
		"a shorter bound":          {loaded + `,"limits":{"activity_seconds":60}}`, qwen, 64, 4, 1920},
		"as it is written":         {loaded + `,"limits":{"generate_rows":128,"score_rows":12,"snapshot_mib":7}}`, qwen, 128, 12, 7},
		"smaller passes":           {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":1,"prompt_tokens":[512],"pass_rows":2}}`, qwen, 4, 12, 3840},
		"a reference and a critic": {loaded + `,"credit":{"algorithm":"gae"},"update":{"kl_in":"loss"}}`, qwen, 64, 4, 3840},
		"a large suite":            {`{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[256]},"evaluation":{"instances":65536}}`, starter, 15616, 0, 0},
		"many pieces":              {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"groups":512,"turns":1,"prompt_tokens":[512]}}`, qwen, 128, 128, 3840},
		"a diagnosis":              {`{"environment":{"name":"bandit"},"diagnostics":{"every":1,"samples":256},"rollout":{"turns":1,"prompt_tokens":[256]},"limits":{"activity_seconds":5}}`, starter, 0, 1056, 0},
	} {
		t.Run(name, func(t *testing.T) {
			train := decode(t, test.document)
			got := train.WithSizes(test.model, []byte(test.document))
			require.Equal(t, test.generate, got.Limits.GenerateRows)
			require.Equal(t, test.score, got.Limits.ScoreRows)
			require.Equal(t, test.snapshot, got.Limits.SnapshotMiB)
			require.Zero(t, got.Limits.GenerateRows%got.Rollout.Pass())
			require.Zero(t, got.Limits.ScoreRows%got.Update.MicroBatch)
			require.Equal(t, got, got.WithSizes(test.model, []byte(test.document)))
			require.Equal(t, train.Policy.Starter == nil && len(train.Rollout.PromptTokens) > 0, got.Rollout.ChunkTokens > 0)
			require.Equal(t, len(train.Rollout.PromptTokens) > 0, got.Update.Sized())
			got.Limits, got.Rollout.ChunkTokens, got.Snapshot.Every, got.Update.Recompute, got.Update.Widths = train.Limits, 0, train.Snapshot.Every, "", 0
			got.Collapse.EntropyUniform.Vocabulary = 0
			require.Equal(t, train, got, "nothing else changes")
		})
	}
}

// The optimizer steps of a pretrained model have micro-batches of several widths where rows are long,
// and with adapters several shards, unless a person has written otherwise. A starter's never do.
func TestStepsAreDivided(t *testing.T) {
	starter := spec.Default(spec.FromStarter).Policy.Starter.Shape(512)
	for name, test := range map[string]struct {
		policy, rollout, update string
		widths, shards          int
	}{
		"long rows":                   {`{"from":"model:0123456789ab"}`, `"max_new_tokens":256,"prompt_tokens":[256]`, ``, 3, 0},
		"short rows":                  {`{"from":"model:0123456789ab"}`, `"max_new_tokens":255,"prompt_tokens":[256]`, ``, 0, 0},
		"one width, written":          {`{"from":"model:0123456789ab"}`, `"prompt_tokens":[2048]`, `"widths":1`, 1, 0},
		"adapters":                    {`{"from":"model:0123456789ab","lora":{}}`, `"prompt_tokens":[2048]`, ``, 3, 8},
		"adapters, shards written":    {`{"from":"model:0123456789ab","lora":{}}`, `"prompt_tokens":[2048]`, `"shards":1`, 3, 1},
		"adapters, one micro-batch":   {`{"from":"model:0123456789ab","lora":{}}`, `"prompt_tokens":[2048]`, `"minibatch":4,"micro_batch":4`, 3, 0},
		"a starter":                   {`{}`, `"prompt_tokens":[2048]`, ``, 0, 0},
		"a starter with adapters":     {`{"lora":{}}`, `"prompt_tokens":[2048]`, ``, 0, 0},
		"contexts that are not known": {`{"from":"model:0123456789ab","lora":{}}`, `"max_new_tokens":256`, ``, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			document := `{"environment":{"name":"bandit"},"policy":` + test.policy + `,"rollout":{"turns":1,` + test.rollout + `},"update":{` + test.update + `}}`
			m := qwen
			if strings.HasPrefix(name, "a starter") {
				m = starter
			}
			got := decode(t, document).WithSizes(m, []byte(document))
			require.Equal(t, []int{test.widths, test.shards}, []int{got.Update.Widths, got.Update.Shards})
			require.Equal(t, got, got.WithSizes(m, []byte(document)))
		})
	}
}

// The pieces of an update are those of its rows, of all epochs and of the critic's by
// themselves, or those of its time if these are more: a pretrained model's on a large device.
func TestPiecesOfAnUpdate(t *testing.T) {
	starter := spec.Default(spec.FromStarter).Policy.Starter.Shape(512)
	const small = `{"environment":{"name":"bandit"},"rollout":{"groups":4,"group_size":4,"turns":1,"prompt_tokens":[256]},"selection":{"method":"all"}`
	const loaded = `{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"groups":64,"turns":1,"prompt_tokens":[16384]},"selection":{"method":"all"}`
	for name, test := range map[string]struct {
		document string
		model    cost.Network
		pieces   int
	}{
		"a starter":      {small + `}`, starter, 1},
		"rows":           {small + `,"update":{"micro_batch":2},"limits":{"update_rows":4}}`, starter, 4},
		"epochs":         {small + `,"update":{"micro_batch":2,"epochs":3},"limits":{"update_rows":4}}`, starter, 12},
		"a critic":       {small + `,"credit":{"algorithm":"gae"},"update":{"micro_batch":2,"epochs":3},"limits":{"update_rows":4}}`, starter, 24},
		"the last":       {small + `,"update":{"micro_batch":2},"limits":{"update_rows":6}}`, starter, 3},
		"long contexts":  {loaded + `}`, qwen, 8},
		"a longer bound": {loaded + `,"limits":{"activity_seconds":1200}}`, qwen, 1},
	} {
		t.Run(name, func(t *testing.T) {
			train := decode(t, test.document)
			require.Equal(t, test.pieces, train.Pieces(spec.Derive(train, test.model)).Update)
		})
	}
}

// The rows of a pass and of a micro-batch are halved until they fit into limits.device_gb,
// micro-batches first, and stay where a person wrote them or where nothing fits.
func TestSizesFitTheDevice(t *testing.T) {
	for name, test := range map[string]struct {
		more        string
		pass, micro int // of the spec; 0 is the default
	}{
		"an 80 GB card":             {``, 0, 4},
		"a micro-batch has no room": {`,"limits":{"device_gb":11},"rollout":{"turns":1,"groups":4,"group_size":2,"prompt_tokens":[4096]}`, 0, 2},
		"a pass has none":           {`,"limits":{"device_gb":12},"update":{"micro_batch":1}`, 32, 1},
		"both have none":            {`,"limits":{"device_gb":11}`, 8, 2},
		"a written micro-batch":     {`,"limits":{"device_gb":11},"rollout":{"turns":1,"groups":4,"group_size":2,"prompt_tokens":[4096]},"update":{"micro_batch":4}`, 0, 4},
		"a written pass":            {`,"limits":{"device_gb":11},"rollout":{"turns":1,"groups":4,"group_size":2,"prompt_tokens":[4096],"pass_rows":8}`, 8, 2},
		"a card that is too small":  {`,"limits":{"device_gb":4}`, 0, 4},
		"a card of the same memory": {`,"limits":{"device_gb":80}`, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := `,"rollout":{"turns":1,"prompt_tokens":[4096]}`
			if strings.Contains(test.more, "rollout") {
				rollout = ""
			}
			document := `{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"}` + rollout + test.more + `}`
			got := decode(t, document).WithSizes(qwen, []byte(document))
			require.Equal(t, []int{test.pass, test.micro}, []int{got.Rollout.PassRows, got.Update.MicroBatch})
			require.Equal(t, got, got.WithSizes(qwen, []byte(document)))
		})
	}
}

// Activations are kept where the run then fits into limits.device_gb, unless a person has written
// otherwise. A smaller micro-batch is no price for keeping them.
func TestRecomputeFitsTheDevice(t *testing.T) {
	for name, test := range map[string]struct {
		limits, update, want string
		micro                int
	}{
		"an 80 GB card":            {``, ``, "never", 4},
		"auto, written":            {``, `"recompute":"auto"`, "never", 4},
		"a card of 20 GB":          {`"device_gb":20`, ``, "always", 4},
		"a smaller micro-batch":    {`"device_gb":20`, `"micro_batch":1`, "never", 1},
		"no room for either":       {`"device_gb":11`, ``, "always", 2},
		"never, written":           {`"device_gb":20`, `"recompute":"never","micro_batch":4`, "never", 4},
		"always, written":          {``, `"recompute":"always"`, "always", 4},
		"a card that is too small": {`"device_gb":4`, ``, "always", 4},
	} {
		t.Run(name, func(t *testing.T) {
			document := `{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":1,"prompt_tokens":[4096]},
				"limits":{` + test.limits + `},"update":{` + test.update + `}}`
			got := decode(t, document).WithSizes(qwen, []byte(document))
			require.Equal(t, test.want, got.Update.Recompute)
			require.Equal(t, test.micro, got.Update.MicroBatch)
			require.Equal(t, got, got.WithSizes(qwen, []byte(document)))
			require.Equal(t, got.Update.Keeps(), spec.Derive(got, qwen).Memory.Kept)
		})
	}
}

// The snapshots of a pretrained model are as frequent as 5 % of the time allows: more often
// where iterations are long, and as written where a person wrote it.
func TestSnapshotsFollowTheirCost(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		model    cost.Network
		every    int
	}{
		"a starter":         {`{"environment":{"name":"bandit"},"rollout":{"turns":1,"prompt_tokens":[256]}}`, spec.Default(spec.FromStarter).Policy.Starter.Shape(512), 10},
		"half a billion":    {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":5,"prompt_tokens":[512,1024,1536,2048,2560]}}`, qwen, 24},
		"long contexts":     {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":1,"groups":64,"prompt_tokens":[16384],"prefill":"rows"}}`, qwen, 3},
		"shared prompts":    {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":1,"groups":64,"prompt_tokens":[16384]}}`, qwen, 4},
		"a critic":          {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"credit":{"algorithm":"gae"},"rollout":{"turns":5,"prompt_tokens":[512,1024,1536,2048,2560]}}`, qwen, 47},
		"short iterations":  {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"rollout":{"turns":1,"max_new_tokens":1,"prompt_tokens":[16]}}`, qwen, 1000},
		"as it is written":  {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"snapshot":{"every":7},"rollout":{"turns":1,"prompt_tokens":[512]}}`, qwen, 7},
		"the default, said": {`{"environment":{"name":"bandit"},"policy":{"from":"model:0123456789ab"},"snapshot":{"every":10},"rollout":{"turns":1,"prompt_tokens":[512]}}`, qwen, 10},
	} {
		t.Run(name, func(t *testing.T) {
			got := decode(t, test.document).WithSizes(test.model, []byte(test.document))
			require.Equal(t, test.every, got.Snapshot.Every)
			require.Equal(t, got, got.WithSizes(test.model, []byte(test.document)))
		})
	}
}

func TestWrites(t *testing.T) {
	for document, want := range map[string]bool{
		`{"update": {"micro_batch": 4}}`: true, `{"update": {}}`: false, `{"micro_batch": 4}`: false, `{"update": 4}`: false, `{}`: false, `nonsense`: false, ``: false,
	} {
		require.Equal(t, want, spec.Writes([]byte(document), "update.micro_batch"), document)
	}
}
