package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// served is a hub of one model, tiny/qwen, whose weights come from another host.
type served struct {
	Hub
	mu     sync.Mutex
	files  map[string]string
	breaks []int             // bytes after which the next answers with weights break off
	digest string            // of the weights, as the hub says; "" says the right one
	ranges []string          // Range of the requests for weights
	tokens map[string]string // host to the token it got
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{tokens: map[string]string{}, files: map[string]string{
		"config.json": "{}", "model.safetensors": strings.Repeat("weights ", 1000), "README.md": "no", "onnx/model.safetensors": "no",
	}}
	store := httptest.NewServer(http.HandlerFunc(s.weights))
	t.Cleanup(store.Close)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, store.URL) }))
	t.Cleanup(hub.Close)
	s.Hub = Hub{Endpoint: hub.URL, Token: "secret", Cache: t.TempDir(), Downloads: t.TempDir()}
	return s
}

func (s *served) answer(w http.ResponseWriter, r *http.Request, store string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens["hub"] = r.Header.Get("Authorization")
	if path, ok := strings.CutPrefix(r.URL.Path, "/api/models/tiny/qwen/revision/"); ok && (path == "main" || path == commit) {
		var siblings []map[string]string
		for name := range s.files {
			siblings = append(siblings, map[string]string{"rfilename": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": siblings})
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/tiny/qwen/resolve/"+commit+"/")
	body, there := s.files[name]
	switch {
	case !ok || !there:
		w.WriteHeader(http.StatusNotFound)
	case name == "model.safetensors":
		sum := sha256.Sum256([]byte(body))
		digest := hex.EncodeToString(sum[:])
		if s.digest != "" {
			digest = s.digest
		}
		w.Header().Set("X-Linked-Etag", `"`+digest+`"`)
		http.Redirect(w, r, store+"/blob", http.StatusFound)
	default:
		_, _ = w.Write([]byte(body))
	}
}

func (s *served) weights(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens["store"] = r.Header.Get("Authorization")
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	body := s.files["model.safetensors"]
	w.Header().Set("ETag", strconv.Quote(body[:4]))
	if len(s.breaks) == 0 {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
		return
	}
	at := s.breaks[0]
	s.breaks = s.breaks[1:]
	from := 0
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if part, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && r.Header.Get("If-Range") == w.Header().Get("ETag") {
		from, _ = strconv.Atoi(strings.TrimSuffix(part, "-"))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)-from))
		w.Header().Set("Content-Range", "bytes "+strconv.Itoa(from)+"-"+strconv.Itoa(len(body)-1)+"/"+strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write([]byte(body[from:max(at, from)]))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func wanted(name string) bool {
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".safetensors")
}

func whole(files fs.FS) bool {
	for _, name := range []string{"config.json", "model.safetensors"} {
		if _, err := fs.Stat(files, name); err != nil {
			return false
		}
	}
	return true
}

func (s *served) fetch(revision string) (*Model, error) {
	return s.Fetch(context.Background(), "tiny/qwen", revision, wanted, whole)
}

// same checks that a model has the served files and nothing else.
func (s *served) same(t *testing.T, m *Model) {
	t.Helper()
	require.Equal(t, commit, m.Commit)
	entries, err := fs.ReadDir(m.FS, ".")
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		b, err := fs.ReadFile(m.FS, e.Name())
		require.NoError(t, err)
		require.Equal(t, s.files[e.Name()], string(b))
	}
}

func TestFetchDownloads(t *testing.T) {
	s := serve(t)
	m, err := s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.Equal(t, map[string]string{"hub": "Bearer secret", "store": ""}, s.tokens, "the token is the hub's alone")
	require.NoError(t, m.Close())

	// What is there is not fetched again, until it is discarded.
	m, err = s.fetch(commit)
	require.NoError(t, err)
	s.same(t, m)
	require.Len(t, s.ranges, 1)
	require.NoError(t, m.Discard())
	m, err = s.fetch("main")
	require.NoError(t, err)
	require.Len(t, s.ranges, 2)
	require.NoError(t, m.Discard())

	for _, name := range []string{"tiny/other", "../qwen", "tiny/..", "", "tiny/qwen/.."} {
		_, err = s.Fetch(context.Background(), name, "", wanted, whole)
		require.ErrorIs(t, err, ErrRefused, name)
	}
	_, err = s.fetch("no-such-branch")
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "HF_TOKEN")
}

func TestDownloadResumes(t *testing.T) {
	s := serve(t)
	s.breaks = []int{1000, 1000, 3000}
	m, err := s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.Equal(t, []string{"", "bytes=1000-", "bytes=1000-", "bytes=3000-"}, s.ranges)
	require.NoError(t, m.Discard())

	// An attempt after a killed process resumes too.
	s.breaks, s.ranges = []int{2000, 2000, 2000, 2000, 2000, 2000}, nil
	_, err = s.fetch("")
	require.ErrorContains(t, err, "download model.safetensors")
	require.NotErrorIs(t, err, ErrRefused)
	s.ranges = nil
	m, err = s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.Equal(t, []string{"bytes=2000-"}, s.ranges)
	require.NoError(t, m.Discard())

	// A file that has changed since begins again: what comes of it is progress, however much there was of the other.
	s.breaks = []int{2000, 2000, 2000, 2000, 2000, 2000}
	_, err = s.fetch("")
	require.Error(t, err)
	s.files["model.safetensors"] = strings.Repeat("another ", 900)
	s.breaks, s.ranges = []int{100, 200, 300, 400, 500, 600}, nil
	m, err = s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.Equal(t, []string{"bytes=2000-", "bytes=100-", "bytes=200-", "bytes=300-", "bytes=400-", "bytes=500-", "bytes=600-"}, s.ranges)
	require.NoError(t, m.Close())
	dir := filepath.Join(s.Downloads, "models--tiny--qwen", commit)

	// A process that ended between the last byte and the name has only the digest to check.
	require.NoError(t, os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "model.safetensors.part")))
	of := partOf{ETag: `"anot"`, Size: int64(len(s.files["model.safetensors"]))}
	b, err := json.Marshal(of)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.part.json"), b, 0o600))
	s.ranges = nil
	m, err = s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.Empty(t, s.ranges)
	require.NoError(t, m.Close())

	// A part longer than the file is dropped.
	require.NoError(t, os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "model.safetensors.part")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.part.json"), []byte(`{"etag":"\"anot\"","size":-1}`), 0o600))
	m, err = s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.NoError(t, m.Discard())
}

func TestDownloadIsVerified(t *testing.T) {
	s := serve(t)
	s.digest = strings.Repeat("0", 64)
	_, err := s.fetch("")
	require.ErrorContains(t, err, "the hub says "+s.digest)
	s.digest, s.ranges = "", nil
	m, err := s.fetch("")
	require.NoError(t, err)
	s.same(t, m)
	require.Equal(t, []string{""}, s.ranges, "nothing of it is kept")
	require.NoError(t, m.Close())
}

func TestDownloadIsCancelled(t *testing.T) {
	s := serve(t)
	held, err := s.fetch("")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = s.Fetch(ctx, "tiny/qwen", "", wanted, whole)
	require.ErrorIs(t, err, context.Canceled)
	unlock, err := lock(context.Background(), filepath.Join(s.Downloads, "other.lock"), time.Millisecond)
	require.NoError(t, err)
	_, err = lock(ctx, filepath.Join(s.Downloads, "other.lock"), time.Millisecond)
	require.ErrorIs(t, err, context.Canceled, "another process has it")
	unlock()
	unlock, err = lock(ctx, filepath.Join(s.Downloads, "other.lock"), time.Millisecond)
	require.NoError(t, err)
	unlock()
	require.NoError(t, held.Close())
}

// An abandoned download is removed after a time, unless it is being used.
func TestAbandonedDownloads(t *testing.T) {
	s := serve(t)
	old := time.Now().Add(-15 * 24 * time.Hour)
	for _, name := range []string{"left", "used", "fresh"} {
		dir := filepath.Join(s.Downloads, "models--tiny--other", name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.part"), []byte("x"), 0o600))
		unlock, err := lock(context.Background(), dir+".lock", time.Millisecond)
		require.NoError(t, err)
		if name != "used" {
			unlock()
		} else {
			defer unlock()
		}
		if name != "fresh" {
			require.NoError(t, os.Chtimes(dir+".lock", old, old))
		}
	}
	m, err := s.fetch("")
	require.NoError(t, err)
	require.NoError(t, m.Discard())
	left, err := filepath.Glob(filepath.Join(s.Downloads, "models--tiny--other", "*"))
	require.NoError(t, err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	require.Equal(t, []string{"fresh", "fresh.lock", "used", "used.lock"}, left)
}

// fill makes a cache as Hugging Face's programs do: files are links to blobs.
func (s *served) fill(t *testing.T, names ...string) {
	t.Helper()
	model := filepath.Join(s.Cache, "models--tiny--qwen")
	for _, dir := range []string{"blobs", "refs", "snapshots/" + commit} {
		require.NoError(t, os.MkdirAll(filepath.Join(model, dir), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(model, "refs", "main"), []byte(commit), 0o600))
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(model, "blobs", name+"-blob"), []byte(s.files[name]), 0o600))
		require.NoError(t, os.Symlink("../../blobs/"+name+"-blob", filepath.Join(model, "snapshots", commit, name)))
	}
}

// What a local cache holds needs no network, and is never removed.
func TestFetchFromTheCache(t *testing.T) {
	s := serve(t)
	s.fill(t, "config.json", "model.safetensors")
	online := s.Endpoint
	s.Endpoint = "http://" + nobody(t)
	for _, revision := range []string{commit, "main", ""} {
		m, err := s.fetch(revision)
		require.NoError(t, err, revision)
		s.same(t, m)
		require.NoError(t, m.Discard())
	}
	_, err := s.fetch("another-branch")
	require.True(t, Unreachable(err), "%v", err)
	s.Offline = true
	m, err := s.fetch("main")
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = s.fetch("another-branch")
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "HF_HUB_OFFLINE")

	// A branch is asked for, and its commit taken from the cache.
	s.Offline, s.Endpoint = false, online
	m, err = s.fetch("main")
	require.NoError(t, err)
	s.same(t, m)
	require.NoError(t, m.Discard())
	require.Empty(t, s.ranges)

	// A commit of which a file is missing is downloaded, and so is one whose links lead out.
	weights := filepath.Join(s.Cache, "models--tiny--qwen", "snapshots", commit, "model.safetensors")
	require.NoError(t, os.Remove(weights))
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for range 2 {
		m, err = s.fetch(commit)
		require.NoError(t, err)
		s.same(t, m)
		require.NoError(t, m.Discard())
		_ = os.Symlink(outside, weights)
	}
	require.Len(t, s.ranges, 2)
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestFromEnv(t *testing.T) {
	for _, name := range []string{"HF_ENDPOINT", "HF_TOKEN", "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_HUB_OFFLINE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", "/home/anna")
	h, err := FromEnv()
	require.NoError(t, err)
	require.Equal(t, Hub{Endpoint: "https://huggingface.co", Cache: "/home/anna/.cache/huggingface/hub", Downloads: h.Downloads}, h)
	require.Equal(t, filepath.Join("reprise", "hub"), filepath.Join(filepath.Base(filepath.Dir(h.Downloads)), filepath.Base(h.Downloads)))
	t.Setenv("HF_HOME", "/data/hf")
	t.Setenv("HF_ENDPOINT", "http://mirror/")
	t.Setenv("HF_HUB_OFFLINE", "true")
	h, err = FromEnv()
	require.NoError(t, err)
	require.Equal(t, "/data/hf/hub", h.Cache)
	require.Equal(t, "http://mirror", h.Endpoint)
	require.True(t, h.Offline)
	t.Setenv("HF_HUB_CACHE", "/data/hub")
	h, err = FromEnv()
	require.NoError(t, err)
	require.Equal(t, "/data/hub", h.Cache)
}

func TestUnreachable(t *testing.T) {
	require.True(t, Unreachable(&net.DNSError{Err: "no such host"}))
	require.True(t, Unreachable(&net.OpError{Op: "dial", Err: errors.New("network is unreachable")}))
	require.False(t, Unreachable(&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}))
	require.False(t, Unreachable(errors.New("the hub answered 500")))
}
