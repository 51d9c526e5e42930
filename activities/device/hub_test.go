package device

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// serveHub answers as the hub does for models, whose files are folders'.
func serveHub(t *testing.T, dirs map[string]string) {
	t.Helper()
	const commit = "0123456789abcdef0123456789abcdef01234567"
	type sibling struct {
		Name string `json:"rfilename"`
	}
	mux := http.NewServeMux()
	for name, dir := range dirs {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		siblings := []sibling{{"README.md"}, {"onnx/model.safetensors"}}
		for _, e := range entries {
			siblings = append(siblings, sibling{e.Name()})
		}
		mux.HandleFunc("/api/models/"+name+"/revision/", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"id": name, "sha": commit, "siblings": siblings})
		})
		files := "/" + name + "/resolve/" + commit + "/"
		mux.HandleFunc(files, func(w http.ResponseWriter, r *http.Request) {
			file := strings.TrimPrefix(r.URL.Path, files)
			body, err := os.ReadFile(filepath.Join(dir, filepath.Base(file)))
			if err != nil || file != filepath.Base(file) {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("ETag", `"`+file+`"`)
			w.Header().Set("X-Repo-Commit", commit)
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(body)))
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// A model of the hub is copied into the store like a folder: the same files give
// the same model.
func TestImportsFromHub(t *testing.T) {
	serveHub(t, map[string]string{"tiny/qwen": golden})
	ctx, s := t.Context(), store.NewMemory()
	index, ok, err := host.ImportBase(ctx, s, spec.Policy{From: "hf:tiny/qwen"})
	require.NoError(t, err)
	require.True(t, ok)
	again, _, err := host.ImportBase(ctx, s, spec.Policy{From: "folder:" + golden})
	require.NoError(t, err)
	require.Equal(t, index, again, "one index: by its digest nobody finds another's")

	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "reprise", "hub", "*", "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "what was downloaded is in the store")

	_, _, err = host.ImportBase(ctx, s, spec.Policy{From: "hf:tiny/other"})
	require.ErrorContains(t, err, "hf:tiny/other")
	require.ErrorIs(t, err, activities.ErrModelInvalid, "trying again does not help")
}

// Adapters of the hub are imported with the base model that they name there.
func TestImportsAdaptersFromHub(t *testing.T) {
	serveHub(t, map[string]string{"tiny/adapters": adaptersFolder, "qwen2-tiny": golden})
	ctx, s := t.Context(), store.NewMemory()
	index, _, err := host.ImportBase(ctx, s, spec.Policy{From: "hf:tiny/adapters"})
	require.NoError(t, err)
	local, _, err := host.ImportBase(ctx, s, spec.Policy{From: "folder:" + adaptersFolder, Base: "folder:" + golden})
	require.NoError(t, err)
	require.Equal(t, local, index)
	p, err := run.Starting(ctx, s, spec.Policy{From: "hf:tiny/adapters"}, index, nil)
	require.NoError(t, err)
	require.Equal(t, "hf:qwen2-tiny", p.Base)
	require.Equal(t, 4, p.LoRA.Rank)
}

// A model that is in a local cache of the hub is imported without the network.
func TestImportsFromHubsCache(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HF_HOME", home)
	t.Setenv("HF_ENDPOINT", "http://127.0.0.1:1")
	commit := strings.Repeat("ab", 20)
	of := filepath.Join(home, "hub", "models--tiny--qwen")
	require.NoError(t, os.MkdirAll(filepath.Join(of, "refs"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(of, "refs", "main"), []byte(commit), 0o600))
	require.NoError(t, os.CopyFS(filepath.Join(of, "blobs"), os.DirFS(golden)))
	require.NoError(t, os.MkdirAll(filepath.Join(of, "snapshots", commit), 0o700))
	entries, err := os.ReadDir(golden)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Symlink("../../blobs/"+e.Name(), filepath.Join(of, "snapshots", commit, e.Name())))
	}
	ctx, s := t.Context(), store.NewMemory()
	want, _, err := host.ImportBase(ctx, s, spec.Policy{From: "folder:" + golden})
	require.NoError(t, err)
	for _, from := range []string{"hf:tiny/qwen", "hf:tiny/qwen@" + commit} {
		index, _, err := host.ImportBase(ctx, s, spec.Policy{From: from})
		require.NoError(t, err)
		require.Equal(t, want, index)
	}
	require.NoError(t, os.Remove(filepath.Join(of, "blobs", "model.safetensors")))
	_, _, err = host.ImportBase(ctx, s, spec.Policy{From: "hf:tiny/qwen@" + commit})
	require.ErrorContains(t, err, "name it by folder:PATH", "it is not whole")
	require.NotErrorIs(t, err, activities.ErrModelInvalid)
}
