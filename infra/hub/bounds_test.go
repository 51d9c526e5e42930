package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/leftover"
)

func TestUsualBounds(t *testing.T) {
	usual := bounds{stall: 60 * time.Second, look: 500 * time.Millisecond, pause: time.Second, tell: 5 * time.Second}
	require.Equal(t, usual, bounds{}.orUsual())
	require.Equal(t, bounds{1, 2, 3, 4}, bounds{1, 2, 3, 4}.orUsual())
}

// silent is a hub whose answers stand still: the one to the lookup before it begins, that with the weights before it
// begins or after some bytes. Each stands still so often.
type silent struct {
	lookups, weights atomic.Int64 // that stand still
	after            int          // bytes of the weights
	asked            atomic.Int64
}

const silentWeights = "0123456789"

func (s *silent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/"):
		if s.lookups.Add(-1) >= 0 {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":"config.json"}]}`, commit)
	case s.weights.Add(-1) >= 0:
		if s.after > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(silentWeights)))
			_, _ = io.WriteString(w, silentWeights[:s.after])
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	default:
		_, _ = io.WriteString(w, silentWeights)
	}
}

// A hub that stands still is not waited for: the lookup is given up, a download is taken up again so often.
func TestSilentHub(t *testing.T) {
	for name, c := range map[string]struct {
		lookups, weights int64
		after            int
		asked            int64
		fails            string
	}{
		"nothing":                     {asked: 2},
		"the lookup":                  {lookups: 1, asked: 1, fails: "look up tiny/qwen at revision main: "},
		"the weights, once":           {weights: 1, asked: 3},
		"the weights, four times":     {weights: 4, asked: 6},
		"the weights, always":         {weights: 99, asked: 6, fails: "download config.json of tiny/qwen: "},
		"in the weights, once":        {weights: 1, after: 4, asked: 3},
		"in the weights, three times": {weights: 3, after: 4, asked: 5},
	} {
		t.Run(name, func(t *testing.T) {
			leftover.Check(t)
			s := &silent{after: c.after}
			s.lookups.Store(c.lookups)
			s.weights.Store(c.weights)
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			h := Hub{Endpoint: server.URL, Cache: t.TempDir(), Downloads: t.TempDir(), bounds: bounds{stall: 50 * time.Millisecond}}
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			m, err := h.Fetch(ctx, "tiny/qwen", "", wanted, whole)
			require.NoError(t, ctx.Err(), "the hub's own bound ends the wait")
			require.Equal(t, c.asked, s.asked.Load())
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				require.ErrorContains(t, err, "nothing came for 50ms")
				require.NotErrorIs(t, err, context.Canceled, "nobody has cancelled it")
				require.NotErrorIs(t, err, ErrRefused, "trying again may help")
				return
			}
			require.NoError(t, err)
			b, err := m.root.ReadFile("config.json")
			require.NoError(t, err)
			require.Equal(t, silentWeights, string(b))
			require.NoError(t, m.Close())
		})
	}
}

// slowly reads one byte after each pause.
type slowly struct{ pause time.Duration }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	p[0] = 'x'
	return 1, nil
}

// What moves is waited for, however slow it is; what stands still for longer than the bound is not.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			pause time.Duration
			ends  bool
		}{{59 * time.Second, false}, {61 * time.Second, true}} {
			ctx, moving, stop := Hub{}.watch(t.Context())
			begun := time.Now()
			_, err := io.ReadFull(moving(slowly{c.pause}), make([]byte, 100))
			require.NoError(t, err)
			require.Equal(t, 100*c.pause, time.Since(begun))
			require.Equal(t, c.ends, ctx.Err() != nil)
			stop()
			require.Error(t, ctx.Err())
			synctest.Wait()
		}
	})
}

// A download that another process has is waited for, until that one has ended it.
func TestDownloadOfAnotherProcess(t *testing.T) {
	leftover.Check(t)
	s := serve(t)
	s.bounds.look = time.Millisecond
	first, err := s.fetch("")
	require.NoError(t, err)
	second := make(chan error, 1)
	go func() {
		m, err := s.fetch("")
		if err == nil {
			err = m.Close()
		}
		second <- err
	}()
	select {
	case err := <-second:
		require.Failf(t, "it did not wait", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, first.Close())
	select {
	case err := <-second:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it did not look again")
	}
	require.Len(t, s.ranges, 1, "what the first has fetched is there")
}

// library is a hub of several models and revisions: the content of each file says what it is of.
type library struct {
	commits map[string]string // by "REPO REVISION"
	breaks  bool              // files break off in the middle, and no range is given
	asked   int               // for files
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/api/models/"); ok {
		repo, revision, _ := strings.Cut(path, "/revision/")
		sha, ok := l.commits[repo+" "+revision]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": sha, "siblings": []any{map[string]string{"rfilename": "config.json"}}})
		return
	}
	l.asked++
	body := strings.Trim(r.URL.Path, "/")
	w.Header().Set("ETag", `"`+body+`"`)
	if l.breaks {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body[:5])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
}

// A model's files are those of the model and the revision that are asked for, each changed alone: whatever is in the
// folder of downloads already, whole or in part, and whatever a branch was before.
func TestOtherModelsAndRevisions(t *testing.T) {
	one, other, third := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	l := &library{commits: map[string]string{"a/m main": one, "a/m dev": other, "a/n main": one, "b/m main": one, "m main": one, "a/m " + third: third}}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	h := Hub{Endpoint: server.URL, Cache: t.TempDir(), Downloads: t.TempDir()}
	never := func(string) bool { return true }
	for _, l.breaks = range []bool{true, false} {
		l.asked = 0
		for _, c := range []struct{ repo, revision, commit string }{
			{"a/m", "", one}, {"a/m", "dev", other}, {"a/m", third, third}, {"a/n", "main", one}, {"b/m", "main", one}, {"m", "main", one}, {"a/m", "main", one},
		} {
			m, err := h.Fetch(t.Context(), c.repo, c.revision, never, whole)
			if l.breaks {
				require.ErrorContains(t, err, "download config.json of "+c.repo+": ")
				asked := 6                                   // the first time its first bytes are progress
				if c.repo == "a/m" && c.revision == "main" { // the branch that "" was: they are there
					asked = 5
				}
				require.Equal(t, asked, l.asked, "%s %s: what begins again and again makes no progress", c.repo, c.revision)
				l.asked = 0
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.commit, m.Commit)
			b, err := m.root.ReadFile("config.json")
			require.NoError(t, err)
			require.Equal(t, c.repo+"/resolve/"+c.commit+"/config.json", string(b))
			require.NoError(t, m.Close())
		}
	}
	l.commits["a/m main"] = third
	m, err := h.Fetch(t.Context(), "a/m", "main", never, whole)
	require.NoError(t, err)
	require.Equal(t, third, m.Commit, "the branch has moved")
	require.NoError(t, m.Discard())
	left, err := filepath.Glob(filepath.Join(h.Downloads, "*", "*", "*"))
	require.NoError(t, err)
	require.Len(t, left, 5, "one download is discarded alone")
}
