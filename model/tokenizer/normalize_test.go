package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The normal forms are those of tokenizers' version of Unicode, for every character: a newer x/text
// that knows more of them fails here, and recent wants its new characters. testdata/make_unicode.py
// makes the digests.
func TestNormalForms(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "forms.json"))
	require.NoError(t, err)
	var want map[string]string
	require.NoError(t, json.Unmarshal(b, &want))
	require.Len(t, want, 4)
	for name, digest := range want {
		f := form{compatibility: strings.Contains(name, "K"), compose: strings.HasSuffix(name, "C")}
		h := sha256.New()
		for r := range rune(0x30000) {
			if r >= 0xd800 && r <= 0xdfff {
				continue
			}
			marks := 1
			if r < 0x500 {
				marks = 40 // x/text breaks up more than 30
			}
			for _, text := range []string{string(r), "a\u0345" + string(r), "a" + string(r) + "\u0334", string(r) + strings.Repeat("\u0301", marks)} {
				h.Write([]byte(f.normalize(text)))
			}
		}
		require.Equal(t, digest, hex.EncodeToString(h.Sum(nil)), name)
	}
}
