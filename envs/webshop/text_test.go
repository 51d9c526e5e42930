package webshop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Lower case as str.lower of Python 3 gives it.
func TestLowered(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "A b": "a b", "ÉTÉ": "été", "İnci": "i̇nci", "ΟΔΟΣ": "οδος", "ΣΑΣ Σ": "σας σ", "ΟΔΟΣ.": "οδος.", "ΣΑ": "σα", "Größe": "größe", "K": "k",
	} {
		require.Equal(t, want, lowered(text), "%q", text)
		require.Equal(t, want, lowered(want), "a second time changes nothing")
	}
}

// White space as str.strip of Python 3 has it.
func TestTrimmed(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " a  b\n": "a  b", "\x1c\x1d\x1e\x1fa\x1b": "a\x1b", "\u00a0\u0085\u2028\u3000a": "a", "\u200ba\ufeff": "\u200ba\ufeff", " \x1f ": "",
	} {
		require.Equal(t, want, trimmed(text), "%q", text)
	}
}
