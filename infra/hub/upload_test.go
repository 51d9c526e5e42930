package hub

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/hub/hubtest"
)

// model is a folder: a file of each way to be uploaded.
var model = map[string]string{
	"README.md": "card <mark>", "config.json": "{}", "empty.txt": "",
	"model.safetensors": strings.Repeat("weights ", 2000), "tokenizer.json": strings.Repeat("tokens ", 300),
}

// folderOf writes a folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// publishing is an upload of model to a hub of its own.
func publishing(t *testing.T) (*hubtest.Hub, Hub, Upload) {
	t.Helper()
	fake := hubtest.New(t)
	h := Hub{Endpoint: fake.URL, Token: hubtest.WriteToken, Cache: t.TempDir(), Downloads: t.TempDir()}
	h.bounds.pause = time.Millisecond
	return fake, h, Upload{Folder: folderOf(t, model), Repo: "tiny/qwen", Message: "version 2", Card: "README.md", Mark: "<mark>"}
}

// requireModel checks that a commit has the folder's files beside what a new repository has.
func requireModel(t *testing.T, c hubtest.Commit, files map[string]string) {
	t.Helper()
	want := map[string]string{".gitattributes": c.Files[".gitattributes"]}
	for name, text := range files {
		want[name] = text
	}
	require.Equal(t, want, c.Files)
}

// A folder becomes one commit; what the hub has is not sent again, and nothing new is no commit.
func TestUpload(t *testing.T) {
	fake, h, u := publishing(t)
	out, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	head := fake.Head("tiny/qwen", "main")
	requireModel(t, head, model)
	require.Equal(t, "version 2", head.Summary)
	require.False(t, fake.Private("tiny/qwen"))
	sent := int64(len(model["model.safetensors"]) + len(model["tokenizer.json"]))
	require.Equal(t, Uploaded{Commit: head.ID, Changed: true, Sent: sent, Address: fake.URL + "/tiny/qwen/commit/" + head.ID}, out)
	for _, r := range fake.Requests() {
		path := strings.Fields(r)[1]
		toStore := strings.HasPrefix(path, "/part/") || strings.HasPrefix(path, "/whole/") || path == "/lfs/complete"
		require.Equal(t, !toStore, strings.HasSuffix(r, "+token"), r)
	}

	again, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, Uploaded{Commit: head.ID, Address: out.Address}, again)
	for _, r := range fake.Requests() {
		require.NotContains(t, r, "/commit/")
		require.NotContains(t, r, "PUT")
	}

	// What Fetch downloads is what was uploaded.
	m, err := h.Fetch(t.Context(), "tiny/qwen", "", wanted, whole)
	require.NoError(t, err)
	require.Equal(t, head.ID, m.Commit)
	for _, name := range []string{"config.json", "model.safetensors", "tokenizer.json"} {
		b, err := fs.ReadFile(m.FS, name)
		require.NoError(t, err)
		require.Equal(t, model[name], string(b))
	}
	require.NoError(t, m.Close())

	// A changed file alone is sent, and a stale one removed.
	require.NoError(t, os.WriteFile(filepath.Join(u.Folder, "config.json"), []byte(`{"a": 1}`), 0o644))
	require.NoError(t, os.Remove(filepath.Join(u.Folder, "tokenizer.json")))
	u.Stale = func(name string) bool { return name == "tokenizer.json" || name == "config.json" }
	out, err = h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, []string{"tokenizer.json"}, out.Removed)
	require.Zero(t, out.Sent)
	require.Equal(t, 3, fake.Commits("tiny/qwen", "main"))
	require.NotContains(t, fake.Head("tiny/qwen", "main").Files, "tokenizer.json")
	require.Equal(t, `{"a": 1}`, fake.Head("tiny/qwen", "main").Files["config.json"])
}

