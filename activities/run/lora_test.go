package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A policy's adapters are those of its spec, with the hub's name of their base model.
func TestLoRAOf(t *testing.T) {
	none, err := loraOf(spec.Policy{From: "hf:a/b"})
	require.NoError(t, err)
	require.Equal(t, model.LoRA{}, none)
	p := spec.Policy{From: "hf:some/adapters", Base: "hf:some/base@main", LoRA: &spec.LoRA{Rank: 4, Alpha: 8, RSLoRA: true, Targets: []string{"v_proj", "q_proj"}}}
	got, err := loraOf(p)
	require.NoError(t, err)
	require.Equal(t, []any{4, 8.0, true, "some/base", []string{"q_proj", "v_proj"}}, []any{got.Rank, got.Alpha, got.RSLoRA, got.Base, got.Targets.Names()})
	require.Equal(t, spec.LoRA{Rank: 4, Alpha: 8, RSLoRA: true, Targets: []string{"q_proj", "v_proj"}}, SpecLoRA(got))
	for from, want := range map[string]string{"hf:some/model": "some/model", "hf:some/model@v2": "some/model", "starter": "", "folder:/m": "", "model:0123456789ab": "", "nothing": ""} {
		require.Equal(t, want, baseName(spec.Policy{From: from}), from)
	}
	require.Equal(t, "some/base", baseName(p), "the base model's")
	for name, bad := range map[string]spec.LoRA{"rank": {Rank: 0, Alpha: 8, Targets: []string{"q_proj"}}, "targets": {Rank: 4, Alpha: 8, Targets: []string{"x"}}} {
		p.LoRA = &bad
		_, err := loraOf(p)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
}

// adapterFiles are the files of adapters over a base model, with a tokenizer if it is wanted.
func adapterFiles(t *testing.T, base string, tokenizer bool) []store.FolderFile {
	t.Helper()
	l, err := loraOf(spec.Policy{Base: base, LoRA: &spec.LoRA{Rank: 4, Alpha: 8, Targets: []string{"q_proj"}}})
	require.NoError(t, err)
	files := map[string][]byte{model.AdapterConfigFile: l.JSON(), model.AdapterFile: []byte("weights of the adapters")}
	if tokenizer {
		files["tokenizer.json"] = []byte("another tokenizer")
	}
	return FolderFiles(files)
}

// Adapters are stored beside their base model, as one model; a tokenizer of theirs takes the place of all of the base
// model's.
func TestPutAdapters(t *testing.T) {
	s := store.NewMemory()
	index, err := PutModel(t.Context(), s, FolderFiles(map[string][]byte{
		"config.json": []byte("c"), "tokenizer.json": []byte("t"), "tokenizer_config.json": []byte("tc"), "model.safetensors": []byte("w"), model.AdapterFile: []byte("older adapters"),
	}))
	require.NoError(t, err)
	base, err := ReadIndex(t.Context(), s, index)
	require.NoError(t, err)
	read := func(own bool) store.ModelRef {
		ref, err := PutAdapters(t.Context(), s, base, adapterFiles(t, "hf:some/base", own))
		require.NoError(t, err)
		for range repeats {
			again, err := PutAdapters(t.Context(), s, base, adapterFiles(t, "hf:some/base", own))
			require.NoError(t, err)
			require.Equal(t, ref, again)
		}
		m, err := ReadIndex(t.Context(), s, ref)
		require.NoError(t, err)
		require.Equal(t, store.FolderDigest(m.Files), m.Digest)
		require.NotEqual(t, base.Digest, m.Digest)
		return m
	}
	m := read(false)
	require.Equal(t, []string{model.AdapterConfigFile, model.AdapterFile, "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}, SortedKeys(m.Files))
	require.Equal(t, base.Files["model.safetensors"], m.Files["model.safetensors"], "where it is")
	require.Equal(t, m.Dir+"/"+model.AdapterFile, m.Files[model.AdapterFile].Key)
	content, err := store.GetArtifact(t.Context(), s, m.Files[model.AdapterFile])
	require.NoError(t, err)
	require.Equal(t, "weights of the adapters", string(content))
	m = read(true)
	require.Equal(t, []string{model.AdapterConfigFile, model.AdapterFile, "config.json", "model.safetensors", "tokenizer.json"}, SortedKeys(m.Files))
	require.NotEqual(t, base.Files["tokenizer.json"], m.Files["tokenizer.json"])
	require.Len(t, base.Files, 5, "the base model is as before")
}

// A policy that starts from adapters has theirs; one that starts from a whole model has none, and names no base.
func TestStarting(t *testing.T) {
	s := store.NewMemory()
	index, err := PutModel(t.Context(), s, FolderFiles(map[string][]byte{"config.json": []byte("c")}))
	require.NoError(t, err)
	base, err := ReadIndex(t.Context(), s, index)
	require.NoError(t, err)
	adapted, err := PutAdapters(t.Context(), s, base, adapterFiles(t, "hf:some/base", false))
	require.NoError(t, err)

	p := spec.Policy{From: "folder:/m"}
	got, err := Starting(t.Context(), s, p, index, nil)
	require.NoError(t, err)
	require.Equal(t, p, got)
	got, err = Starting(t.Context(), s, p, adapted, nil)
	require.NoError(t, err)
	require.Equal(t, []any{4, 8.0, []string{"q_proj"}}, []any{got.LoRA.Rank, got.LoRA.Alpha, got.LoRA.Targets})
	require.Equal(t, "hf:some/base", got.Base)
	nameless, err := PutAdapters(t.Context(), s, base, adapterFiles(t, "", false))
	require.NoError(t, err)
	got, err = Starting(t.Context(), s, p, nameless, nil)
	require.NoError(t, err)
	require.Equal(t, "folder:/m", got.Base, "the adapters name no base model")

	p.Base = "hf:some/base"
	_, err = Starting(t.Context(), s, p, index, nil)
	require.ErrorIs(t, err, activities.ErrModelInvalid)
	require.ErrorContains(t, err, "folder:/m is a whole model and has no adapters")
	bad := base
	bad.Dir, bad.Files = "models/bad", map[string]store.Ref{model.AdapterConfigFile: base.Files["config.json"]}
	index, err = PutIndex(t.Context(), s, bad)
	require.NoError(t, err)
	_, err = Starting(t.Context(), s, p, index, nil)
	require.ErrorIs(t, err, activities.ErrModelInvalid)
	ref := bad.Files[model.AdapterConfigFile]
	ref.Key = "models/nothing"
	bad.Files[model.AdapterConfigFile] = ref
	index, err = PutIndex(t.Context(), s, bad)
	require.NoError(t, err)
	_, err = Starting(t.Context(), s, p, index, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	index.Key = "models/nothing"
	_, err = Starting(t.Context(), s, p, index, nil)
	require.ErrorContains(t, err, "model index: ")
}
