package device

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestResolve(t *testing.T) {
	s := store.NewMemory()
	h := &host.Host{Store: s}
	got, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "run/1", Spec: tinySpec(t)})
	require.NoError(t, err)
	require.Equal(t, store.SpecKey("run/1"), got.Spec.Key)
	require.Nil(t, got.Base, "a starter is made on a device")
	require.Nil(t, got.Head)
	require.False(t, got.SearchAttributes)
	require.Equal(t, 3, got.Plan.Iterations)
	require.Equal(t, 6, got.Plan.Rows)
	require.Equal(t, 2, got.Plan.WarmStartSteps)
	require.Equal(t, "bandit", got.Plan.Environment)
	written, err := run.ReadSpec(t.Context(), s, got.Spec)
	require.NoError(t, err)
	require.Len(t, written.Rollout.PromptTokens, 1, "the environment's widths are written down")

	h.Attributes = func(context.Context) bool { return true }
	again, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "run/1", Spec: tinySpec(t)})
	require.NoError(t, err)
	require.True(t, again.SearchAttributes)
	again.SearchAttributes = false
	require.Equal(t, got, again, "a second start is the first")

	full, err := written.JSON()
	require.NoError(t, err)
	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "run/1", Spec: full})
	require.NoError(t, err, "the written spec is the spec")
}

func TestResolveRefuses(t *testing.T) {
	h := &host.Host{Store: store.NewMemory()}
	_, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: json.RawMessage(
		`{"environment": {"name": "bandit", "options": {"hi_reward": 1, "names": "pear"}}, "seed": -1, "iteration": 3, "update": {"micro_batch": 0}}`)})
	require.Equal(t, activities.KindSpecInvalid, run.KindOf(err))
	for _, part := range []string{"seed", "iteration", "update.micro_batch", "environment.options.hi_reward", "environment.options.names", `did you mean "iterations"?`} {
		require.ErrorContains(t, err, part, "every problem at once")
	}
	require.Empty(t, h.Store.(*store.Memory).Own(), "nothing is written")

	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: tinySpec(t)})
	require.NoError(t, err)
	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: tinySpec(t, "seed=2", "update.learning_rate=0.5")})
	require.ErrorIs(t, err, activities.ErrSpecDiffers)
	require.Equal(t, activities.KindSpecDiffers, run.KindOf(err))
	require.ErrorContains(t, err, "seed: 1, and 2")
	require.ErrorContains(t, err, "update.learning_rate: 0.0003, and 0.5")
	require.ErrorContains(t, err, "another workflow id")
}

// An environment's problems with its options are reported as the spec's problems.
func TestKnown(t *testing.T) {
	known := run.Known()
	require.Contains(t, known.Environments, "bandit")
	require.Empty(t, known.Options("bandit", json.RawMessage(`{"high_probability": 0.1}`)))
	require.Equal(t, []spec.Problem{{Path: "high_probability", Found: "2", Allowed: "from 0 to 1"}},
		known.Options("bandit", json.RawMessage(`{"high_probability": 2}`)))
	require.Len(t, known.Options("bandit", json.RawMessage(`{"high_probability": 2, "hi": 1}`)), 2)
	got := known.Options("nowhere", json.RawMessage(`{}`))
	require.Len(t, got, 1)
	require.Contains(t, got[0].Allowed, "nowhere")
}

func TestLoad(t *testing.T) {
	t.Parallel()
	r := resolved(t, "load", tinySpec(t))
	got, err := r.Host.Load(t.Context(), activities.LoadInput{Run: "load", Spec: r.Run.Spec})
	require.NoError(t, err)
	require.Equal(t, activities.LoadResult{Plan: r.Plan}, got)
	_, err = r.Host.Find(t.Context(), activities.FindInput{Run: "load"})
	require.ErrorIs(t, err, activities.ErrNotFound)
	require.ErrorContains(t, err, "no committed iteration yet")
	_, err = r.Host.Find(t.Context(), activities.FindInput{Run: "lode"})
	require.ErrorContains(t, err, `no run "lode"`)
	require.Equal(t, activities.KindNotFound, run.KindOf(err))

	run := begun(t, "loaded", tinySpec(t))
	run.iterate(t)
	run.iterate(t)
	got, err = run.Host.Find(t.Context(), activities.FindInput{Run: "loaded"})
	require.NoError(t, err)
	require.Equal(t, 2, got.Version)
	require.Equal(t, run.state, got.State)
	require.Equal(t, *run.head, got.Head.Manifest)
	require.Equal(t, 2, got.Head.Snapshot)
	require.Equal(t, run.Run, got.Run)
	require.Equal(t, 0, got.Head.First.Version)
	require.Equal(t, 2, got.Head.Last.Version)
	one := 1
	got, err = run.Host.Find(t.Context(), activities.FindInput{Run: "loaded", Version: &one})
	require.NoError(t, err)
	require.Equal(t, run.commits[1].StateBefore, got.State)
	require.Zero(t, got.Head.Snapshot)
	seven := 7
	_, err = run.Host.Find(t.Context(), activities.FindInput{Run: "loaded", Version: &seven})
	require.ErrorContains(t, err, "the newest is 2")

	// Started again with the same id, the run resumes after its last commit.
	again, err := run.Host.Resolve(t.Context(), activities.ResolveInput{Run: "loaded", Spec: tinySpec(t)})
	require.NoError(t, err)
	require.Equal(t, 1, again.Head.Iteration)
	require.Equal(t, run.Run.Base, again.Head.Base)
	require.Equal(t, run.state, again.Head.State)
	require.Equal(t, run.Plan.Settings, again.Head.Settings)
}

