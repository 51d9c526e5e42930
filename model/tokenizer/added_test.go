package tokenizer

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A normalized added token is looked for in normalized text. The ids are those of tokenizers 0.23.3, the
// case is one that people met.
func TestNormalizedAddedToken(t *testing.T) {
	files := readFolder(t, filepath.Join("..", "testdata", "qwen3-tiny"))
	var file map[string]any
	require.NoError(t, json.Unmarshal(files["tokenizer.json"], &file))
	added := map[string]any{"id": 434, "content": "cafe\u0301", "normalized": true}
	file["added_tokens"] = append(file["added_tokens"].([]any), added)
	var err error
	files["tokenizer.json"], err = json.Marshal(file)
	require.NoError(t, err)
	tok, err := Load(files)
	require.NoError(t, err)
	require.Equal(t, []int32{434, 220, 434}, tok.Encode("café cafe\u0301"))
	// é is a letter of the byte alphabet, of the byte 0xe9: the decoder takes the token for bytes.
	require.Equal(t, "caf\ufffd", tok.Decode([]int32{434}))
}

// llama is a tokenizer of Llama 2's kind. The ids of the tests are those of tokenizers 0.23.3.
func llama(t *testing.T, normalizer, preTokenizer string) *Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	add := func(tokens ...string) {
		for _, token := range tokens {
			vocab[token] = len(vocab)
		}
	}
	add("<unk>", "<s>", "</s>")
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b))
	}
	add("▁", "a", "b", "c", "▁a", "ab", "▁ab", "<", "/", "s", ">")
	written, err := json.Marshal(vocab)
	require.NoError(t, err)
	file := fmt.Sprintf(`{"added_tokens": [{"id": 0, "content": "<unk>"}, {"id": 1, "content": "<s>"}, {"id": 2, "content": "</s>", "rstrip": true}],
		"normalizer": %s, "pre_tokenizer": %s,
		"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
			{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
		"model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": %s,
			"merges": ["▁ a", "a b", "▁a b"]}}`, normalizer, preTokenizer, written)
	tok, err := Load(map[string][]byte{"tokenizer.json": []byte(file)})
	require.NoError(t, err)
	require.Empty(t, tok.Warnings())
	return tok
}

func TestLlama(t *testing.T) {
	for name, c := range map[string]struct {
		tok    *Tokenizer
		second []int32
		text   string
		parts  []int32
	}{
		"normalizer": {
			llama(t, `{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}`, `null`),
			[]int32{1, 265, 2, 265, 259, 198, 172}, "<s> ab</s> ab é", []int32{1, 259, 266, 268, 269, 264},
		},
		"metaspace": {
			llama(t, `null`, `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}`),
			[]int32{1, 264, 2, 264, 259, 198, 172}, "<s>ab</s>ab é", []int32{1, 266, 268, 269, 264},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []int32{265, 265}, c.tok.Encode("ab ab"))
			require.Equal(t, "ab ab", c.tok.Decode([]int32{265, 265}))
			require.Equal(t, c.second, c.tok.Encode("<s>ab</s>  ab é"))
			require.Equal(t, c.text, c.tok.Decode(c.second))
			require.Equal(t, []int32{259, 198, 172}, c.tok.Encode("é"))

			// A token's own bytes have the space that Decode leaves out at the start of a text.
			require.Equal(t, " ab", c.tok.Bytes(265))
			require.Equal(t, "\xc3", c.tok.Bytes(198))
			// A tag goes on from a text.
			require.Equal(t, []int32{264}, c.tok.EncodeTag("ab"))
			// White space that a template's own token takes is a content's too; a content spells no token.
			parts := []part{{"<s>", true}, {"ab", false}, {"</s>", true}, {"  ab é", false}}
			require.Equal(t, c.second, c.tok.encodeParts(parts, true))
			require.Equal(t, c.parts, c.tok.encodeParts([]part{{"<s>", true}, {"<s>ab", false}}, true))
		})
	}
}

// Added tokens of a template's own text are found in normalized text too, and those of a content are not.
func TestNormalizedTokensOfTheTemplate(t *testing.T) {
	const source = `{"added_tokens": [{"id": 3, "content": "é", "normalized": true}], "normalizer": {"type": "NFC"},
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
		"model": {"type": "BPE", "vocab": {"a": 0, "Ã": 1, "©": 2}, "merges": []}}`
	tok, err := Load(map[string][]byte{"tokenizer.json": []byte(source)})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 3, 0, 1, 2}, tok.encodeParts([]part{{"ae\u0301", true}, {"aé", false}}, true))
	require.Equal(t, []int32{1, 2, 3}, tok.encodeParts([]part{{"é", false}, {"é", true}}, true))
	require.Equal(t, tok.Encode("aéa"), tok.encodeParts([]part{{"a", false}, {"é", true}, {"a", false}}, true))
}