// A branch begins at main; a private repository is made, and a public one is not written to.
func TestUploadPlaces(t *testing.T) {
	fake, h, u := publishing(t)
	u.Private, u.Revision = true, "runs/seven"
	_, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.True(t, fake.Private("tiny/qwen"))
	require.Equal(t, 1, fake.Commits("tiny/qwen", "main"))
	requireModel(t, fake.Head("tiny/qwen", "runs/seven"), model)

	fake.Put("tiny/open", false, map[string]string{"a": "b"})
	u.Repo = "tiny/open"
	fake.Requests()
	_, err = h.Upload(t.Context(), u)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "it exists and is public")
	require.Len(t, fake.Requests(), 1)

	// A card of somebody else's stays.
	u.Private, u.Revision = false, ""
	fake.Put("tiny/open", false, map[string]string{"README.md": "mine"})
	_, err = h.Upload(t.Context(), u)
	require.ErrorContains(t, err, "its README.md was written by somebody else")
	fake.Put("tiny/open", false, map[string]string{"README.md": "older <mark>"})
	_, err = h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, model["README.md"], fake.Head("tiny/open", "main").Files["README.md"])
}

// breaking makes the nth answers to a path fail, from 1 on; 0 breaks off the connection.
func breaking(fake *hubtest.Hub, part string, statuses ...int) *atomic.Int64 {
	var n atomic.Int64
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, part) {
			return false
		}
		at := int(n.Add(1)) - 1
		if at >= len(statuses) || statuses[at] == http.StatusOK {
			return false
		}
		if statuses[at] == 0 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		hubtest.Refuse(w, statuses[at], "", "not now, "+r.Header.Get("Authorization"))
		return true
	}
	return &n
}

// Failures that pass are waited for; a link that has expired is asked for again.
func TestUploadRetries(t *testing.T) {
	for part, statuses := range map[string][]int{
		"/part/":        {500, 200, 0, 503, 200, 500},
		"/lfs/complete": {502, 0},
		"/lfs/verify":   {504},
		"/batch":        {0, 503},
		"/preupload/":   {429, 500},
		"/api/repos/":   {500},
		"/commit/":      {503, 0},
		"/whole/":       {403},
	} {
		t.Run(strings.Trim(part, "/"), func(t *testing.T) {
			t.Parallel()
			fake, h, u := publishing(t)
			n := breaking(fake, part, statuses...)
			out, err := h.Upload(t.Context(), u)
			require.NoError(t, err)
			require.Greater(t, n.Load(), int64(len(statuses)))
			require.True(t, out.Changed)
			requireModel(t, fake.Head("tiny/qwen", "main"), model)
			require.Equal(t, 2, fake.Commits("tiny/qwen", "main"))
		})
	}
}

// A commit whose answers are lost was made: it is found, and not made twice.
func TestUploadFindsItsCommit(t *testing.T) {
	fake, h, u := publishing(t)
	fake.After = func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	out, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, 2, fake.Commits("tiny/qwen", "main"))
	require.Equal(t, fake.Head("tiny/qwen", "main").ID, out.Commit)
	require.True(t, out.Changed)
}

// An upload that was interrupted goes on: files that were sent whole are not sent again.
func TestUploadGoesOn(t *testing.T) {
	fake, h, u := publishing(t)
	ctx, stop := context.WithCancel(t.Context())
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/whole/") { // the tokenizer, after the weights
			stop()
		}
		return false
	}
	_, err := h.Upload(ctx, u)
	require.ErrorIs(t, err, context.Canceled)
	fake.Before = nil
	fake.Requests()
	var said []string
	u.Say = func(line string) { said = append(said, line) }
	out, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.LessOrEqual(t, out.Sent, int64(len(model["tokenizer.json"])))
	require.Contains(t, said, "model.safetensors: the hub has its 15.6 KiB")
	for _, r := range fake.Requests() {
		require.NotContains(t, r, "/part/")
	}
	requireModel(t, fake.Head("tiny/qwen", "main"), model)
}

