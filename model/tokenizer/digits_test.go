package tokenizer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ids are those of Hugging Face's tokenizers 0.23.3.
func TestDigitsAndMissingBytes(t *testing.T) {
	texts := []string{"ab 12½12", "a\tb\x04\x05b aéb", "½1 1²2", "日a"}
	const source = `{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": %t},
		{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]}, "decoder": {"type": "ByteLevel"},
		"model": {"type": "BPE", "unk_token": %s, "fuse_unk": %t,
		"vocab": {"[UNK]": 0, "a": 1, "b": 2, "ab": 3, "1": 4, "2": 5, "12": 6, "Ġ": 7, "Ġ1": 8, "Â": 9, "½": 10, "Â½": 11},
		"merges": ["a b", "1 2", "Ġ 1", "Â ½"]}}`
	for _, c := range []struct {
		individual, fuse bool
		unk              string
		ids              [][]int32
	}{
		{true, false, `null`, [][]int32{{3, 7, 4, 5, 11, 4, 5}, {1, 2, 2, 7, 3}, {11, 4, 7, 4, 9, 5}, {1}}},
		{false, true, `null`, [][]int32{{3, 7, 6, 11, 6}, {1, 2, 2, 7, 3}, {11, 4, 7, 4, 9, 5}, {1}}},
		{true, false, `"[UNK]"`, [][]int32{
			{3, 7, 4, 5, 11, 4, 5}, {1, 0, 2, 0, 0, 2, 7, 1, 0, 0, 2}, {11, 4, 7, 4, 9, 0, 5}, {0, 0, 0, 1},
		}},
		{false, true, `"[UNK]"`, [][]int32{
			{3, 7, 6, 11, 6}, {1, 0, 2, 0, 2, 7, 1, 0, 2}, {11, 4, 7, 4, 9, 0, 5}, {0, 1},
		}},
	} {
		file := fmt.Sprintf(source, c.individual, c.unk, c.fuse)
		tok, err := Load(map[string][]byte{"tokenizer.json": []byte(file)})
		require.NoError(t, err)
		for i, text := range texts {
			require.Equal(t, c.ids[i], tok.Encode(text), "%q, individual %t, unk %s, fuse %t", text, c.individual, c.unk, c.fuse)
		}
		require.Len(t, tok.Warnings(), 1)
		require.Contains(t, tok.Warnings()[0], "no token for some bytes")
		require.Contains(t, tok.Warnings()[0], ": 0x00-0x1f 0x21-0x30 0x33-0x60 0x63-0xbc 0xbe-0xbf 0xc3-0xf4")
	}
}

// Whoever mends a file meets all of its problems at once.
func TestAllProblemsOfAFile(t *testing.T) {
	_, err := Load(map[string][]byte{"tokenizer.json": []byte(`{"model": {"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": ["a b"]},
		"normalizer": {"type": "Precompiled"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}, {"type": "ByteLevel"}]},
		"post_processor": {"type": "BertProcessing"}, "decoder": {"type": "WordPiece"}}`)})
	require.ErrorIs(t, err, ErrFiles)
	for _, says := range []string{"unusable tokenizer files: tokenizer.json: ", "dropout", `"a" and "b"`, "Precompiled", "BertPreTokenizer", "BertProcessing", "decoder"} {
		require.ErrorContains(t, err, says)
	}
}
