package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fresh clone's demo builds what it runs, and none of the checkers.
func TestDemoBuildsOnlyWhatItNeeds(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make: ", err)
	}
	recipes := func(target string, variables ...string) string {
		cmd := exec.Command("make", append([]string{"--dry-run", "--always-make", target}, variables...)...)
		cmd.Dir = "../.."
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
		return string(text)
	}
	t.Setenv("REPRISE_TEMPORAL", "")
	demo := recipes("demo", "ON_PATH=")
	for _, needed := range []string{"cmd/temporal", "cmd/versitygw", "./workers/reprise", "./infra/plugin/install", "bin/reprise demo"} {
		require.Contains(t, demo, needed)
	}
	for _, checker := range []string{"gotestsum", "staticcheck", "workflowcheck"} {
		require.NotContains(t, demo, checker)
		require.Contains(t, recipes("tools"), checker)
	}
	require.NotContains(t, recipes("demo", "ON_PATH=/usr/bin/temporal", "TEMPORAL=bin/none"), "cmd/temporal", "the one on PATH is used")
	require.Contains(t, recipes("demo", "ON_PATH=/usr/bin/temporal", "TEMPORAL=go.mod"), "cmd/temporal", "unless the pinned one is there")
}

// A demo takes the temporal on PATH if it is the pinned version or a newer one of the same major.
func TestTemporalOnPath(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash: ", err)
	}
	pins, err := os.ReadFile("../tools/temporal/go.mod")
	require.NoError(t, err)
	found := regexp.MustCompile(`github.com/temporalio/cli v(\d+)\.(\d+)\.(\d+)`).FindStringSubmatch(string(pins))
	require.NotNil(t, found)
	var major, minor, patch int
	_, err = fmt.Sscan(strings.Join(found[1:], " "), &major, &minor, &patch)
	require.NoError(t, err)
	folder := t.TempDir()
	fake := filepath.Join(folder, "temporal")
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	says := func(text string) string {
		require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755))
		out, err := exec.Command("../tools/on-path.sh").Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	version := func(major, minor, patch int) string {
		return fmt.Sprintf("temporal version %d.%d.%d (Server 1.29.1, UI 2.42.1)", major, minor, patch)
	}
	for text, want := range map[string]string{
		version(major, minor, patch): fake, version(major, minor, patch+10): fake, version(major, minor+10, 0): fake,
		version(major, minor-1, patch): "", version(major+1, 0, 0): "", "temporal 1.5.1": "", "tctl version 1.18.0": "", "": "",
	} {
		require.Equal(t, want, says(text), text)
	}
}
