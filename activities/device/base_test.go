package device

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Nothing but the folder's own regular files comes into the store, also where no reader
// of models opens the file in question.
func TestImportKeepsToTheFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(outside, []byte("aws_secret_access_key = SECRET"), 0o600))
	link := func(name, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
		}
	}
	cases := []struct {
		name string
		edit func(*testing.T, string)
		says string
	}{
		{"weights nobody names", link("x.safetensors", outside), "x.safetensors"},
		{"a chat template", link("chat_template.jinja", outside), "chat_template.jinja"},
		{"generation settings", func(t *testing.T, dir string) {
			beside := filepath.Join(filepath.Dir(dir), "beside.json")
			require.NoError(t, os.WriteFile(beside, []byte(`{"secret": true}`), 0o600))
			link("generation_config.json", "../beside.json")(t, dir)
		}, "generation_config.json"},
		{"one without end", link("chat_template.jinja", "/dev/zero"), "chat_template.jinja"},
		{"a folder", link("x.safetensors", "."), "x.safetensors: it is a folder and not a regular file"},
		{"a pipe", func(t *testing.T, dir string) {
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "x.safetensors"), 0o600))
		}, "x.safetensors: it is not a regular file"},
		{"a small file that is not", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "generation_config.json"), host.MaxSmallFile+1))
		}, "generation_config.json: it has 67108865 bytes, at most 67108864"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir, s := copied(t), store.NewMemory()
			c.edit(t, dir)
			_, _, err := host.ImportBase(t.Context(), s, spec.Policy{From: "folder:" + dir})
			require.ErrorIs(t, err, activities.ErrModelInvalid)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, s.Own(), "nothing is stored")
		})
	}

	// A link that stays within the folder is a name for its file.
	dir, s := copied(t), store.NewMemory()
	require.NoError(t, os.Rename(filepath.Join(dir, "tokenizer.json"), filepath.Join(dir, "blob")))
	require.NoError(t, os.Symlink("blob", filepath.Join(dir, "tokenizer.json")))
	linked, _, err := host.ImportBase(t.Context(), s, spec.Policy{From: "folder:" + dir})
	require.NoError(t, err)
	plain, _, err := host.ImportBase(t.Context(), s, spec.Policy{From: "folder:" + golden})
	require.NoError(t, err)
	a, err := run.ReadIndex(t.Context(), s, linked)
	require.NoError(t, err)
	b, err := run.ReadIndex(t.Context(), s, plain)
	require.NoError(t, err)
	require.Equal(t, b.Digest, a.Digest)
}
