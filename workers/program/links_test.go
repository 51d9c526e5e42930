package program

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user of runs does not carry the measuring tools, nor what they draw with.
func TestLinksNoMeasures(t *testing.T) {
	text, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(text), "reprise/workers/command\n")
	for _, not := range []string{"reprise/workers/lab", "gonum.org/v1/plot", "envs/foreign/standin", "report/synthetic"} {
		require.NotContains(t, string(text), not)
	}
}
