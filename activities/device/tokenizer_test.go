package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// A worker makes starters of several shapes, one after the other, as a sweep over
// policy.starter does: the programs of one do not serve another. One of the second tokenizer
// has its vocabulary and keeps its files with the model.
func TestStartersOfSeveralShapes(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	h, d := &host.Host{Store: s}, &Device{Store: s, Engine: engine(t)}
	var made []activities.WarmStartResult
	for _, tokenizer := range []string{"1", "2"} {
		id := "tokenizer-" + tokenizer
		got, err := h.Resolve(t.Context(), activities.ResolveInput{Run: id, Spec: tinySpec(t, "rollout.prompt_tokens=[80]", "policy.starter.tokenizer="+tokenizer)})
		require.NoError(t, err)
		w, err := d.WarmStart(t.Context(), activities.WarmStartInput{Run: id, Spec: got.Spec, Steps: 2})
		require.NoError(t, err)
		made = append(made, w)
	}
	require.NotEqual(t, made[0].Base, made[1].Base)
	base, err := run.ReadIndex(t.Context(), s, *made[1].Base)
	require.NoError(t, err)
	files, err := run.ModelFiles(t.Context(), s, run.SmallRefs(base))
	require.NoError(t, err)
	require.Equal(t, starter.Second.Files()["tokenizer.json"], files["tokenizer.json"])
	c, err := model.ParseConfig(files[model.ConfigFile])
	require.NoError(t, err)
	require.Equal(t, starter.Second.Size(), c.VocabSize)
	require.Equal(t, model.ID(starter.Second.EndID()), c.EOS)
}

// Contexts are measured with the starter's own tokenizer.
func TestWidthsOfSecondTokenizer(t *testing.T) {
	s := store.NewMemory()
	width := func(edits ...string) int {
		edits = append(edits, `environment={"name":"bandit","options":{"low_name":"Instruction Description","high_name":"Available Attributes"}}`)
		got, err := (&host.Host{Store: s}).Resolve(t.Context(), activities.ResolveInput{Run: "a", Spec: tinySpec(t, edits...)})
		require.NoError(t, err)
		resolved, err := run.ReadSpec(t.Context(), s, got.Spec)
		require.NoError(t, err)
		return resolved.Rollout.PromptTokens[0]
	}
	first := width()
	s = store.NewMemory()
	require.Less(t, width("policy.starter.tokenizer=2"), first)
}
