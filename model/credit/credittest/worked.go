package credittest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
)

// ComputeWorked compares each algorithm of a room, by the layer that a run calls: with its name alone,
// which pins every default, and with options that it reads. Advantages, returns and the places of what is
// learned are worked out in the room's testdata/compute.txt.
func ComputeWorked(t *testing.T, algorithms ...credit.Algorithm) {
	t.Helper()
	content, err := os.ReadFile("testdata/compute.txt")
	require.NoError(t, err)
	defaults, given := map[string]bool{}, map[string]bool{}
	for section := range strings.SplitSeq(string(content), "\n\nalgorithm ") {
		if strings.HasPrefix(section, "#") {
			continue // what the file says of itself
		}
		title, figured, _ := strings.Cut(section, "\n#")
		title = strings.Join(strings.Fields(title), " ")
		t.Run(title, func(t *testing.T) {
			name, written, _ := strings.Cut(title, " ")
			o := credit.Options{Algorithm: name}
			require.NoError(t, json.Unmarshal([]byte(written), &o))
			for _, own := range named(t, algorithms, name).Own {
				if n, ok := o.Own[own.Name].(float64); ok && own.Whole {
					o.Own[own.Name] = int(n)
				}
			}
			defaults[name], given[name] = defaults[name] || written == "{}", given[name] || written != "{}"
			_, figured, ok := strings.Cut(figured, "advantages\n")
			require.True(t, ok)
			compareWorked(t, named(t, algorithms, name), o, figured)
		})
	}
	for _, a := range algorithms {
		require.True(t, defaults[a.Name], "%s with its name alone", a.Name)
		only := true // reads nothing of the options but what another reads for it, as Observe the rate
		for _, field := range a.Fields() {
			only = only && field == "baseline_rate"
		}
		require.Equal(t, !only, given[a.Name], "%s with options", a.Name)
	}
}

func named(t *testing.T, algorithms []credit.Algorithm, name string) credit.Algorithm {
	t.Helper()
	for _, a := range algorithms {
		if a.Name == name {
			return a
		}
	}
	require.Fail(t, "no algorithm of the room", name)
	return credit.Algorithm{}
}

func compareWorked(t *testing.T, a credit.Algorithm, o credit.Options, figured string) {
	t.Helper()
	wanted, targets, second := strings.Cut(figured, "\nreturns\n")
	in := Batch(t, a)
	advantages, returns, err := a.Compute(in, o)
	require.NoError(t, err)
	want, sampled := Figures(t, wanted, 0)
	require.Equal(t, in.Mask, sampled)
	Exact(t, want, advantages, sampled)
	require.Equal(t, second, returns != nil)
	if second {
		want, places := Figures(t, targets, 0)
		Exact(t, want, returns, places)
		learns := in.Mask
		if a.Learns != nil {
			learns = a.Learns(in, o)
		}
		require.Equal(t, places, learns, "what is learned")
	}
	require.Equal(t, Batch(t, a), in, "the batch is not changed")
}
