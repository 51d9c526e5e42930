package workflows

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// before is where the histories from before a change are: before/ID.json.gz.
const before = "testdata/before"

// A history from before a change is decided as it was, and it does reach the change: where
// the change holds, it is decided otherwise.
func TestHistoriesFromBeforeReplay(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range changes {
		require.False(t, ids[c.id], "the id %s stands twice", c.id)
		ids[c.id] = true
		t.Run(c.id, func(t *testing.T) {
			require.NotEmpty(t, c.since)
			require.NotEmpty(t, c.what)
			isFromBefore(t, c, replayer(t, &Workflows{}), readHistoryAt(t, filepath.Join(before, c.id+".json.gz")))
		})
	}
	recorded, err := filepath.Glob(filepath.Join(before, "*"))
	require.NoError(t, err)
	for _, file := range recorded {
		require.True(t, ids[strings.TrimSuffix(filepath.Base(file), ".json.gz")], "%s is of no change", file)
	}
}

// The guard of a change does what the test above asks for, whatever the table has: a change
// before a run's first step leaves a recorded history alone, and is seen where it holds.
func TestChangeLeavesOldHistories(t *testing.T) {
	table := changes
	defer func() { changes = table }()
	c := changed("planted", "v9.9.9", "a run waits before it begins")
	require.Equal(t, c, changes[len(changes)-1])
	w := &Workflows{}
	waits := func(ctx workflow.Context, input json.RawMessage, carry *Carry) (*TrainResult, error) {
		if c.holds(ctx) {
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return nil, err
			}
		}
		return w.Train(ctx, input, carry)
	}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(waits, workflow.RegisterOptions{Name: "Train"})
	isFromBefore(t, c, r, readHistory(t, "whole.json.gz"))
}

// isFromBefore replays a history: it must be decided as it was, and otherwise where the change holds.
func isFromBefore(t *testing.T, c change, r worker.WorkflowReplayer, h *history.History) {
	t.Helper()
	require.NoError(t, r.ReplayWorkflowHistory(silent, h))

	getVersion = func(ctx workflow.Context, id string, low, high workflow.Version) workflow.Version {
		if id == c.id {
			return high
		}
		return workflow.GetVersion(ctx, id, low, high)
	}
	defer func() { getVersion = workflow.GetVersion }()
	require.ErrorContains(t, r.ReplayWorkflowHistory(silent, h), nonDeterministic)
}

// Every change of commands goes through the table: nothing else asks for a version.
func TestVersionsAreInTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "changes.go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				require.NotContains(t, []string{"GetVersion", "getVersion"}, id.Name, "%s asks for a version: add the change to changes.go", file)
			}
			return true
		})
	}
}
