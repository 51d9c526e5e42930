package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The image's file system, put together as infra/deploy/Dockerfile does it: in it, as nobody and on a root that cannot be written, the
// program shows its demo to the end, on one worker of all roles.
func TestDemoInImage(t *testing.T) {
	from := os.Getenv(releaseEnv)
	if from == "" {
		t.Skipf("%s names no folder of a release: `make release-test` makes one and tests it", releaseEnv)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		t.Skip("the root is made of this machine's Debian packages, and it has none: ", err)
	}
	root := emptyRoot(t)
	archives, err := filepath.Glob(filepath.Join(from, "reprise-*-linux-amd64.tar.gz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	home := filepath.Join(root, "opt/reprise")
	require.NoError(t, os.MkdirAll(home, 0o755))
	out, err := exec.Command("tar", "-xzf", archives[0], "-C", home, "--strip-components=1", "--no-same-owner").CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/cache/reprise"), 0o755))
	opened(t, root)

	// The variables are the Dockerfile's.
	text, err := os.ReadFile("../deploy/Dockerfile")
	require.NoError(t, err)
	_, base, found := strings.Cut(string(text), " AS base\n")
	require.True(t, found)
	base, _, found = strings.Cut(base, "\nFROM base")
	require.True(t, found)
	var environment []string
	for _, m := range regexp.MustCompile(`\b([A-Z_]+)=(/\S+)`).FindAllStringSubmatch(base, -1) {
		environment = append(environment, m[1]+"="+m[2])
	}
	require.Contains(t, environment, "XDG_CACHE_HOME=/var/cache/reprise")
	require.Contains(t, base, `ENTRYPOINT ["/opt/reprise/reprise"]`)

	const script = `set -eu
echo "user $(id -u):$(id -g) in $(pwd)"
for place in / /opt/reprise /var /usr/bin; do
	if touch "$place/x" 2>/dev/null; then echo "$place can be written"; exit 1; fi
done
/opt/reprise/reprise --version
/opt/reprise/reprise demo
ls -A /var/cache/reprise/reprise
`
	cmd, err := imaged(root, []string{"/tmp", "/var/cache/reprise"}, environment, "/bin/sh", "-c", script)
	require.NoError(t, err)
	began := time.Now()
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skip("this system lets root give a process no users of its own: ", err)
	}
	fmt.Printf("%s%.1f s\n", out, time.Since(began).Seconds())
	require.NoError(t, err)
	require.Contains(t, string(out), "user 65532:65532 in /tmp\n")
	require.Contains(t, string(out), "bandit-demo-1 is done: 30 iterations, state ")
	require.True(t, strings.HasSuffix(string(out), "\nprograms\n"), "compiled programs are in the cache's volume")
}

// opened lets everyone read a folder's files and pass its folders, up to the root: a test's own are their owner's alone.
func opened(t *testing.T, root string) {
	t.Helper()
	for at := root; at != filepath.Dir(at) && at != os.TempDir(); at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o755))
	}
}
