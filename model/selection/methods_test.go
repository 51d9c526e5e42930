package selection

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMethodsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Methods {
		require.False(t, seen[m.Name], "%s stands twice", m.Name)
		seen[m.Name] = true
		require.NotEmpty(t, m.Kept, m.Name)
		require.NotEmpty(t, m.Source, m.Name)
		require.NotContains(t, m.Kept+m.Source, "|", "it would end a cell of the docs: %s", m.Name)
		require.Contains(t, []string{"", "keep", "count", "p"}, m.Value, "a field of the spec: %s", m.Name)
		text, err := os.ReadFile(m.File)
		require.NoError(t, err)
		require.Contains(t, string(text), `Name: "`+m.Name+`"`, "%s has the entry", m.File)
	}
	for _, m := range Metrics {
		require.False(t, seen[m.Name], "%s stands twice", m.Name)
		seen[m.Name] = true
		require.NotEmpty(t, m.Is, m.Name)
		require.NotEmpty(t, m.Source, m.Name)
		require.NotContains(t, m.Is+m.Source, "|", "it would end a cell of the docs: %s", m.Name)
	}
}

// The table is right about ranking and standard deviations: a method that does not rank
// keeps the same groups under any scores, and the standard deviation of one member is 0.
func TestTheTablesSayHowTheyRank(t *testing.T) {
	for _, m := range Methods {
		o := Options{Method: m.Name, Order: Largest, Value: 0.5}
		if m.Value == "count" {
			o.Value = 2
		}
		require.NoError(t, o.check())
		up, down := o.choose([]float64{1, 2, 3, 4, 9}, 5), o.choose([]float64{9, 4, 3, 2, 1}, 5)
		require.Equal(t, m.Ranks, up[0] != down[0], m.Name)
	}
	one := Groups{Rewards: [][]float64{{3}}, Entropies: [][]float64{{3}}, Exact: [][]float64{{3}}, Lengths: [][]float64{{3}}}
	for _, m := range Metrics {
		scores, err := Score(one, m.Name)
		require.NoError(t, err)
		require.Equal(t, m.Deviation, scores[0] == 0, m.Name)
	}
}
