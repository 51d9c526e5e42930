package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workflows"
)

// troubleshooting is the page, written from the tables of kinds of failures and of exit codes.
func troubleshooting() string {
	var b strings.Builder
	b.WriteString("# Troubleshooting\n\n<!-- Generated from workflows/kinds.go and workers/exit.go; go test ./docs -update writes this page. -->\n\n" +
		"Each failure has a kind: the type of the error in Temporal's history, which `reprise status ID` shows too, with the step and the message. " +
		"The message says what was wrong and where. These are the kinds, what a run does by itself, and what you can do.\n\n" +
		"Start with `reprise doctor`: it tries server, bucket, plugin and device with the settings that a worker has, and says what to do.\n")
	for _, part := range workflows.Kinds {
		fmt.Fprintf(&b, "\n## %s\n\n| kind | cause | what the run does | what you can do |\n|---|---|---|---|\n", part.Of)
		for _, k := range part.Kinds {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Cause, k.Then, k.Remedy)
		}
	}
	b.WriteString("\nA kind that begins with `Again` is one that is tried again at once: another attempt may not meet it.\n" +
		"\n## A worker's exit codes\n\nThe process that computes is started again after these.\n\n| code | cause | when |\n|---|---|---|\n")
	for _, e := range workers.Exits {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", e.Code, e.Cause, e.Meaning)
	}
	return b.String()
}

// The page says of each kind of failure what it is and what to do.
func TestTroubleshootingIsTheTables(t *testing.T) {
	pagetest.Same(t, "troubleshooting.md", troubleshooting(), *update)
	said := map[string]bool{}
	for _, part := range workflows.Kinds {
		for _, k := range part.Kinds {
			require.False(t, said[k.Name], "%s is said twice", k.Name)
			require.NotEmpty(t, k.Cause, k.Name)
			require.NotEmpty(t, k.Then, k.Name)
			said[k.Name] = true
		}
	}
	for _, kind := range activities.NonRetryable {
		require.True(t, said[kind], "workflows/kinds.go does not say what %s is", kind)
	}
}