// Each refusal says what to do, and no error has the token or a signature in it.
func TestUploadRefusals(t *testing.T) {
	moved := func(fake *hubtest.Hub) {
		fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/commit/") {
				fake.Put("tiny/qwen", false, map[string]string{"notes.txt": "theirs"})
			}
			return false
		}
	}
	always := func(part string, status int) func(*hubtest.Hub) {
		return func(fake *hubtest.Hub) { breaking(fake, part, slices.Repeat([]int{status}, 40)...) }
	}
	for name, c := range map[string]struct {
		hub     func(*hubtest.Hub)
		upload  func(*Hub, *Upload)
		want    string
		refused bool
	}{
		"no token":     {nil, func(h *Hub, _ *Upload) { h.Token = "" }, "HF_TOKEN is not set", true},
		"odd token":    {nil, func(h *Hub, _ *Upload) { h.Token = "hf_a\nb" }, "which no token has", true},
		"offline":      {nil, func(h *Hub, _ *Upload) { h.Offline = true }, "HF_HUB_OFFLINE", true},
		"other token":  {nil, func(h *Hub, _ *Upload) { h.Token = "hf_other" }, "does not know the token", true},
		"read token":   {nil, func(h *Hub, _ *Upload) { h.Token = hubtest.ReadToken }, "needs the write role for tiny", true},
		"another org":  {nil, func(_ *Hub, u *Upload) { u.Repo = "other/qwen" }, "needs the write role for other", true},
		"a commit":     {nil, func(_ *Hub, u *Upload) { u.Revision = commit }, "an upload needs a branch", true},
		"no org":       {nil, func(_ *Hub, u *Upload) { u.Repo = "qwen" }, "ORG/NAME", true},
		"no folder":    {nil, func(_ *Hub, u *Upload) { u.Folder += "/nowhere" }, "open the folder to upload", false},
		"moved on":     {moved, nil, "somebody changed main meanwhile", true},
		"full":         {nil, func(_ *Hub, u *Upload) { u.Repo = "tiny/full" }, "storage at the hub is used up", true},
		"too large":    {always("/commit/", 413), nil, "takes no file or commit of this size", true},
		"xet only":     {func(fake *hubtest.Hub) { fake.XetOnly = true }, nil, `takes large files by "xet" alone`, true},
		"ignored":      {func(fake *hubtest.Hub) { fake.Ignored = "config.json" }, nil, ".gitignore leaves out config.json", true},
		"down":         {always("/preupload/", 503), nil, "publish again later", false},
		"store":        {always("/whole/", 403), nil, "127.0.0.1:", false},
		"broken store": {always("/part/", 0), nil, "part ", false},
		"bad request":  {always("/preupload/", 400), nil, "400 Bad Request: not now, Bearer …", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, h, u := publishing(t)
			if c.hub != nil {
				c.hub(fake)
			}
			if c.upload != nil {
				c.upload(&h, &u)
			}
			if u.Repo == "tiny/full" {
				fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
					if strings.Contains(r.URL.Path, "/batch") {
						hubtest.Refuse(w, http.StatusForbidden, "", "Private repository storage limit reached, please upgrade your plan")
						return true
					}
					return false
				}
			}
			_, err := h.Upload(t.Context(), u)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.refused, isRefused(err), err)
			for _, secret := range []string{hubtest.WriteToken, hubtest.ReadToken, "signature"} {
				require.NotContains(t, err.Error(), secret)
			}
			if head := fake.Head("tiny/qwen", "main"); len(head.Files) > 0 {
				require.NotContains(t, head.Files, "config.json")
			}
		})
	}
}

func isRefused(err error) bool { return errors.Is(err, ErrRefused) }

// Progress is said while an upload stands still, too.
func TestUploadTells(t *testing.T) {
	fake, h, u := publishing(t)
	h.bounds.tell = time.Millisecond
	told := make(chan string)
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/part/") {
			for line := range told {
				if strings.HasPrefix(line, "uploading") {
					require.Regexp(t, `^uploading: .* of 17\.7 KiB, .*/s$`, line)
					break
				}
			}
		}
		return false
	}
	u.Say = func(line string) {
		select {
		case told <- line:
		default:
		}
	}
	_, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
}

