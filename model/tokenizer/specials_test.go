package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Special tokens that the files of a folder name are added tokens, by transformers' ids
// (testdata/make_specials.py).
func TestNamedSpecialTokens(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "specials.json"))
	require.NoError(t, err)
	var golden struct {
		Text      string
		Tokenizer json.RawMessage
		Cases     []struct {
			Config, Special json.RawMessage
			IDs             []int32
		}
	}
	require.NoError(t, json.Unmarshal(content, &golden))
	require.Greater(t, len(golden.Cases), 80)
	for _, c := range golden.Cases {
		files := map[string][]byte{"tokenizer.json": golden.Tokenizer, "tokenizer_config.json": c.Config}
		if string(c.Special) != "null" {
			files[specialTokensFile] = c.Special
		}
		tok, err := Load(files)
		require.NoError(t, err, "%s and %s", c.Config, c.Special)
		require.Equal(t, c.IDs, tok.Encode(golden.Text), "%s and %s: %v", c.Config, c.Special, tok.warnings)
	}

	load := func(config string) error {
		_, err := Load(map[string][]byte{"tokenizer.json": golden.Tokenizer, "tokenizer_config.json": []byte(config)})
		return err
	}
	require.NoError(t, load(`{"eos_token": "<in>"}`), "in the vocabulary")
	for config, says := range map[string]string{
		`{"eos_token": "<new>"}`:                         `eos_token "<new>" is no token of tokenizer.json`,
		`{"extra_special_tokens": [{"content": 1}]}`:     "extra_special_tokens",
		`{"additional_special_tokens": ["<in>", "<x>"]`:  "tokenizer_config.json",
		`{"pad_token": {"content": "<p>", "lstrip": 3}}`: "pad_token",
	} {
		err := load(config)
		require.ErrorIs(t, err, ErrFiles, config)
		require.ErrorContains(t, err, says, config)
	}
}
