package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	refs "github.com/reprise-rl/reprise/model/golden"
)

// readFolder reads what Load needs, and golden.json, from a folder.
func readFolder(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range append([]string{"golden.json"}, FileNames...) {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		files[name] = content
	}
	return files
}

func load(t testing.TB, folder string) *Tokenizer {
	t.Helper()
	tok, err := Load(readFolder(t, folder))
	require.NoError(t, err)
	return tok
}

type golden struct {
	Encode []struct {
		Text    string
		IDs     []int32
		Decoded *string // nil where the golden has only ids
	}
	Decode []struct {
		IDs  []int32
		Text string
	}
	Chat *struct {
		Messages []Message
		Text     string
		IDs      []int32
	}
}

// The goldens are what Hugging Face's tokenizers and transformers give:
// qwen2-tiny, qwen3-tiny and llama-tiny are model folders; smollm2 is a model's tokenizer
// with the merges that its texts need; the others are tokenizers with merges of white space, trained to
// stress the pre-tokenizer.
func TestGoldens(t *testing.T) {
	folders := map[string]string{}
	for _, name := range []string{"qwen2-tiny", "spaces", "gpt2", "llama3"} {
		folders[name] = refs.Folder(t, name, "golden.json", filepath.Join("testdata", name))
	}
	for _, name := range []string{"qwen3-tiny", "llama-tiny"} {
		folders[name] = refs.Folder(t, name, "golden.json", filepath.Join("..", "testdata", name))
	}
	folders["smollm2"] = filepath.Join("testdata", "smollm2")
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			compareGolden(t, readFolder(t, folder)["golden.json"], load(t, folder))
		})
	}
}

// SmolLM2's goldens are made with its whole tokenizer, which is not in the repository (testdata has
// one with the merges that its own texts need): `make pretrained` brings it.
func TestSmolLM2Golden(t *testing.T) {
	model := os.Getenv("REPRISE_SMOLLM2")
	if model == "" {
		model = filepath.Join("..", "..", ".reprise", "smollm2-135m")
	}
	if _, err := os.Stat(filepath.Join(model, "tokenizer.json")); err != nil {
		t.Skipf("REPRISE_SMOLLM2 names no folder of SmolLM2, and make pretrained has written none: %v", err)
	}
	content := refs.Read(t, "smollm2", "golden.json", filepath.Join("testdata", "smollm2"))
	compareGolden(t, content, load(t, model))
}

func compareGolden(t *testing.T, content []byte, tok *Tokenizer) {
	t.Helper()
	var want golden
	require.NoError(t, json.Unmarshal(content, &want))
	require.NotEmpty(t, want.Encode)
	for _, e := range want.Encode {
		ids := tok.Encode(e.Text)
		require.Equal(t, append([]int32{}, e.IDs...), append([]int32{}, ids...), "%q", e.Text)
		if e.Decoded != nil {
			require.Equal(t, *e.Decoded, tok.Decode(ids), "%q", e.Text)
		}
	}
	for _, d := range want.Decode {
		require.Equal(t, d.Text, tok.Decode(d.IDs), "%v", d.IDs)
	}
	if want.Chat == nil {
		return
	}
	text, ids, err := tok.Template(want.Chat.Messages, true)
	require.NoError(t, err)
	require.Equal(t, want.Chat.Text, text)
	require.Equal(t, want.Chat.IDs, ids)
	plain, err := tok.EncodeChat(want.Chat.Messages, true)
	require.NoError(t, err)
	require.Equal(t, text, tok.Decode(plain))
	if !slices.ContainsFunc(want.Chat.Messages, func(m Message) bool { return len(tok.specials(m.Content)) > 0 }) {
		require.Equal(t, ids, plain)
	}
}
