package lint

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fresh clone's demo builds what it runs, and none of the checkers.
func TestDemoBuildsOnlyWhatItNeeds(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make: ", err)
	}
	recipes := func(target string) string {
		cmd := exec.Command("make", "--dry-run", "--always-make", target)
		cmd.Dir = "../.."
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
		return string(text)
	}
	demo := recipes("demo")
	for _, needed := range []string{"cmd/temporal", "cmd/versitygw", "./workers/reprise", "./infra/plugin/install", "bin/reprise demo"} {
		require.Contains(t, demo, needed)
	}
	for _, checker := range []string{"gotestsum", "staticcheck", "workflowcheck"} {
		require.NotContains(t, demo, checker)
		require.Contains(t, recipes("tools"), checker)
	}
}
