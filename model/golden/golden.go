// Package golden finds and reads the reference outputs that golden tests compare
// with: the repository's own copies, or others of the same form.
package golden

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Env names the folder of other goldens: one golden's own folder, or the parent
// of several.
const Env = "REPRISE_GOLDENS"

// Folder returns the folder of the golden with the given name: $REPRISE_GOLDENS/name or
// $REPRISE_GOLDENS itself, whichever contains the file mark, or else the repository's
// copy.
func Folder(t testing.TB, name, mark, repository string) string {
	t.Helper()
	if root := os.Getenv(Env); root != "" {
		for _, dir := range []string{filepath.Join(root, name), root} {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
		t.Logf("%s=%s has no %s for %s: comparing with the repository's", Env, root, mark, name)
	}
	return repository
}

// Read returns the content of the file mark of a golden's Folder. If there is no such file,
// it reads the compressed file mark.gz.
func Read(t testing.TB, name, mark, repository string) []byte {
	t.Helper()
	path := filepath.Join(Folder(t, name, mark, repository), mark)
	content, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
		return content
	}
	f, err := os.Open(path + ".gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	content, err = io.ReadAll(z)
	require.NoError(t, err)
	return content
}
