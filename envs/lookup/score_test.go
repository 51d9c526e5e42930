package lookup

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Normal forms and rewards are those of Search-R1's and SQuAD's own functions: see testdata/make_scores.py.
func TestGoldenScores(t *testing.T) {
	b, err := os.ReadFile("testdata/scores.json")
	require.NoError(t, err)
	var golden struct {
		Texts  []struct{ Text, Normal string }
		Scores []struct {
			Answer        string
			Right         []string
			Em, Subem, F1 float64
		}
	}
	require.NoError(t, json.Unmarshal(b, &golden))
	require.Greater(t, len(golden.Texts), 100)
	require.Greater(t, len(golden.Scores), 100)
	for _, c := range golden.Texts {
		require.Equal(t, c.Normal, Normalize(c.Text), "%q", c.Text)
	}
	for _, c := range golden.Scores {
		right := make([]string, len(c.Right))
		for i, r := range c.Right {
			right[i] = Normalize(r)
		}
		for reward, want := range map[string]float64{Exact: c.Em, Contains: c.Subem, F1: c.F1} {
			pays, solved := score(reward, Normalize(c.Answer), right)
			require.Equal(t, want, pays, "%s of %q for %q", reward, c.Answer, c.Right)
			require.Equal(t, map[bool]bool{true: c.Em == 1, false: want == 1}[reward == F1], solved, "%s of %q for %q", reward, c.Answer, c.Right)
		}
	}
}

// What is normalized stays as it is, and has neither punctuation nor blanks at its ends.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"", " The  A-b ", "\xff", "İ", "ΑΣ. Β", "a\u0301", "x\x1cthe\u200b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		normal := Normalize(text)
		require.Equal(t, normal, Normalize(normal))
		require.False(t, strings.ContainsAny(normal, punctuation), normal)
		for _, word := range strings.Split(normal, " ") {
			require.NotContains(t, []string{"a", "an", "the"}, word)
		}
	})
}
