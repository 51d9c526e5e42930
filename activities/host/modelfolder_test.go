package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// folder copies a tiny model into a folder of its own.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../model/testdata/llama-tiny")))
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

// edit changes fields of a JSON file.
func edit(t *testing.T, dir, name string, change func(map[string]any)) {
	t.Helper()
	fields := map[string]any{}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &fields))
	}
	change(fields)
	b, err = json.Marshal(fields)
	require.NoError(t, err)
	put(t, dir, name, string(b))
}

// weights changes the tensors of a model.
func weights(t *testing.T, dir string, change func([]safetensors.Tensor) []safetensors.Tensor) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, model.WeightsFile))
	require.NoError(t, err)
	f, err := safetensors.Decode(b)
	require.NoError(t, err)
	b, err = safetensors.Encode(change(f.Tensors), f.Metadata)
	require.NoError(t, err)
	put(t, dir, model.WeightsFile, string(b))
}

// both reads a folder as validate does and imports it as Resolve does; the texts are the same.
func both(t *testing.T, dir string) error {
	t.Helper()
	m, err := OpenModelFolder(dir)
	if err == nil {
		err = m.CheckFinite()
		m.Close()
	}
	s := store.NewMemory()
	_, _, imported := ImportBase(t.Context(), s, spec.Policy{From: "folder:" + dir})
	if err == nil {
		require.NoError(t, imported)
		return nil
	}
	require.ErrorIs(t, err, activities.ErrModelInvalid)
	require.ErrorIs(t, imported, activities.ErrModelInvalid)
	require.Equal(t, activities.KindModelInvalid, run.KindOf(imported))
	require.Empty(t, s.Own(), "nothing is stored")
	said := strings.TrimSuffix(err.Error(), ": "+activities.ErrModelInvalid.Error())
	require.Contains(t, imported.Error(), said[strings.LastIndex(said, "tensor \"")+1:])
	return err
}

