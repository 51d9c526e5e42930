package modeldir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func link(t *testing.T, to, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Symlink(to, path))
}

func config(t *testing.T, dir string) (string, error) {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	b, err := Read(d, "config.json", 100)
	return string(b), err
}

// A folder in the form of the hub's cache opens by its own name and by a snapshot's; its links lead to
// blobs of the same model and nowhere else.
func TestOpenHubsCache(t *testing.T) {
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	cache := t.TempDir()
	of := filepath.Join(cache, "models--tiny--qwen")
	write(t, filepath.Join(of, "blobs", "1"), "main")
	write(t, filepath.Join(of, "blobs", "2"), "other")
	link(t, "../../blobs/1", filepath.Join(of, "snapshots", commit, "config.json"))
	for _, dir := range []string{of, filepath.Join(of, "snapshots", commit), of + "/"} {
		got, err := config(t, dir)
		require.NoError(t, err, dir)
		require.Equal(t, "main", got)
	}
	link(t, "../../blobs/2", filepath.Join(of, "snapshots", other, "config.json"))
	_, err := Open(of)
	require.ErrorContains(t, err, "has 2 snapshots of the model and no refs/main: name one")
	write(t, filepath.Join(of, "refs", "main"), other+"\n")
	got, err := config(t, of)
	require.NoError(t, err)
	require.Equal(t, "other", got)

	// A link to the folder is a name for it.
	link(t, of, filepath.Join(cache, "mine"))
	got, err = config(t, filepath.Join(cache, "mine"))
	require.NoError(t, err)
	require.Equal(t, "other", got)

	write(t, filepath.Join(of, "refs", "main"), "../../elsewhere")
	_, err = Open(of)
	require.ErrorContains(t, err, "refs/main of the hub's cache is no commit")
	write(t, filepath.Join(of, "refs", "main"), strings.Repeat("c", 40))
	_, err = Open(of)
	require.ErrorIs(t, err, fs.ErrNotExist)

	// Another model's blob is outside.
	write(t, filepath.Join(cache, "models--x--y", "blobs", "1"), "secret")
	require.NoError(t, os.Remove(filepath.Join(of, "snapshots", commit, "config.json")))
	link(t, "../../../models--x--y/blobs/1", filepath.Join(of, "snapshots", commit, "config.json"))
	_, err = config(t, filepath.Join(of, "snapshots", commit))
	require.ErrorContains(t, err, "outside of the model's folder")

	// A blob that is lost is not a file that is absent.
	require.NoError(t, os.Remove(filepath.Join(of, "blobs", "2")))
	_, err = config(t, filepath.Join(of, "snapshots", other))
	require.ErrorIs(t, err, ErrLost)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "config.json: it links to ../../blobs/2: the file that it links to is not there: download the model again")

	// The form alone does not let a plain folder read above itself.
	plain := t.TempDir()
	write(t, filepath.Join(plain, "blobs", "1"), "secret")
	link(t, "../../blobs/1", filepath.Join(plain, "snapshots", commit, "config.json"))
	_, err = config(t, filepath.Join(plain, "snapshots", commit))
	require.ErrorContains(t, err, "outside of the model's folder")
}

// What stands in a file's place is said.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "long"), strings.Repeat("x", 101))
	write(t, filepath.Join(dir, "empty"), "")
	write(t, filepath.Join(dir, "secret"), "s")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	link(t, "/etc/passwd", filepath.Join(dir, "outside"))
	link(t, "nobody", filepath.Join(dir, "lost"))
	require.NoError(t, os.Chmod(filepath.Join(dir, "secret"), 0))
	d, err := Open(dir)
	require.NoError(t, err)
	defer d.Close()
	for name, says := range map[string]string{
		"long":    "long: it has 101 bytes, at most 100 are read",
		"folder":  "folder: it is a folder and not a regular file: put the file in its place",
		"outside": "outside: it links to /etc/passwd, outside of the model's folder",
		"lost":    "lost: it links to nobody: the file that it links to is not there",
	} {
		_, err := Read(d, name, 100)
		require.ErrorContains(t, err, says)
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
	_, err = Read(d, "nobody", 100)
	require.ErrorIs(t, err, fs.ErrNotExist)
	b, err := Read(d, "empty", 100)
	require.NoError(t, err)
	require.Empty(t, b)
	if os.Geteuid() != 0 {
		_, err = Read(d, "secret", 100)
		require.ErrorContains(t, err, "give this user the right to read it")
	}
	_, err = Open(filepath.Join(dir, "long"))
	require.ErrorContains(t, err, "this is a file: name its folder")
	write(t, filepath.Join(dir, "m.gguf"), "GGUF\x03\x00\x00\x00")
	_, err = Open(filepath.Join(dir, "m.gguf"))
	require.ErrorContains(t, err, "reprise policy from-gguf FILE DIR")
	_, err = Open(filepath.Join(dir, "gone"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Weights in a form that is not read are named, and what to do.
func TestMissingWeights(t *testing.T) {
	const weights = "model.safetensors"
	for file, says := range map[string]string{
		"pytorch_model.bin":                "save the weights as safetensors (pytorch_model.bin is not read; it is PyTorch's)",
		"pytorch_model-00001-of-00002.bin": "save the weights as safetensors",
		"smol.gguf":                        "reprise policy from-gguf FILE DIR (smol.gguf is not read; it is GGUF)",
		"consolidated.00.pth":              "take the model's Hugging Face folder, with model.safetensors",
		"consolidated.safetensors":         "take the model's Hugging Face folder",
		"weights.pt":                       "save the weights as safetensors",
		"tf_model.h5":                      "(tf_model.h5 is not read; it is TensorFlow's)",
		"flax_model.msgpack":               "(flax_model.msgpack is not read; it is Flax's)",
		"model.onnx":                       "(model.onnx is not read; it is ONNX)",
		"weights.npz":                      "MLX's",
		"model.safetensors.incomplete":     "download the model again to its end",
		"model.safetensors.gz":             "unpack it, or rename it to model.safetensors",
		"model-00001-of-00002.safetensors": "download model.safetensors.index.json too",
		"other.safetensors":                "rename it to model.safetensors",
		"adapter_model.bin":                "the folder has no weights: download them",
		"optimizer.pt":                     "the folder has no weights: download them",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), "x")
		err := MissingWeights(os.DirFS(dir), weights, fs.ErrNotExist)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, says, file)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "adapter_model.bin"), "x")
	require.ErrorContains(t, MissingWeights(os.DirFS(dir), "adapter_model.safetensors", fs.ErrNotExist), "save the adapters as safetensors")
}

// A folder that is not the model's says where that may be.
func TestMissingConfig(t *testing.T) {
	absent := errors.New("config.json is absent")
	for file, says := range map[string]string{
		"original/config.json": "the folder original in it has one: name that", "m.gguf": "reprise policy from-gguf",
		"params.json":             "is of the original release",
		"snapshots/x/config.json": "name one of the folders in snapshots",
		"models--a--b/refs/main":  "this is a hub's cache: name models--a--b in it", "README.md": "download it",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), "x")
		require.ErrorContains(t, MissingConfig(os.DirFS(dir), "config.json", absent), says)
	}
	require.ErrorContains(t, MissingConfig(os.DirFS(t.TempDir()), "config.json", absent), "the folder is empty")
}
