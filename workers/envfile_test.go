package workers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// A file of environments may change while they are served: what is added, what gets another command or an
// edited program, and what is taken out counts from the next request on. Nothing is left running.
func TestEnvFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, EnvFileName)
	program := func(name, says string, at time.Time) string {
		file := filepath.Join(dir, name)
		text := "#!/bin/sh\nwhile read -r line; do\nprintf '{\"id\":%s,\"output\":{\"says\":\"" + says + "\",\"process\":'$$'}}\\n' $(echo \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')\ndone\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o755))
		require.NoError(t, os.Chtimes(file, at, at))
		return file
	}
	f := newEnvFile(path)
	ask := func(name string) (says string, process int) {
		way, ok, err := f.find(name)
		require.NoError(t, err)
		require.True(t, ok)
		out, err := way("", time.Minute)(t.Context(), foreign.CallDescribe, []byte(`{}`))
		require.NoError(t, err)
		var answer struct {
			Says    string
			Process int
		}
		require.NoError(t, json.Unmarshal(out, &answer), "%s", out)
		return answer.Says, answer.Process
	}
	_, ok, err := f.find("a")
	require.NoError(t, err, "a file that is not there has none")
	require.False(t, ok)

	now := time.Now()
	first := program("one.sh", "one", now)
	require.NoError(t, AddToEnvFile(path, "a", []string{first}))
	says, process := ask("a")
	require.Equal(t, "one", says)
	pool := f.pool["a"]
	_, again := ask("a")
	require.Same(t, pool, f.pool["a"], "its processes are kept")

	program("one.sh", "edited", now.Add(time.Second))
	says, edited := ask("a")
	require.Equal(t, "edited", says)
	require.NoError(t, AddToEnvFile(path, "a", []string{program("two.sh", "two", now)}))
	require.NoError(t, AddToEnvFile(path, "b", []string{first}))
	says, two := ask("a")
	require.Equal(t, "two", says)
	says, other := ask("b")
	require.Equal(t, "edited", says)

	way, _, err := f.find("a")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(`{}`), 0o600))
	_, ok, err = f.find("b")
	require.NoError(t, err)
	require.False(t, ok)
	_, err = way("", time.Minute)(t.Context(), foreign.CallDescribe, []byte(`{}`))
	require.ErrorIs(t, err, foreign.ErrExited)
	require.ErrorContains(t, err, "does not have it any more")

	for text, want := range map[string]string{
		`{"a": "x", "a": "y"}`: "found the key a second time",
		`{"a": 1}`:             `"a" has no command: found 1`, `[]`: `want {"NAME"`, `{"A": "x"}`: `found the name "A"`, `{"a": " "}`: `"a" has no command`,
		`{"a": "./nothing"}`: "chmod +x", `{`: "want",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, _, err := f.find("a")
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, path)
	}
	f.close()
	for _, p := range []int{process, again, edited, two, other} {
		require.NoDirExists(t, fmt.Sprintf("/proc/%d", p))
	}
}
