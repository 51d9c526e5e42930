package device

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// adapted is tinySpec with adapters over the starter, a reference and a critic.
func adapted(t *testing.T, edits ...string) json.RawMessage {
	return tinySpec(t, append([]string{
		`policy.lora={"rank":2,"alpha":8,"targets":["q_proj","v_proj","down_proj"]}`, `credit.algorithm="gae"`,
		`update.kl_in="loss"`, "update.kl_coefficient=0.1", "update.learning_rate=0.01",
	}, edits...)...)
}

// A run with adapters has the same bytes twice, over the same base model that a run of the
// starter begins with; its snapshots are adapters alone, as PEFT reads them.
func TestAdaptersTwiceFromScratch(t *testing.T) {
	t.Parallel()
	first := begun(t, "adapted", adapted(t))
	first.iterate(t)
	first.iterate(t)
	first.forget(t)
	again := begun(t, "adapted", adapted(t))
	again.iterate(t)
	again.iterate(t)
	require.Equal(t, first.head, again.head)
	require.Equal(t, first.objects(t), again.objects(t))
	require.NotEqual(t, first.commits[0].StateAfter, first.commits[1].StateAfter)

	m, err := store.ReadManifest(t.Context(), first.store, *first.head)
	require.NoError(t, err)
	require.NotEmpty(t, m.Base.Frozen)
	require.Equal(t, first.frozen, m.Base.Frozen)
	require.Equal(t, []string{
		model.AdapterConfigFile, model.AdapterFile, "chat_template.jinja", model.CriticFile, model.CriticOptimizerFile,
		"generation_config.json", model.OptimizerFile, "tokenizer.json", "tokenizer_config.json",
	}, run.SortedKeys(m.Snapshot.Files))
	report, err := store.Verify(t.Context(), first.store, "adapted", nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)

	full := begun(t, "full", tinySpec(t))
	require.Equal(t, full.Run.Base.Digest, first.Run.Base.Digest, "the warm start is the starter's own")
	require.Empty(t, full.frozen)
	full.iterate(t)
	m, err = store.ReadManifest(t.Context(), full.store, *full.head)
	require.NoError(t, err)
	require.Empty(t, m.Base.Frozen)
	of := func(r *testRun) string { return r.commits[0].Evaluations[0].Trajectories.Content }
	require.Equal(t, of(full), of(first), "version 0 plays as its base model does")
	require.Nil(t, evaluated(t, full).LoRA)
	require.Equal(t, 2, evaluated(t, first).LoRA.Rank)
	require.Equal(t, m.Base.Digest, evaluated(t, first).Base)
}

// evaluated is the first evaluation of a run.
func evaluated(t *testing.T, r *testRun) (out host.EvaluationResult) {
	t.Helper()
	b, err := store.GetArtifact(t.Context(), r.store, *r.commits[0].Evaluations[0].Result)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// Versions with adapters are rebuilt from snapshots and batches, and from version 0.
func TestAdaptersAreRebuilt(t *testing.T) {
	t.Parallel()
	r := begun(t, "adapted-ways", adapted(t, "iterations=4", "snapshot.every=2", "evaluation.every=0"))
	states, heads := []string{r.state}, []*store.Ref{nil}
	for range 4 {
		r.iterate(t)
		states, heads = append(states, r.state), append(heads, r.head)
	}
	for to, from := range []int{0, 0, 2, 2, 4} {
		r.forget(t)
		got := r.restore(t, activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: to, State: states[to]}, Head: heads[to]})
		require.Equal(t, states[to], got.State)
		require.Equal(t, from, got.From)
		require.Equal(t, to-from, got.Telemetry.Recomputed)
		require.Equal(t, r.frozen, got.Frozen)
	}
	frozen := r.Device.Engine.frozen
	got := r.restore(t, activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: 1, State: states[1]}, Head: heads[1]})
	require.Equal(t, states[1], got.State)
	require.Same(t, frozen, r.Device.Engine.frozen, "the base model stays")

	t.Run("over another base model than recorded", func(t *testing.T) {
		r.Device.Engine.drop()
		frozen.fingerprint = "0123"
		_, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: r.version(), Head: r.head})
		require.ErrorIs(t, err, activities.ErrStateDiffers)
		require.ErrorContains(t, err, "the base model below the adapters is 0123, recorded is "+r.frozen)
		require.Equal(t, r.state, r.restore(t, activities.RestoreInput{}).State, "it is loaded anew")
	})
	t.Run("a file of the base model was changed", func(t *testing.T) {
		index, err := run.ReadIndex(t.Context(), r.store, r.Run.Base)
		require.NoError(t, err)
		key := index.Files[model.WeightsFile].Key
		alter(t, r.store, key)
		defer alter(t, r.store, key)
		r.forget(t)
		_, err = r.Device.Restore(t.Context(), activities.RestoreInput{Version: r.version(), Head: r.head})
		require.ErrorIs(t, err, store.ErrAltered)
	})
	t.Run("another run goes on from it", func(t *testing.T) {
		edits := []string{
			"iterations=4", "snapshot.every=9", "evaluation.every=0", `from={"run":"adapted-ways","iteration":0}`,
			`policy.lora={"rank":2,"alpha":8,"targets":["q_proj","v_proj","down_proj"]}`, `credit.algorithm="gae"`, "seed=7",
		}
		f := r.fork(t, "adapted-fork", edits...)
		f.frozen = r.frozen
		require.Equal(t, states[1], f.state)
		f.iterateFork(t)
		f.forget(t)
		got := r.forkRestore(t, f)
		require.Equal(t, f.state, got.State)
		require.Equal(t, 2, got.Telemetry.Recomputed)
		m, err := store.ReadManifest(t.Context(), r.store, *f.head)
		require.NoError(t, err)
		require.Equal(t, r.frozen, m.Base.Frozen)

		_, err = r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "adapted-other", Spec: tinySpec(t, append(edits, "policy.lora.rank=4")...)})
		require.ErrorContains(t, err, "policy.lora.rank: found 4; allowed: 2 (run adapted-ways has it")
	})
}