// Every file of a folder that is another kind of file is named, with what to do.
func TestBrokenDownloads(t *testing.T) {
	require.NoError(t, both(t, folder(t)))
	broken := map[string]struct{ content, says string }{
		"git-lfs": {"version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 123\n",
			"a git-lfs pointer, not the file itself: run git lfs pull"},
		"web page": {"<!DOCTYPE html><html><title>Sign in</title></html>", "a web page (HTML), perhaps a login page"},
		"gzip":     {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "gzip-compressed: unpack it with gunzip"},
		"zip":      {"PK\x03\x04\x14\x00\x00\x00", "a zip archive: unpack it"},
		"empty":    {"", "empty (0 bytes): download it again"},
		"zeros":    {strings.Repeat("\x00", 4096), "zero bytes where its beginning should be"},
		"answer":   {"Entry not found", "an answer of the hub"},
	}
	names := []string{model.ConfigFile, "tokenizer.json", "tokenizer_config.json", "generation_config.json",
		"chat_template.jinja", model.WeightsFile}
	for name, b := range broken {
		for _, file := range names {
			dir := folder(t)
			put(t, dir, file, b.content)
			err := both(t, dir)
			require.ErrorContains(t, err, file, name)
			require.ErrorContains(t, err, b.says, file)
		}
		dir := folder(t) // an index
		require.NoError(t, os.Remove(filepath.Join(dir, model.WeightsFile)))
		put(t, dir, model.WeightsIndex, b.content)
		require.ErrorContains(t, both(t, dir), b.says, model.WeightsIndex)
	}
	for file, cut := range map[string]string{
		model.ConfigFile: "cut off after", "tokenizer.json": "cut off after", model.WeightsFile: "the file is cut off: its header describes",
	} {
		dir := folder(t)
		b, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		put(t, dir, file, string(b[:len(b)*3/4]))
		require.ErrorContains(t, both(t, dir), cut)
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
		require.NoError(t, os.Mkdir(filepath.Join(dir, file), 0o700))
		require.ErrorContains(t, both(t, dir), file+": it is a folder and not a regular file")
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
		require.NoError(t, os.Symlink("blob", filepath.Join(dir, file)))
		require.ErrorContains(t, both(t, dir), file+": it links to blob: the file that it links to is not there")
	}
	dir := folder(t)
	require.NoError(t, os.Rename(filepath.Join(dir, model.WeightsFile), filepath.Join(dir, "pytorch_model.bin")))
	require.ErrorContains(t, both(t, dir), "save the weights as safetensors (pytorch_model.bin is not read; it is PyTorch's)")
	dir = folder(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	require.ErrorContains(t, both(t, dir), "tokenizer.json is missing: save the tokenizer by transformers' save_pretrained")
	dir = folder(t)
	edit(t, dir, model.ConfigFile, func(c map[string]any) { c["hidden_size"] = 2 * c["hidden_size"].(float64) })
	require.ErrorContains(t, both(t, dir), "should be")
	put(t, dir, model.ConfigFile, `{"model_type": "llama", "rope_theta": Infinity}`)
	require.ErrorContains(t, both(t, dir), `"Infinity", which is no number in JSON`)
	require.ErrorContains(t, both(t, t.TempDir()), "the folder is empty")
}

// A weight that is NaN or infinite is refused before anything is stored, with its tensor and place.
func TestRefusesNotFinite(t *testing.T) {
	for _, dtype := range []safetensors.DType{safetensors.Float32, safetensors.BFloat16, safetensors.Float16} {
		dir := folder(t)
		weights(t, dir, func(tensors []safetensors.Tensor) []safetensors.Tensor {
			in := &tensors[len(tensors)-1]
			in.DType, in.Data = dtype, bytes.Repeat([]byte{0}, len(in.Data)/4*dtype.Size())
			copy(in.Data[len(in.Data)-2:], "\xff\xff")
			return tensors
		})
		err := both(t, dir)
		require.ErrorIs(t, err, safetensors.ErrNotFinite)
		require.ErrorContains(t, err, string(dtype)+") is NaN at [")
	}
}

// Of two files that say one thing, the one is read that transformers reads, and the difference is said.
// What transformers 5.24 does was tried with the same changes.
func TestSaysTheDifference(t *testing.T) {
	const other = "<|end_header_id|>"
	x := map[string]any{"content": "<|x|>", "lstrip": false, "rstrip": false, "single_word": false, "normalized": false, "special": true}
	decoder := func(id string, token map[string]any) func(map[string]any) {
		return func(c map[string]any) { c["added_tokens_decoder"] = map[string]any{id: token} }
	}
	for name, c := range map[string]struct {
		change func(*testing.T, string)
		says   string // "" for nothing
		check  func(*testing.T, *ModelFolder, *tokenizer.Tokenizer)
	}{
		"nothing": {func(*testing.T, string) {}, "", nil},
		"two templates": {func(t *testing.T, dir string) {
			edit(t, dir, "tokenizer_config.json", func(c map[string]any) { c["chat_template"] = "{{ messages[0].content }}" })
		}, "chat_template.jinja and tokenizer_config.json have different chat templates: the former is used", nil},
		"the same template twice": {func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
			require.NoError(t, err)
			edit(t, dir, "tokenizer_config.json", func(c map[string]any) { c["chat_template"] = string(b) + "\n" })
		}, "", nil},
		"two ends": {func(t *testing.T, dir string) {
			edit(t, dir, model.ConfigFile, func(c map[string]any) { c["eos_token_id"] = 434 })
		}, "generation_config.json and config.json have different eos_token_id", nil},
		"special tokens, older": {func(t *testing.T, dir string) {
			edit(t, dir, "special_tokens_map.json", func(c map[string]any) { c["eos_token"] = other })
		}, "special_tokens_map.json and tokenizer_config.json name different tokens as eos_token: the former's is used", nil},
		"special tokens, newer": {func(t *testing.T, dir string) {
			edit(t, dir, "special_tokens_map.json", func(c map[string]any) { c["eos_token"] = other })
			edit(t, dir, "tokenizer_config.json", func(c map[string]any) { c["added_tokens_decoder"] = map[string]any{} })
		}, "name different tokens as eos_token: the latter's is used", nil},
		"a new token": {func(t *testing.T, dir string) {
			edit(t, dir, model.ConfigFile, func(c map[string]any) { require.GreaterOrEqual(t, c["vocab_size"].(float64), 438.0) })
			edit(t, dir, "tokenizer_config.json", decoder("437", x))
		}, `tokenizer_config.json has the added token "<|x|>", which tokenizer.json lacks: it is added`, func(t *testing.T, _ *ModelFolder, tok *tokenizer.Tokenizer) {
			require.Equal(t, []int32{437}, tok.EncodeTag("<|x|>"))
		}},
		"a new token, older": {func(t *testing.T, dir string) {
			edit(t, dir, "added_tokens.json", func(c map[string]any) { c["<|x|>"] = 437 })
		}, "added_tokens.json has the added token", nil},
		"the same tokens": {func(t *testing.T, dir string) {
			edit(t, dir, "tokenizer_config.json", decoder("433", map[string]any{"content": "<|begin_of_text|>", "special": true}))
		}, "", nil},
		"whole and shards": {func(t *testing.T, dir string) {
			put(t, dir, model.WeightsIndex, `{"weight_map": {"a": "model-00001-of-00002.safetensors"}}`)
			put(t, dir, "model-00001-of-00002.safetensors", "no matter what")
		}, "model.safetensors and model.safetensors.index.json are both in the model's folder. The former is read", func(t *testing.T, m *ModelFolder, _ *tokenizer.Tokenizer) {
			require.Equal(t, []string{model.WeightsFile}, m.weights)
			for _, f := range m.files {
				require.NotContains(t, f.Name, "-of-")
			}
		}},
		"two vocabularies": {func(t *testing.T, dir string) { put(t, dir, "vocab.json", `{"a": 0}`) }, "vocab.json and tokenizer.json have different vocabularies: the latter's is used", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			c.change(t, dir)
			require.NoError(t, both(t, dir))
			m, err := OpenModelFolder(dir)
			require.NoError(t, err)
			defer m.Close()
			said := strings.Join(append(m.Warnings, m.Notes...), "\n")
			if c.says == "" {
				require.Empty(t, said)
			}
			require.Contains(t, said, c.says)
			if c.check != nil {
				tok, err := tokenizer.Load(m.Small)
				require.NoError(t, err)
				c.check(t, m, tok)
			}
		})
	}
	// What transformers would do with these is not done here, and they are refused.
	for says, change := range map[string]func(*testing.T, string){
		`transformers would give the id 437`: func(t *testing.T, dir string) { edit(t, dir, "tokenizer_config.json", decoder("999", x)) },
		"transformers takes additional_chat_templates/default.jinja before every other": func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "additional_chat_templates"), 0o700))
			put(t, dir, "additional_chat_templates/default.jinja", "x")
		},
		"none is the default": func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "additional_chat_templates"), 0o700))
			put(t, dir, "additional_chat_templates/tool_use.jinja", "x")
			require.NoError(t, os.Remove(filepath.Join(dir, "chat_template.jinja")))
		},
	} {
		dir := folder(t)
		change(t, dir)
		require.ErrorContains(t, both(t, dir), says)
	}
}

// A folder of a hub's cache is the same model as the plain folder.
func TestImportsHubsFolder(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	of := filepath.Join(t.TempDir(), "models--tiny--llama")
	require.NoError(t, os.CopyFS(filepath.Join(of, "blobs"), os.DirFS(folder(t))))
	require.NoError(t, os.MkdirAll(filepath.Join(of, "snapshots", commit), 0o700))
	entries, err := os.ReadDir(filepath.Join(of, "blobs"))
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Symlink("../../blobs/"+e.Name(), filepath.Join(of, "snapshots", commit, e.Name())))
	}
	s := store.NewMemory()
	want, _, err := ImportBase(t.Context(), s, spec.Policy{From: "folder:" + folder(t)})
	require.NoError(t, err)
	for _, dir := range []string{of, filepath.Join(of, "snapshots", commit)} {
		require.NoError(t, both(t, dir))
		got, _, err := ImportBase(t.Context(), s, spec.Policy{From: "folder:" + dir})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