// copied is the golden model's folder, to be damaged.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(golden)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(golden, e.Name()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, e.Name()), b, 0o600))
	}
	return dir
}

func edit(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(b), 0o600))
}

// tensors changes the weights of a folder.
func tensors(t *testing.T, dir string, change func([]safetensors.Tensor) []safetensors.Tensor) {
	edit(t, dir, "model.safetensors", func(b []byte) []byte {
		f, err := safetensors.Decode(b)
		require.NoError(t, err)
		out, err := safetensors.Encode(change(f.Tensors), f.Metadata)
		require.NoError(t, err)
		return out
	})
}

func folderSpec(t *testing.T, dir string) json.RawMessage {
	return tinySpec(t, `policy={"from": "folder:`+dir+`", "warm_start": {"steps": 0}}`, "rollout.max_new_tokens=8")
}

// A run that was started under earlier defaults is started again with the same document.
func TestResumesUnderEarlierDefaults(t *testing.T) {
	h := &host.Host{Store: store.NewMemory()}
	document := func(policy string, more ...string) json.RawMessage {
		return tinySpec(t, append([]string{`policy={"from": "folder:` + golden + `"` + policy + `}`, "rollout.max_new_tokens=8"}, more...)...)
	}
	before, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "early", Spec: document(`, "warm_start": {"steps": 0}`, "update.entropy_coefficient=0.001", "selection.drop_flat=false")})
	require.NoError(t, err)
	now, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "early", Spec: document("")})
	require.NoError(t, err)
	require.Equal(t, before.Spec, now.Spec)
	require.Zero(t, now.Plan.WarmStartSteps)
	require.Empty(t, now.Warnings)
	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "early", Spec: document("", "update.entropy_coefficient=0")})
	require.ErrorContains(t, err, "update.entropy_coefficient: 0.001, and 0")
	fresh, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "fresh", Spec: document("")})
	require.NoError(t, err)
	require.Equal(t, 10, fresh.Plan.WarmStartSteps)
	require.Equal(t, []string{"a warm start of 10 updates is on by default: policy.warm_start.steps 0 leaves the policy as it is"}, fresh.Warnings)
	require.Equal(t, 600, fresh.Plan.Collapse.EntropyUniform.Vocabulary)
	same, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "fresh", Spec: document("")})
	require.NoError(t, err)
	require.Equal(t, fresh.Spec, same.Spec)
}

func TestImportFolder(t *testing.T) {
	s := store.NewMemory()
	h := &host.Host{Store: s}
	got, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "imported", Spec: folderSpec(t, copied(t))})
	require.NoError(t, err)
	require.NotNil(t, got.Base)
	index, err := run.ReadIndex(t.Context(), s, *got.Base)
	require.NoError(t, err)
	require.Len(t, index.Files, 6)
	for name, file := range index.Files {
		require.Equal(t, index.Dir+"/"+name, file.Key)
		want, err := os.ReadFile(filepath.Join(golden, name))
		require.NoError(t, err)
		body, err := store.GetArtifact(t.Context(), s, file)
		require.NoError(t, err)
		require.Equal(t, want, body)
	}
	// The same weights under another name of folder are the same model; by its
	// digest it is found again.
	sha12 := store.ShortDigest(index.Digest)
	byDigest, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "by-digest", Spec: tinySpec(t, `policy={"from": "model:`+sha12+`"}`, "rollout.max_new_tokens=8")})
	require.NoError(t, err)
	require.Equal(t, got.Base, byDigest.Base)
	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "none", Spec: tinySpec(t, `policy={"from": "model:0123456789ab"}`, "rollout.max_new_tokens=8")})
	require.Equal(t, activities.KindModelInvalid, run.KindOf(err))
}