// A store that says nothing for long is given up.
func TestUploadStands(t *testing.T) {
	still := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(still.Close)
	h := Hub{Endpoint: still.URL, bounds: bounds{stall: 10 * time.Millisecond}}
	_, err := h.once(t.Context(), request{method: http.MethodPut, address: still.URL + "/?signature=secret"}.of([]byte("weights")))
	require.ErrorContains(t, err, "nothing came for 50ms")
	require.NotContains(t, err.Error(), "secret")
}

// An address that a hub of https gives is https, and a token goes to the hub alone.
func TestUploadAddresses(t *testing.T) {
	h := Hub{Endpoint: "https://hub.example", Token: "t"}
	_, err := h.once(t.Context(), request{method: http.MethodPut, address: "http://store.example/?signature=secret"})
	require.ErrorIs(t, err, errOther)
	require.NotContains(t, err.Error(), "secret")
	_, err = h.call(t.Context(), request{method: http.MethodPut, address: "\x00?signature=secret"})
	require.ErrorIs(t, err, errOther)
	require.NotContains(t, err.Error(), "secret")
	u := upload{Hub: h}
	require.Equal(t, "https://hub.example/a", u.fix("https://huggingface.co/a"))
	require.Equal(t, "https://huggingface.com/a", u.fix("https://huggingface.com/a"))
}

func TestCheckRepo(t *testing.T) {
	for _, name := range []string{"tiny/qwen", "a/b", "Org-1/Some_model.v2-it"} {
		require.NoError(t, CheckRepo(name), name)
	}
	for _, name := range []string{"", "qwen", "a/b/c", "../b", "a/..", "a/b--c", "a/b..c", "a/b.git", "a/b-", "a/b.", "a b/c", "a/é", "a/" + strings.Repeat("b", 95)} {
		require.ErrorIs(t, CheckRepo(name), ErrRefused, name)
	}
}

// What a hub says of parts is bounded and whole.
func TestParts(t *testing.T) {
	of := func(names ...string) map[string]any {
		out := map[string]any{}
		for _, n := range names {
			out[n] = "http://store/" + n
		}
		return out
	}
	got, err := partAddresses(of("00002", "00001", "x"), 11, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"http://store/00001", "http://store/00002"}, got)
	for _, header := range []map[string]any{of("1"), of("1", "2", "3"), of("1", "01"), of("0", "1"), of("-1", "1", "2"), {"1": 1.0, "2": "x"}} {
		_, err := partAddresses(header, 11, 10)
		require.Error(t, err, header)
	}
	_, err = partAddresses(of("1"), 1<<40, 1)
	require.ErrorContains(t, err, "at most 10000")
	for size, want := range map[any]bool{"10": true, 10.0: true, "ten": false, 0.0: false, "-1": false, true: false} {
		_, _, err := partSize(map[string]any{"chunk_size": size})
		require.Equal(t, want, err == nil, size)
	}
}

// theirs uploads and downloads as users of huggingface_hub do.
const theirs = `
import os, sys
from huggingface_hub import HfApi
folder, target = sys.argv[1:]
api = HfApi(endpoint=os.environ["HF_ENDPOINT"], token=os.environ["HF_TOKEN"])
api.create_repo("tiny/theirs", exist_ok=True)
print(api.upload_folder(repo_id="tiny/theirs", folder_path=folder, commit_message="version 2").oid)
print(api.snapshot_download("tiny/ours", local_dir=target))
api.upload_folder(repo_id="tiny/ours", folder_path=folder, commit_message="version 2")
`

