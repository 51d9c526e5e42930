package device

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
)

// A host worker meets thousands of runs, and keeps what it read of the last ones; runs
// of one model share its tokenizer.
func TestKitsAreBounded(t *testing.T) {
	first := resolved(t, "run-0", tinySpec(t))
	var c run.Contexts
	var shared *run.BaseModel
	for i := range run.MaxContexts + 3 {
		got, err := first.Host.Resolve(t.Context(), activities.ResolveInput{Run: fmt.Sprint("run-", i), Spec: tinySpec(t, fmt.Sprintf("seed=%d", i+1))})
		require.NoError(t, err)
		rc, err := c.Read(t.Context(), first.store, activities.Run{ID: fmt.Sprint("run-", i), Spec: got.Spec, Base: first.Run.Base})
		require.NoError(t, err)
		if i == 0 {
			shared = rc.BaseModel
		}
		require.Same(t, shared, rc.BaseModel)
	}
	require.Equal(t, run.MaxContexts, c.Len())
}
