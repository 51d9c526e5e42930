package plugin

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/wheels"
)

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// wheel writes a zip of name, content, name, content … and returns its path.
func wheel(t testing.TB, members ...string) string {
	t.Helper()
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	for i := 0; i < len(members); i += 2 {
		w, err := archive.Create(members[i])
		require.NoError(t, err)
		_, err = w.Write([]byte(members[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	path := filepath.Join(t.TempDir(), "a.whl")
	require.NoError(t, os.WriteFile(path, content.Bytes(), 0o600))
	return path
}

// pinOf is a pin of a library with this content.
func pinOf(content string) Pin {
	return Pin{
		Name: "test", Member: "p/lib.so", Digest: sum([]byte(content)), Size: int64(len(content)),
		Licences: []string{"p.dist-info/licenses/LICENSE"},
	}
}

func TestUnpack(t *testing.T) {
	const library, licence = "\x7fELF and more", "Apache-2.0"
	for name, test := range map[string]struct {
		members []string
		pin     func(*Pin)
		fails   string
	}{
		"whole":      {members: []string{"p/lib.so", library, "p.dist-info/licenses/LICENSE", licence}},
		"altered":    {members: []string{"p/lib.so", "\x7fELF and hole", "p.dist-info/licenses/LICENSE", licence}, fails: "pinned is"},
		"longer":     {members: []string{"p/lib.so", library + "!", "p.dist-info/licenses/LICENSE", licence}, fails: "longer than"},
		"no library": {members: []string{"p.dist-info/licenses/LICENSE", licence}, fails: `no "p/lib.so"`},
		"no licence": {members: []string{"p/lib.so", library}, fails: `no "p.dist-info/licenses/LICENSE"`},
		"twice":      {members: []string{"p/lib.so", library, "p/lib.so", library}, fails: "twice"},
		"long licence": {
			members: []string{"p/lib.so", library, "p.dist-info/licenses/LICENSE", strings.Repeat(" ", maxLicence+1)}, fails: "longer than",
		},
		// Names of a wheel never become names of files.
		"escape": {
			members: []string{"../../lib.so", library, "../LICENSE", licence},
			pin:     func(p *Pin) { p.Member, p.Licences = "../../lib.so", []string{"../LICENSE"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			dir := filepath.Join(outer, "inner")
			pin := pinOf(library)
			if test.pin != nil {
				test.pin(&pin)
			}
			err := unpack(wheel(t, test.members...), pin, dir)
			entries, readErr := os.ReadDir(outer)
			require.NoError(t, readErr)
			require.LessOrEqual(t, len(entries), 1, "nothing is written outside")
			if test.fails != "" {
				require.ErrorIs(t, err, wheels.ErrWheel)
				require.ErrorContains(t, err, test.fails)
				require.NoFileExists(t, filepath.Join(dir, FileName))
				left, err := filepath.Glob(filepath.Join(dir, ".partial-*"))
				require.NoError(t, err)
				require.Empty(t, left)
				return
			}
			require.NoError(t, err)
			content, err := os.ReadFile(filepath.Join(dir, FileName))
			require.NoError(t, err)
			require.Equal(t, library, string(content))
			require.FileExists(t, filepath.Join(dir, "licences", "test", "LICENSE"))
		})
	}
}

func FuzzUnpack(f *testing.F) {
	const library = "library"
	good, err := os.ReadFile(wheel(f, "p/lib.so", library, "p.dist-info/licenses/LICENSE", "mine"))
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte{})
	f.Add(good[:len(good)/2])
	f.Add([]byte("PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "a.whl")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		dir := filepath.Join(t.TempDir(), "inner")
		err := unpack(path, pinOf(library), dir)
		placed, readErr := os.ReadFile(filepath.Join(dir, FileName))
		if err != nil {
			require.ErrorIs(t, err, wheels.ErrWheel)
			require.ErrorIs(t, readErr, os.ErrNotExist)
			return
		}
		require.Equal(t, library, string(placed))
	})
}

// installed returns the plugin that `make plugin` put under the repository.
func installed(t *testing.T) string {
	t.Helper()
	t.Setenv(Env, "")
	path, err := Path("")
	if err != nil && os.Getenv("REPRISE_REQUIRE_PLUGIN") == "" { // plugintest.Env, which imports this package
		t.Skip("SKIPPED: there is no PJRT plugin: run `make plugin`")
	}
	require.NoError(t, err, "run `make plugin`")
	return path
}

func TestPath(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(root, Folder), 0o700))
	placed := filepath.Join(root, Folder, FileName)
	other := filepath.Join(root, "cuda.so")

	t.Setenv(Env, "")
	_, err := Path(below)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "make plugin")

	require.NoError(t, os.WriteFile(placed, []byte("x"), 0o600))
	path, err := Path(below)
	require.NoError(t, err)
	require.Equal(t, placed, path)

	t.Setenv(Env, other)
	_, err = Path(below)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, other)
	t.Setenv(Env, root)
	_, err = Path(below)
	require.ErrorContains(t, err, "not a regular file")

	require.NoError(t, os.WriteFile(other, []byte("x"), 0o600))
	t.Setenv(Env, other)
	path, err = Path(below)
	require.NoError(t, err)
	require.Equal(t, other, path)
}