// A loaded model's warm start teaches the adapters: they are version 0, beside the files of
// the base model, which stay as they are.
func TestWarmStartTeachesAdapters(t *testing.T) {
	t.Parallel()
	document := tinySpec(t, `policy={"from":"folder:`+golden+`","compute_dtype":"float32","lora":{"rank":2,"alpha":4},
		"warm_start":{"steps":3,"rows":4,"learning_rate":1e-2}}`, "rollout.max_new_tokens=8", `update.kl_in="loss"`, "evaluation.every=0")
	r := begun(t, "taught-adapters", document)
	index, err := run.ReadIndex(t.Context(), r.store, r.Run.Base)
	require.NoError(t, err)
	require.Contains(t, index.Files, model.AdapterFile)
	own, weights := index.Files[model.AdapterFile].Key, index.Files[model.WeightsFile].Key
	require.True(t, strings.HasPrefix(own, index.Dir+"/"))
	require.False(t, strings.HasPrefix(weights, index.Dir+"/"), "the base model is not copied")
	for key := range r.objects(t) {
		require.False(t, strings.Contains(key, "/steps/"), key)
	}

	untaught := begun(t, "untaught", tinySpec(t, `policy={"from":"folder:`+golden+`","compute_dtype":"float32","lora":{"rank":2,"alpha":4},"warm_start":{"steps":0}}`, "rollout.max_new_tokens=8"))
	require.NotEqual(t, untaught.state, r.state)
	require.Equal(t, untaught.frozen, r.frozen)

	require.Equal(t, r.state, r.restore(t, activities.RestoreInput{}).State)
	in := r.iterate(t)
	require.Equal(t, 0.0, float64(in.Metrics["actor/kl_loss"]), "the reference is version 0, with what it was taught")
	state, head := r.state, r.head
	r.forget(t)
	require.Equal(t, state, r.restore(t, activities.RestoreInput{}).State)

	again, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "taught-adapters", Spec: document})
	require.NoError(t, err)
	require.Equal(t, r.Run.Base, again.Head.Base)
	require.Equal(t, *head, again.Head.Manifest)

	shared, err := r.Device.WarmStart(t.Context(), activities.WarmStartInput{Run: "another", Spec: r.Run.Spec, Base: firstBase(t, r), Steps: 1})
	require.NoError(t, err)
	require.True(t, shared.Shared)
	require.Equal(t, r.Run.Base, *shared.Base)
}

// firstBase is the model that a run's warm start taught.
func firstBase(t *testing.T, r *testRun) *store.Ref {
	t.Helper()
	got, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "first-base", Spec: tinySpec(t, `policy={"from":"folder:`+golden+`"}`, "rollout.max_new_tokens=8")})
	require.NoError(t, err)
	return got.Base
}

const adaptersFolder = "../../model/testdata/lora-qwen2-tiny"

