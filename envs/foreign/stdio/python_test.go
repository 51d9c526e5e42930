package stdio

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// python is python3 with the package reprise_env of ../python, and with the folders before it; the test is skipped
// where there is none.
func python(t testing.TB, folders ...string) string {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: there is no python3; the Go stand-in's tests have run")
	}
	var path []string
	for _, folder := range append(folders, "../python/src") {
		absolute, err := filepath.Abs(folder)
		require.NoError(t, err)
		path = append(path, absolute)
	}
	t.Setenv("PYTHONPATH", strings.Join(path, string(os.PathListSeparator)))
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	return program
}

// The package's own tests pass.
func TestPythonPackage(t *testing.T) {
	said, err := exec.Command(python(t), "-m", "unittest", "discover", "--start-directory", "../python/tests").CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Regexp(t, `Ran \d\d tests`, string(said), "they were found")
	require.NotContains(t, string(said), "skipped")
}

// What an environment behind the package does wrong is found by the check, and said once: the cache hides none of it.
func TestPythonFaults(t *testing.T) {
	python(t)
	var pools []*Pool
	for _, seed := range []string{"1", "2"} {
		p, err := Open(Config{Command: []string{"testdata/faulty.py"}, HashSeed: seed})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		pools = append(pools, p)
	}
	for fault, found := range map[string][2]string{
		"none": {}, "print": {},
		"raise":  {"play", `ValueError: boom (faulty.py, line 27, in step)"` + "\n    Traceback (most recent call last):\n"},
		"nan":    {"play", "the reward of Walk.step (faulty.py, line 25) is nan, want a finite number"},
		"clock":  {"the same answers from another process", foreign.ErrDrift.Error()},
		"shared": {"the same answers from another process", foreign.ErrDrift.Error()},
	} {
		problems := checkWith(t, pools[0], pools[1], `{"fault":"`+fault+`"}`)
		if found[0] == "" {
			require.Empty(t, problems, fault)
			continue
		}
		require.Contains(t, problems[found[0]], found[1], "%s: %v", fault, problems)
		if fault == "raise" {
			require.Regexp(t, `^\d of 16 instances, first instance \d+ after the actions \[\], asked \["`, problems["play"])
			require.Equal(t, 2, strings.Count(problems["play"], "ValueError: boom"), "the message, and the end of the traceback")
		}
	}
}

// The examples of other packages' environments pass the check with stand-ins of what they use of the packages.
func TestPythonWrappers(t *testing.T) {
	python(t, "testdata")
	for _, file := range []string{"lights.py", "minigrid_walk.py", "reasoning.py", "signals.py", "text_world.py"} {
		var pools []*Pool
		for _, seed := range []string{"1", "2"} {
			p, err := Open(Config{Command: []string{"../../../docs/own/" + file}, HashSeed: seed})
			require.NoError(t, err)
			t.Cleanup(p.Close)
			pools = append(pools, p)
		}
		require.Empty(t, check(t, pools[0], pools[1]), file)
	}
}