func TestVerify(t *testing.T) {
	digest, err := Verify(installed(t))
	require.NoError(t, err)
	require.Equal(t, Pins[0].Digest, digest)

	_, err = Verify(filepath.Join(t.TempDir(), "none.so"))
	require.ErrorIs(t, err, ErrMissing)

	// One flipped bit in 200 MB.
	content, err := os.ReadFile(installed(t))
	require.NoError(t, err)
	content[len(content)/2] ^= 1
	path := filepath.Join(t.TempDir(), FileName)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	_, err = Verify(path)
	require.ErrorIs(t, err, ErrAltered)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, Pins[0].Digest)

	// A named plugin is trusted.
	t.Setenv(Env, path)
	digest, err = Verify(path)
	require.NoError(t, err)
	require.Equal(t, sum(content), digest)
}

func TestVerifyRecorded(t *testing.T) {
	t.Setenv(Env, "")
	path := filepath.Join(t.TempDir(), FileName)
	require.NoError(t, os.WriteFile(path, []byte("from github"), 0o600))
	_, err := Verify(path)
	require.ErrorIs(t, err, ErrAltered)

	content, err := json.Marshal(record{Digest: sum([]byte("from github")), Source: "go-xla's installer"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(recordPath(path), content, 0o600))
	_, err = Verify(path)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(path, []byte("from elsewhere"), 0o600))
	_, err = Verify(path)
	require.ErrorIs(t, err, ErrAltered)
	require.ErrorContains(t, err, "go-xla's installer")

	require.NoError(t, os.WriteFile(recordPath(path), []byte("{"), 0o600))
	_, err = Verify(path)
	require.ErrorIs(t, err, ErrAltered)
}

// pip puts a pip of our own first in PATH: a script that gets pip's arguments.
func pip(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"python3", "python", "pip3", "pip"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// deliver is a pip that leaves the given file as the wheel in --dest, its last argument.
func deliver(path string) string {
	return `case "$*" in *--version*) exit 0;; esac
for last; do :; done
cp '` + path + `' "$last/a.whl"
`
}

func TestInstall(t *testing.T) {
	t.Setenv(Env, "")
	const library = "the library"
	archive := wheel(t, "p/lib.so", library, "p.dist-info/licenses/LICENSE", "mine")
	content, err := os.ReadFile(archive)
	require.NoError(t, err)
	good := pinOf(library)
	good.Name, good.Project, good.Version, good.Wheel = "good", "good-project", "1.0", sum(content)
	bad := good
	bad.Name, bad.Wheel = "bad", sum([]byte("another wheel"))
	kept := Pins
	Pins = append(append([]Pin{}, kept...), good, bad)
	t.Cleanup(func() { Pins = kept })

	pip(t, deliver(archive))
	dir := t.TempDir()
	var progress bytes.Buffer
	path, err := Install(t.Context(), dir, "good", &progress)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "good", FileName), path)
	require.Contains(t, progress.String(), "good-project 1.0")
	_, err = Verify(path)
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 2, "the library and its licences, no scratch")

	// A second time nothing is fetched; a damaged one is fetched again.
	pip(t, "exit 1")
	progress.Reset()
	_, err = Install(t.Context(), dir, "good", &progress)
	require.NoError(t, err)
	require.Empty(t, progress.String())
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	pip(t, deliver(archive))
	_, err = Install(t.Context(), dir, "good", &progress)
	require.NoError(t, err)
	require.Contains(t, progress.String(), "is not the pinned plugin")
	_, err = Verify(path)
	require.NoError(t, err)

	// A wheel that is not the pinned one is not unpacked, whatever pip says.
	_, err = Install(t.Context(), dir, "bad", &progress)
	require.ErrorIs(t, err, wheels.ErrWheel)
	require.NoFileExists(t, filepath.Join(dir, "bad", FileName))

	pip(t, `case "$*" in *--version*) exit 0;; esac; echo "THESE PACKAGES DO NOT MATCH THE HASHES" >&2; exit 1`)
	_, err = Install(t.Context(), dir, "bad", &progress)
	require.ErrorContains(t, err, "DO NOT MATCH THE HASHES")

	pip(t, "exit 1")
	_, err = Install(t.Context(), dir, "bad", &progress)
	require.ErrorIs(t, err, wheels.ErrNoPip)

	_, err = Install(t.Context(), dir, "unknown", &progress)
	require.ErrorContains(t, err, "known are lammps-jax, fastatomstruct, xla-cpu-pjrt")

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Install(canceled, dir, "bad", &progress)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPins(t *testing.T) {
	names := map[string]bool{}
	for i, pin := range Pins {
		require.False(t, names[pin.Name])
		names[pin.Name] = true
		require.Equal(t, i == 0, pin.Name == Default)
		for _, digest := range []string{pin.Wheel, pin.Digest} {
			raw, err := hex.DecodeString(digest)
			require.NoError(t, err)
			require.Len(t, raw, sha256.Size)
		}
		require.Positive(t, pin.Size)
		require.Equal(t, pin.Project+"=="+pin.Version+" --hash=sha256:"+pin.Wheel+"\n", pin.wheel().Requirement())
	}
}