// The base of a run that has committed is in the store: the run resumes even if the
// folder is gone.
func TestGoesOnWithoutFolder(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	r := begun(t, "folder", folderSpec(t, dir))
	r.iterate(t)
	require.NoError(t, os.RemoveAll(dir))
	again, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "folder", Spec: folderSpec(t, dir)})
	require.NoError(t, err)
	require.Equal(t, r.Run.Base, again.Head.Base)
	require.Equal(t, *r.head, again.Head.Manifest)

	// A lost spec.json does not make it begin again either; another one is not taken.
	require.NoError(t, r.store.Delete(t.Context(), r.Run.Spec.Key))
	_, err = r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "folder", Spec: tinySpec(t, `policy={"from": "folder:`+dir+`", "warm_start": {"steps": 0}}`, "rollout.max_new_tokens=8", "seed=77")})
	require.ErrorIs(t, err, activities.ErrSpecDiffers)
	again, err = r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "folder", Spec: folderSpec(t, dir)})
	require.NoError(t, err)
	require.Equal(t, r.Run.Spec, again.Spec)
	require.Equal(t, *r.head, again.Head.Manifest)
}

// Weights and moments of half a billion parameters are larger than what is read into memory:
// they are streams.
func TestModelFilesOfAnySize(t *testing.T) {
	large := store.Ref{Key: "models/m/model.safetensors", Digest: strings.Repeat("0", 64), Size: store.MaxBody + 1}
	f, err := store.FS(t.Context(), store.NewMemory(), map[string]store.Ref{"model.safetensors": large}, nil).Open("model.safetensors")
	require.NoError(t, err)
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, store.ErrNotFound, "it was asked for, and is not there")
	_, err = store.GetArtifact(t.Context(), store.NewMemory(), large)
	require.ErrorIs(t, err, store.ErrTooLarge)
}

func TestImportFolderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		says   string
	}{
		"missing tensor": {func(t *testing.T, dir string) {
			tensors(t, dir, func(l []safetensors.Tensor) []safetensors.Tensor { return l[1:] })
		}, "missing"},
		"extra tensor": {func(t *testing.T, dir string) {
			tensors(t, dir, func(l []safetensors.Tensor) []safetensors.Tensor {
				return append(l, safetensors.F32("model.layers.7.surplus", []int{2}, []float32{1, 2}))
			})
		}, "model.layers.7.surplus"},
		"misshapen tensor": {func(t *testing.T, dir string) {
			tensors(t, dir, func(l []safetensors.Tensor) []safetensors.Tensor {
				for i := range l {
					if l[i].Name == "model.norm.weight" {
						l[i] = safetensors.F32(l[i].Name, []int{3}, []float32{1, 2, 3})
					}
				}
				return l
			})
		}, "model.norm.weight"},
		"truncated header": {func(t *testing.T, dir string) {
			edit(t, dir, "model.safetensors", func(b []byte) []byte { return b[:40] })
		}, "model.safetensors"},
		"lying header": {func(t *testing.T, dir string) {
			edit(t, dir, "model.safetensors", func(b []byte) []byte {
				binary.LittleEndian.PutUint64(b, 1<<60)
				return b
			})
		}, "model.safetensors"},
		"tokenizer larger than the vocabulary": {func(t *testing.T, dir string) {
			edit(t, dir, "config.json", func(b []byte) []byte {
				var c map[string]any
				require.NoError(t, json.Unmarshal(b, &c))
				c["vocab_size"] = 300
				out, err := json.Marshal(c)
				require.NoError(t, err)
				return out
			})
			tensors(t, dir, func(l []safetensors.Tensor) []safetensors.Tensor {
				for i := range l {
					if l[i].Name == "model.embed_tokens.weight" || l[i].Name == "lm_head.weight" {
						width := l[i].Shape[1]
						l[i] = safetensors.F32(l[i].Name, []int{300, width}, make([]float32, 300*width))
					}
				}
				return l
			})
		}, "vocab"},
		"no tokenizer": {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json"))) }, "tokenizer.json"},
		"no config":    {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "config.json"))) }, "config.json"},
		"another architecture": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "mistral"}`), 0o600))
		}, `"mistral": supported are`},
		"no folder": {func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }, "no such file"},
		"empty folder": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o700))
		}, "no model files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t)
			c.damage(t, dir)
			h := &host.Host{Store: store.NewMemory()}
			_, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: folderSpec(t, dir)})
			require.ErrorIs(t, err, activities.ErrModelInvalid)
			require.Equal(t, activities.KindModelInvalid, run.KindOf(err))
			require.ErrorContains(t, err, c.says)
			require.Empty(t, h.Store.(*store.Memory).Own(), "nothing is stored of it")
		})
	}
}
