package golden

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

func TestRead(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, err := z.Write([]byte("ours"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	repository, parent, own, other := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(repository, "a.json.gz"), compressed.Bytes())
	write(t, filepath.Join(parent, "a", "a.json"), []byte("of a parent"))
	write(t, filepath.Join(own, "a.json"), []byte("its own"))
	for root, want := range map[string]string{"": "ours", parent: "of a parent", own: "its own", other: "ours"} {
		t.Setenv(Env, root)
		require.Equal(t, want, string(Read(t, "a", "a.json", repository)))
	}
}

func TestRLCases(t *testing.T) {
	for _, c := range RLCases(t, filepath.Join("..", "credit", "testdata")) {
		mask := c.Sampled()
		require.Len(t, mask, len(c.Group))
		for row := range mask {
			require.Len(t, mask[row], len(c.TokenRewards[row]))
			require.Contains(t, mask[row], true)
		}
		require.NotEmpty(t, c.Adv)
		require.NotEmpty(t, c.Loss)
	}
}
