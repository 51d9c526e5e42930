package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// releaseEnv names the folder of a release, as `make release` leaves it.
const releaseEnv = "REPRISE_RELEASE"

// packages are what a machine has on which a release is installed: a shell, tar, and the libraries that programs and plugin load.
var packages = []string{"libc6", "libc-bin", "libgcc-s1", "libstdc++6", "dash", "coreutils", "tar", "gzip"}

// A release installs, shows its demo to the end and is removed again in a root that has nothing but the files of a few Debian packages:
// no Go, no compiler, no caches, no network.
func TestDemoInEmptyRoot(t *testing.T) {
	from := os.Getenv(releaseEnv)
	if from == "" {
		t.Skipf("%s names no folder of a release: `make release-test` makes one and tests it", releaseEnv)
	}
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		t.Skip("the root is made of this machine's Debian packages, and it has none: ", err)
	}
	root := emptyRoot(t)
	require.NoError(t, os.CopyFS(filepath.Join(root, "media"), os.DirFS(from)))
	try, err := sandboxed(root, nil, "/bin/sh", "-c", "exit 42")
	require.NoError(t, err)
	if text, err := try.CombinedOutput(); try.ProcessState == nil || try.ProcessState.ExitCode() != 42 {
		t.Skipf("this system lets a process have no root of its own: %v: %s", err, text)
	}

	const script = `set -eu
for tool in go gcc cc python3 git curl; do
	if command -v $tool; then echo "the root is not empty: $tool"; exit 1; fi
done
sh /media/install.sh /media
rm -r /media
PATH=/root/.local/bin:$PATH
reprise --version
echo "--- demo"
reprise demo
echo "--- uninstall"
sh /root/.local/lib/reprise/install.sh --uninstall
ls -A /root/.local/bin /root/.local/lib
`
	cmd, err := sandboxed(root, []string{"HOME=/root", "PATH=/usr/bin:/bin"}, "/bin/sh", "-c", script)
	require.NoError(t, err)
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	began := time.Now()
	var parts []time.Duration // install, demo, uninstall
	var quiet time.Duration   // the longest time without a line
	var said strings.Builder
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); w.Close() }()
	last := began
	for lines := bufio.NewScanner(out); lines.Scan(); {
		now := time.Now()
		quiet, last = max(quiet, now.Sub(last)), now
		fmt.Printf("%6.1f s  %s\n", now.Sub(began).Seconds(), lines.Text())
		fmt.Fprintln(&said, lines.Text())
		if strings.HasPrefix(lines.Text(), "--- ") {
			parts = append(parts, now.Sub(began))
		}
	}
	require.NoError(t, <-ended)
	require.Len(t, parts, 2)
	require.Contains(t, said.String(), "bandit-demo-1 is done: 30 iterations, state ")
	require.Contains(t, said.String(), "after  (version  30)   success")
	_, left, _ := strings.Cut(said.String(), "stays: folders .reprise")
	_, left, _ = strings.Cut(left, "\n")
	require.Equal(t, "/root/.local/bin:\n\n/root/.local/lib:\n", left, "nothing is left of the release")
	// Other work on the machine draws the wall's time out, not the processors'.
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("installed after %.1f s; the demo ended after %.1f s more; %.1f s is the longest without a line; all used %.1f s of processors\n",
		parts[0].Seconds(), (parts[1] - parts[0]).Seconds(), quiet.Seconds(), used.Seconds())
	require.Less(t, used, 2*time.Minute, "the demo ends within a minute on a quiet machine of two cores")
}

// emptyRoot is a folder with the files of the packages and of what they depend on, from this machine.
func emptyRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "usr", folder), 0o755))
		require.NoError(t, os.Symlink("usr/"+folder, filepath.Join(root, folder)))
	}
	for _, folder := range []string{"proc", "dev", "tmp", "root", "media"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, folder), 0o755))
	}
	for _, device := range []string{"null", "zero", "random", "urandom"} {
		write(t, filepath.Join(root, "dev", device), "")
	}
	all := closure(t, packages)
	t.Logf("the root has %d packages: %s", len(all), strings.Join(all, " "))
	for _, name := range all {
		files, err := exec.Command("dpkg-query", "-L", name).Output()
		require.NoError(t, err, name)
		for file := range strings.Lines(string(files)) {
			copyFile(t, root, strings.TrimSpace(file))
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "bin", "sh")); err != nil {
		require.NoError(t, os.Symlink("dash", filepath.Join(root, "bin", "sh")))
	}
	return root
}

// closure are the packages and those that they depend on, as dpkg has them installed, in the order in which they are met. dpkg itself and
// what is for people who install packages is left out.
func closure(t *testing.T, names []string) []string {
	t.Helper()
	var out []string
	seen := map[string]bool{"dpkg": true, "debianutils": true, "install-info": true, "debconf": true}
	for next := names; len(next) > 0; {
		name := next[0]
		next = next[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		text, err := exec.Command("dpkg-query", "-W", "-f", "${Pre-Depends}, ${Depends}", name).Output()
		if len(out) < len(packages) && err != nil {
			t.Skipf("this machine has no package %s: %v", name, err)
		}
		if err != nil {
			continue // an alternative that is not installed
		}
		out = append(out, name)
		for of := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == ',' || r == '|' }) {
			of, _, _ = strings.Cut(strings.TrimSpace(of), " ")
			of, _, _ = strings.Cut(of, ":")
			if of != "" {
				next = append(next, of)
			}
		}
	}
	return out
}

// copyFile brings a file, a link or a folder of this machine to the same place below root. Pages for people stay.
func copyFile(t *testing.T, root, path string) {
	t.Helper()
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/usr/share/") {
		return
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return // an image may lack a package's pages
	}
	require.NoError(t, err)
	at := filepath.Join(root, path)
	if there, err := os.Lstat(at); err == nil && (there.IsDir() || there.Mode().Type() == fs.ModeSymlink) {
		return
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
	switch {
	case info.IsDir():
		require.NoError(t, os.MkdirAll(at, 0o755))
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := os.Readlink(path)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(to, at))
	case info.Mode().IsRegular():
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(at, body, info.Mode().Perm()|0o200))
	}
}
