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

// What cannot be printed as repr of Python 3 writes it, within its quotes.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a b": "a b", "é日😀": "é日😀", "a\tb\nc\rd": `a\tb\nc\rd`, "\x00\x1f\x7f\u0085\u00a0": `\x00\x1f\x7f\x85\xa0`, "\u00ad": `\xad`,
		"\u200b\u2028\u3000\ufeff": `\u200b\u2028\u3000\ufeff`, "\U000e0001": `\U000e0001`, "\u0301": "\u0301",
	} {
		require.Equal(t, want, visible(text), "%q", text)
	}
	// thefuzz 0.22.1: token_set_ratio("7\xa0inch", ("size", "7\xa0inch")) is what these are.
	require.Equal(t, 53, tokenSetRatio("7\u00a0inch", pairColor("size", "7\u00a0inch")))
	require.Equal(t, 100, tokenSetRatio("7 inch", pairColor("size", "7 inch")))
	require.Equal(t, 100, tokenSetRatio("left\tside", pairColor("side", "left\tside")))
}
