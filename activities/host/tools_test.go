package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Calls that no tool could answer are apart from the others; what seldom happens is a metric only where it does.
func TestCallMetrics(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	metricsOf := func(rows ...run.CallRow) activities.Metrics {
		ref, err := tables.Put(ctx, s, "runs/a", "calls", rows)
		require.NoError(t, err)
		m := activities.Metrics{}
		task := &run.Task{Protocol: envs.Protocol{Tools: &envs.Toolset{}}}
		require.NoError(t, (&Host{Store: s}).callMetrics(ctx, m, task, []store.TurnRefs{{}, {Calls: &ref}}, 4))
		return m
	}
	plain := []run.CallRow{
		{Tool: "retrieve", Answer: "Doc 1"}, {Tool: "retrieve", Answer: "no", Failed: true}, {Tool: "x", Wrong: "there is no tool x"},
		{Call: run.GradeCall, Tool: "code", Killed: true},
	}
	require.Equal(t, activities.Metrics{"tools/calls": 0.75, "tools/invalid": 1. / 3, "tools/failed": 0.5, "tools/retrieve/calls": 0.5}, metricsOf(plain...))
	seldom := metricsOf(append(plain, run.CallRow{Tool: "retrieve", Answer: "Doc 1(Title: lamp) The home of… [cut]"}, run.CallRow{Tool: "starlark", Killed: true})...)
	require.EqualValues(t, 0.25, seldom["tools/cut"])
	require.EqualValues(t, 0.25, seldom["tools/killed"])
}
