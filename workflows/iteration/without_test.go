package iteration

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// An order that lacks a part that is due ends in an error that names the part, and in
// no commit.
func TestLeftOut(t *testing.T) {
	require.Equal(t, []string{
		"baseline", "rollout", "select", "score", "diagnose", "credit", "update", "snapshot", "evaluate", "detect", "commit",
	}, Parts())
	for _, part := range append(Parts(), "everything", "score everything") {
		t.Run(part, func(t *testing.T) {
			t.Cleanup(Without(part))
			sc := everything()
			if !slices.Contains(Parts(), part) {
				sc.settings.Selection.Metric = "exact_entropy"
			}
			it := New(sc.start, sc.state())
			calls, err := it.Ready()
			for err == nil {
				require.NotEmpty(t, calls)
				it.Apply(calls[0], sc.result(calls[0]))
				require.False(t, it.Done())
				calls, err = it.Ready()
			}
			require.EqualError(t, err, "iteration 0 of run run cannot be completed: no step is left that does "+part)
			require.Nil(t, it.Committed(0))
		})
	}
	require.Len(t, New(Start{}, &State{}).order, len(order), "the next iteration is whole")
	require.Panics(t, func() { Without("advantage") })
}
