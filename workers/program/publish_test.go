package program

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// A folder is published twice with the same bytes; a card that publish did not write is left.
func TestPublish(t *testing.T) {
	s := smallRun(t)
	head, err := store.Head(t.Context(), s, "run")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "hf")
	noDevice := func() (*model.Device, error) { return nil, os.ErrNotExist }
	var cards [2][]byte
	for i := range cards {
		var out bytes.Buffer
		require.NoError(t, publish(t.Context(), s, exportOptions{run: "run", dir: dir}, noDevice, &out, &out))
		require.Contains(t, out.String(), "version 2 of run (its snapshot)")
		cards[i], err = os.ReadFile(filepath.Join(dir, cardName))
		require.NoError(t, err)
	}
	require.Equal(t, cards[0], cards[1])
	require.FileExists(t, filepath.Join(dir, "config.json"))
	text := string(cards[0])
	for _, want := range []string{
		"# run, version 2\n", head.Ref.Digest, "reprise verify run\n", "reprise replay run --iteration 1\n",
		"| iteration | reward/mean |", "\n| 0 | ", "\n| 1 | ", `"name": "bandit"`,
	} {
		require.Contains(t, text, want)
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, cardName), []byte("mine"), 0o644))
	err = publish(t.Context(), s, exportOptions{run: "run", dir: dir}, noDevice, &bytes.Buffer{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "holds something else (README.md)")
}
