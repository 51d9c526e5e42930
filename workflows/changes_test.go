package workflows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
)

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
			require.Contains(t, beforeScripts, c.id, "how its history was recorded")
			h := readHistoryAt(t, filepath.Join(before, c.id+".json.gz"))
			require.NoError(t, replayer(t, &Workflows{}).ReplayWorkflowHistory(silent, h))

			getVersion = func(ctx workflow.Context, id string, low, high workflow.Version) workflow.Version {
				if id == c.id {
					return high
				}
				return workflow.GetVersion(ctx, id, low, high)
			}
			defer func() { getVersion = workflow.GetVersion }()
			require.ErrorContains(t, replayer(t, &Workflows{}).ReplayWorkflowHistory(silent, h), nonDeterministic)
		})
	}
	entries, err := os.ReadDir(before)
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, ids[strings.TrimSuffix(e.Name(), ".json.gz")], "%s is of no change", e.Name())
	}
	require.Len(t, entries, len(ids))
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
