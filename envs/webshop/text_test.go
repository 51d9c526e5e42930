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
