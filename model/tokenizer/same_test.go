package tokenizer

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiffers(t *testing.T) {
	tiny := load(t, "testdata/qwen2-tiny")
	require.Empty(t, tiny.Differs(load(t, "testdata/qwen2-tiny")))
	changed := func(of, to string) *Tokenizer {
		files := maps.Clone(readFolder(t, "testdata/qwen2-tiny"))
		text := string(files["tokenizer.json"])
		require.Contains(t, text, of)
		files["tokenizer.json"] = []byte(strings.ReplaceAll(text, of, to))
		delete(files, "chat_template.jinja")
		delete(files, "tokenizer_config.json")
		tok, err := Load(files)
		require.NoError(t, err)
		return tok
	}
	other := changed("<|endoftext|>", "<|the_end|>")
	require.Equal(t, `id 505 is "<|endoftext|>" in the one, and "<|the_end|>" in the other`, tiny.Differs(other))
	require.Equal(t, `id 505 is "<|the_end|>" in the one, and "<|endoftext|>" in the other`, other.Differs(tiny))
	long := strings.Repeat("x", 60)
	require.Equal(t, `id 505 is "<|endoftext|>" in the one, and "`+long[:40]+`…" in the other`, tiny.Differs(changed("<|endoftext|>", long)))
	// One has tokens more; a hole in one is none in the other.
	short := *tiny
	short.known, short.text = tiny.known[:507], tiny.text[:507]
	require.Equal(t, `id 507 is "<|im_end|>" in the one, and no token in the other`, tiny.Differs(&short))
	require.Equal(t, `id 507 is no token in the one, and "<|im_end|>" in the other`, short.Differs(tiny))
	longer := short
	longer.known, longer.text = append(append([]bool{}, short.known...), false), append(append([]string{}, short.text...), "")
	require.Empty(t, short.Differs(&longer))
	require.NotEmpty(t, tiny.Differs(load(t, "testdata/smollm2")))
}
