package activities

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host worker meets thousands of runs, and keeps what it read of the last ones; runs
// of one model share its tokenizer.
func TestKitsAreBounded(t *testing.T) {
	first := resolved(t, "run-0", tinySpec(t))
	var c runContexts
	var shared *baseModel
	for i := range maxRunContexts + 3 {
		got, err := first.Host.Resolve(t.Context(), ResolveInput{Run: fmt.Sprint("run-", i), Spec: tinySpec(t, fmt.Sprintf("seed=%d", i+1))})
		require.NoError(t, err)
		rc, err := c.read(t.Context(), first.store, Run{ID: fmt.Sprint("run-", i), Spec: got.Spec, Base: first.Run.Base})
		require.NoError(t, err)
		if i == 0 {
			shared = rc.baseModel
		}
		require.Same(t, shared, rc.baseModel)
	}
	require.Equal(t, maxRunContexts, c.len())
}