// TestTheirsUploadsTheSame is why the hub of these tests is believed: huggingface_hub's own upload_folder ends
// there with the same files as Upload, finds nothing to change in what Upload made, and the other way round.
// Its requests for large files must be those of Git LFS (HF_HUB_DISABLE_XET). It needs a Python with
// huggingface_hub, named by REPRISE_PYTHON; it was run with huggingface_hub 2.4.0.
func TestTheirsUploadsTheSame(t *testing.T) {
	python := os.Getenv("REPRISE_PYTHON")
	if python == "" {
		t.Skip("REPRISE_PYTHON names no Python with huggingface_hub")
	}
	if out, err := exec.Command(python, "-c", "import huggingface_hub").CombinedOutput(); err != nil {
		t.Skipf("%s has no huggingface_hub: %v\n%s", python, err, out)
	}
	fake, h, u := publishing(t)
	u.Repo = "tiny/ours"
	_, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	target := t.TempDir()
	cmd := exec.CommandContext(t.Context(), python, "-c", theirs, u.Folder, target)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+fake.URL, "HF_TOKEN="+hubtest.WriteToken, "HF_HUB_DISABLE_XET=1",
		"HF_HOME="+t.TempDir(), "HF_HUB_DISABLE_TELEMETRY=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, strings.Join(fake.Requests(), "\n"))
	theirs := fake.Head("tiny/theirs", "main")
	requireModel(t, theirs, model)
	require.Contains(t, string(out), theirs.ID)
	require.Equal(t, theirs.Files, fake.Head("tiny/ours", "main").Files)
	require.Equal(t, 2, fake.Commits("tiny/ours", "main"), "theirs finds nothing to change")
	for name, text := range model {
		b, err := os.ReadFile(filepath.Join(target, name))
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}

	u.Repo = "tiny/theirs"
	again, err := h.Upload(t.Context(), u)
	require.NoError(t, err)
	require.False(t, again.Changed, "Upload finds nothing to change")
}

// A hub that sends a request on: the token stays with the hub, and a request stays what it is.
func TestUploadIsSentOn(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+string(b)+r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	status := http.StatusTemporaryRedirect
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			t.Error("the hub gets the token")
		}
		http.Redirect(w, r, other.URL+"/renamed?signature=secret", status)
	}))
	t.Cleanup(first.Close)
	h := Hub{Endpoint: first.URL, Token: "t"}
	require.NoError(t, h.ask(t.Context(), http.MethodPost, first.URL+"/api", "hello", nil))
	require.Equal(t, []string{`POST "hello"`}, got)
	status = http.StatusFound // net/http makes a GET of it
	err := h.ask(t.Context(), http.MethodPost, first.URL+"/api", "hello", nil)
	require.ErrorIs(t, err, errOther)
	require.NotContains(t, err.Error(), "secret")
	require.Len(t, got, 1)
}

// A hub that counts requests says how long to wait, and is not obeyed forever.
func TestUploadWaitsAsAsked(t *testing.T) {
	failure := func(status int, name, value string) *statusError {
		return Hub{}.failure(&http.Response{StatusCode: status, Header: http.Header{name: {value}}, Request: httptest.NewRequest(http.MethodGet, "/", nil)}, nil)
	}
	require.Equal(t, 7*time.Second, failure(503, "Retry-After", "7").after)
	require.Equal(t, time.Hour, failure(503, "Retry-After", "999999").after)
	require.Zero(t, failure(503, "Retry-After", "-1").after)
	require.Equal(t, 56*time.Second, failure(429, http.CanonicalHeaderKey("RateLimit"), `"api";r=0;t=55`).after)
	require.Zero(t, failure(429, http.CanonicalHeaderKey("RateLimit"), `"api";r=3;t=55`).after)
	p := pauses{ExponentialBackOff: backoff.NewExponentialBackOff(), asked: time.Minute}
	require.Equal(t, time.Minute, p.NextBackOff())
}

// What a hub says of a large file is taken or refused, and never panics.
func FuzzActions(f *testing.F) {
	f.Add(`{"href": "http://store/", "header": {"chunk_size": "10", "00001": "http://store/1", "00002": "http://store/2"}}`, int64(11))
	f.Add(`{"href": "http://store/", "header": {"chunk_size": 1, "1": null}}`, int64(1))
	f.Add(`{"href": "", "header": {"chunk_size": 1e300}}`, int64(1)<<62)
	f.Fuzz(func(t *testing.T, text string, total int64) {
		var a action
		if json.Unmarshal([]byte(text), &a) != nil || total < 1 {
			return
		}
		fields(a.Header)
		size, inParts, err := partSize(a.Header)
		if err != nil || !inParts {
			return
		}
		parts, err := partAddresses(a.Header, total, size)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(parts), maxParts)
		require.Less(t, int64(len(parts)-1)*size, total)
	})
}
