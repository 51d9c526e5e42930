package iteration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Calls of tools are answered after each sample. The environment's step has the calls of its turn, and the manifest those
// of all.
func TestToolsAreCalled(t *testing.T) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Tools = Due{}, nil, true
	it := New(sc.start, sc.state())
	var names []string
	called := map[int]store.Ref{}
	in, err := it.ToCommit(func(c Call) (any, error) {
		result := sc.result(c)
		names = append(names, c.Name)
		switch in := c.Input.(type) {
		case activities.CallToolsInput:
			require.Len(t, in.Turns, in.Turn-1)
			called[in.Turn] = result.(*activities.CallToolsResult).Table
		case activities.StepInput:
			require.Equal(t, called[in.Turn], *in.Calls)
			result = &activities.StepResult{Table: ref("step", in), Alive: 1}
		}
		return result, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"Generate", "CallTools", "Step", "Generate", "CallTools", "Step"}, names[:6])
	require.Len(t, called, len(in.Turns))
	for turn, table := range called {
		require.Equal(t, &table, in.Turns[turn-1].Calls)
	}
}