// A run starts with the adapters of a folder, which say how they are made.
func TestImportAdapters(t *testing.T) {
	t.Parallel()
	document := func(edits ...string) json.RawMessage {
		return tinySpec(t, append([]string{
			`policy={"from":"folder:` + adaptersFolder + `","base":"folder:` + golden + `","compute_dtype":"float32","warm_start":{"steps":0}}`, "rollout.max_new_tokens=8",
		}, edits...)...)
	}
	r := begun(t, "adapters", document())
	written, err := run.ReadSpec(t.Context(), r.store, r.Run.Spec)
	require.NoError(t, err)
	require.Equal(t, 4, written.Policy.LoRA.Rank)
	require.Equal(t, 8.0, written.Policy.LoRA.Alpha)
	require.Len(t, written.Policy.LoRA.Targets, 7)
	require.Equal(t, "folder:"+golden, written.Policy.Base)
	index, err := run.ReadIndex(t.Context(), r.store, r.Run.Base)
	require.NoError(t, err)
	for _, name := range []string{model.AdapterConfigFile, model.AdapterFile} {
		want, err := os.ReadFile(filepath.Join(adaptersFolder, name))
		require.NoError(t, err)
		got, err := store.GetArtifact(t.Context(), r.store, index.Files[name])
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	r.iterate(t)
	r.iterate(t)
	r.forget(t)
	require.Equal(t, r.state, r.restore(t, activities.RestoreInput{}).State)

	t.Run("again", func(t *testing.T) {
		again, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "adapters", Spec: document()})
		require.NoError(t, err)
		require.Equal(t, r.Run.Spec, again.Spec)
		_, err = r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "adapters", Spec: document("policy.lora.rank=8")})
		require.ErrorIs(t, err, activities.ErrSpecDiffers)
		require.ErrorContains(t, err, "policy.lora.rank: 4, and 8")
	})
	t.Run("by its digest", func(t *testing.T) {
		got, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "stored", Spec: tinySpec(t, `policy={"from":"model:`+index.Digest[:12]+`"}`, "rollout.max_new_tokens=8")})
		require.NoError(t, err)
		require.Equal(t, r.Run.Base, *got.Base)
	})
	t.Run("by trials", func(t *testing.T) {
		a := &sweeps.Sweeps{Store: r.store}
		sweep := resolvedSweep(t, a, `{"base": %s, "seeds": 2}`, document())
		from, specs := policiesOf(t, a, sweep)
		require.Equal(t, []string{"model:" + index.Digest[:12], "model:" + index.Digest[:12]}, from)
		got, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "trial", Spec: specs[0]})
		require.NoError(t, err)
		require.Equal(t, r.Run.Base, *got.Base)
	})
	t.Run("evaluated apart", func(t *testing.T) {
		input := json.RawMessage(`{"policy":{"from":"folder:` + adaptersFolder + `","base":"folder:` + golden + `"},"suites":["bandit"]}`)
		got, err := r.Host.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "apart", Input: input})
		require.NoError(t, err)
		require.Equal(t, r.Run.Base, got.Run.Base)
		theirs, err := run.ReadSpec(t.Context(), r.store, got.Run.Spec)
		require.NoError(t, err)
		require.Equal(t, written.Policy.LoRA, theirs.Policy.LoRA)
	})
	t.Run("gone on from", func(t *testing.T) {
		got, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "on", Spec: document(`from={"run":"adapters","iteration":0}`)})
		require.NoError(t, err)
		theirs, err := run.ReadSpec(t.Context(), r.store, got.Spec)
		require.NoError(t, err)
		require.Equal(t, written.Policy, theirs.Policy)
	})
	for name, c := range map[string]struct{ policy, says string }{
		"another rank":        {`{"from":"folder:` + adaptersFolder + `","base":"folder:` + golden + `","lora":{"rank":8}}`, "policy.lora.rank: found 8; allowed: 4"},
		"no adapters":         {`{"from":"folder:` + golden + `","base":"folder:` + golden + `"}`, "is a whole model and has no adapters"},
		"a base that is none": {`{"from":"folder:` + adaptersFolder + `","base":"folder:` + adaptersFolder + `"}`, "the folder holds adapters and no whole model"},
		"another base model":  {`{"from":"folder:` + adaptersFolder + `","base":"folder:../../model/testdata/qwen3-tiny"}`, "adapters of another base model"},
	} {
		_, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "bad", Spec: tinySpec(t, "policy="+c.policy, "rollout.max_new_tokens=8")})
		require.ErrorContains(t, err, c.says, name)
		require.NotEmpty(t, run.KindOf(err), name)
	}
}
