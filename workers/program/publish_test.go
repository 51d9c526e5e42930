package program

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/hub"
	"github.com/reprise-rl/reprise/infra/hub/hubtest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
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

// A run's policy becomes a commit at the hub: the same files as the folder has. Published twice it is one commit,
// weights of other names go, and nothing is left on this machine.
func TestPublishToHub(t *testing.T) {
	s := smallRun(t)
	fake := hubtest.New(t)
	cache := t.TempDir()
	for name, value := range map[string]string{"HF_ENDPOINT": fake.URL, "HF_TOKEN": hubtest.WriteToken, "HF_HUB_OFFLINE": "", "XDG_CACHE_HOME": cache} {
		t.Setenv(name, value)
	}
	left := filepath.Join(cache, "reprise", "publish", "folder-old")
	require.NoError(t, os.MkdirAll(left, 0o700))
	long := time.Now().Add(-2 * abandonedAfter)
	require.NoError(t, os.Chtimes(left, long, long))
	at, err := hub.FromEnv()
	require.NoError(t, err)
	noDevice := func() (*model.Device, error) { return nil, os.ErrNotExist }
	toHub := func(o exportOptions, up hub.Upload) string {
		t.Helper()
		var out, progress bytes.Buffer
		require.NoError(t, publishToHub(t.Context(), s, o, noDevice, at, up, &out, &progress))
		require.Empty(t, namesIn(t, filepath.Join(cache, "reprise", "publish")))
		require.NotContains(t, out.String(), cache)
		return out.String()
	}
	out := toHub(exportOptions{run: "run"}, hub.Upload{Repo: "tiny/run", Private: true})
	require.True(t, fake.Private("tiny/run"))
	head := fake.Head("tiny/run", "main")
	require.Contains(t, out, fake.URL+"/tiny/run/commit/"+head.ID+"\nversion 2 of run (its snapshot): ")
	require.Contains(t, out, "of large files\n")
	require.Equal(t, "run, version 2", head.Summary)

	dir := filepath.Join(t.TempDir(), "hf")
	require.NoError(t, publish(t.Context(), s, exportOptions{run: "run", dir: dir}, noDevice, io.Discard, io.Discard))
	require.Len(t, head.Files, len(namesIn(t, dir))+1, "and .gitattributes")
	for _, name := range namesIn(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(b), head.Files[name], name)
	}

	require.Contains(t, toHub(exportOptions{run: "run"}, hub.Upload{Repo: "tiny/run"}), "no commit: tiny/run has all of it\n")
	require.Equal(t, 2, fake.Commits("tiny/run", "main"))

	files := maps.Clone(head.Files)
	files["model-00001-of-00002.safetensors"], files["notes.md"] = "half", "mine"
	fake.Put("tiny/run", true, files)
	require.Contains(t, toHub(exportOptions{run: "run"}, hub.Upload{Repo: "tiny/run"}), "removed model-00001-of-00002.safetensors, of other weights\n")
	require.Contains(t, fake.Head("tiny/run", "main").Files, "notes.md")

	toHub(exportOptions{run: "run"}, hub.Upload{Repo: "tiny/run", Revision: "iteration-1"})
	require.Equal(t, fake.Head("tiny/run", "main"), fake.Head("tiny/run", "iteration-1"), "it began at main, which has all of it")
}

// What cannot be published is said before anything is looked for.
func TestPublishArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"--out says where to":              {"run"},
		"are for --out hf:ORG/NAME":        {"run", "--out", "folder", "--private"},
		`"bandit" is not the name`:         {"run", "--out", "hf:bandit"},
		"HF_TOKEN is not set":              {"run", "--out", "hf:tiny/run"},
		"an upload needs a branch":         {"run", "--out", "hf:tiny/run", "--revision", "0123456789abcdef0123456789abcdef01234567"},
		"publish to hf:tiny/run: the hub ": {"run", "--out", "hf:tiny/run"},
	} {
		token := hubtest.WriteToken
		if len(args) == 3 && args[2] == "hf:tiny/run" {
			token = ""
		}
		t.Setenv("HF_TOKEN", token)
		cmd := publishCommand()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		require.ErrorContains(t, cmd.Execute(), want)
	}
}

// The hub shows which of its models a policy began as.
func TestCardBase(t *testing.T) {
	for from, want := range map[string]string{
		"hf:Org/Model@main": "library_name: transformers\nbase_model: \"Org/Model\"\ntags:",
		"starter":           "library_name: transformers\ntags:",
	} {
		text, err := card("run", 0, from, []byte("{}"), iterations.Table{})
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}
}
