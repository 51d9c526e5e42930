package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// temporal knows some workflows by their ids and types.
type temporal struct {
	client.Client
	ids map[string]string
}

func (c temporal) execution(id string) *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: c.ids[id]},
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
}

func (c temporal) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for id := range c.ids {
		out.Executions = append(out.Executions, c.execution(id))
	}
	return out, nil
}

func (c temporal) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: c.execution(id)}, nil
}

// site is a server of pages in a test.
type site struct {
	t     *testing.T
	h     http.Handler
	store store.Store
	dir   string
}

func newSite(t *testing.T, ids map[string]string) *site {
	s := &site{t: t, store: store.NewMemory(), dir: t.TempDir()}
	s.h = handler(Options{Client: temporal{ids: ids}, Store: s.store}, s.dir, true)
	return s
}

func (s *site) get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Host = "127.0.0.1:8234"
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

func (s *site) now(id string) (n now) {
	w := s.get(path(id) + "now")
	require.Equal(s.t, http.StatusOK, w.Code)
	require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &n))
	return n
}

func (s *site) write(id string, iterations int) {
	require.NoError(s.t, synthetic.Write(s.t.Context(), s.store, id, synthetic.Shape{Iterations: iterations, Groups: 2, Members: 2, Turns: 1, Words: 2}))
}

func path(id string) string {
	return "/runs/" + strings.ReplaceAll(workflows.PageName(id), "%", "%25") + "/"
}

// A run's page follows it: it is made when it is asked for, and made again when more is committed. The version before stays.
func TestPageFollowsTheRun(t *testing.T) {
	old := idle
	idle = func(time.Duration) time.Duration { return 0 }
	defer func() { idle = old }()
	for _, id := range []string{"run 1", "a/b", "..", "<b>&", "ü" + strings.Repeat("x", 200)} {
		s := newSite(t, map[string]string{id: "Train"})
		require.Equal(t, now{State: "running", Error: "nothing is committed yet"}, s.now(id), id)
		s.write(id, 3)
		newest := store.ManifestKey(id, 0, 2)
		body, _, err := store.ReadFixed(t.Context(), s.store, newest, 1<<20)
		require.NoError(t, err)
		require.NoError(t, s.store.Delete(t.Context(), newest)) // it is not committed yet
		first := s.now(id)
		require.Regexp(t, `^[0-9a-f]{12}$`, first.Version)
		require.Equal(t, first, s.now(id))
		page := s.get(path(id) + "at/" + first.Version + "/index.html")
		require.Equal(t, http.StatusOK, page.Code, id)
		require.Contains(t, page.Body.String(), "<!doctype html>")
		require.Equal(t, http.StatusOK, s.get(path(id)+"at/"+first.Version+"/data/index.js").Code)

		require.NoError(t, s.store.Put(t.Context(), newest, body, store.PutOptions{}))
		second := s.now(id)
		require.NotEqual(t, first.Version, second.Version)
		require.Equal(t, http.StatusOK, s.get(path(id)+"at/"+first.Version+"/data/index.js").Code, "a browser may still read it")
		require.Contains(t, s.get(path(id)).Body.String(), "/assets/live.js")
		for _, bad := range []string{"at/000000000000/index.html", "at//index.html", "at/" + second.Version + "/..%2F..%2Fx", "at/" + second.Version + "/nothing.js"} {
			require.GreaterOrEqual(t, s.get(path(id)+bad).Code, 300, bad)
		}
	}
}

// A sweep's page links to those of its trials, as the browser resolves it from the page's place.
func TestSweepLinksToItsTrials(t *testing.T) {
	s := newSite(t, nil)
	body := []byte(`{"trials": [{"label": "selection.keep=0.5,seed=1"}]}`)
	_, err := store.PutArtifact(t.Context(), s.store, store.SweepDir("w"), "definition", "json", body)
	require.NoError(t, err)
	trial := sweep.ID("w", "selection.keep=0.5,seed=1")
	s.write(trial, 1)
	page := s.get(path("w") + "at/" + s.now("w").Version + "/index.html")
	require.Contains(t, page.Body.String(), `"page":"../../..`+strings.TrimPrefix(path(trial), "/runs")+`"`)
	require.NotEmpty(t, s.now(trial).Version)
}

func TestList(t *testing.T) {
	s := newSite(t, map[string]string{"<i>x": "Train", "eval-1": "Evaluate"})
	page := s.get("/").Body.String()
	require.Contains(t, page, `<a href="/runs/%253Ci%253Ex/">&lt;i&gt;x</a>`)
	require.NotContains(t, page, "<i>x")
	require.NotContains(t, page, `href="/runs/eval-1/"`, "an evaluation has no page")
	require.Equal(t, http.StatusNotFound, s.get("/x").Code)
	require.Equal(t, http.StatusOK, s.get("/assets/live.css").Code)
}

// A page of another site cannot read what is here by a name that it has resolved to this machine.
func TestOtherNamesAreRefused(t *testing.T) {
	s := newSite(t, nil)
	for host, want := range map[string]int{
		"evil.example:8234": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest,
		"localhost:8234": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:8234": http.StatusOK,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, host)
	}
}

// The pages that nobody asks for give way to new ones.
func TestKeptPages(t *testing.T) {
	s := newSite(t, nil)
	for i := range kept + 3 {
		id := fmt.Sprintf("run-%d", i)
		s.write(id, 1)
		require.NotEmpty(t, s.now(id).Version)
	}
	folders, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, folders, kept)
}

// Serve listens on loopback, and leaves nothing behind.
func TestServe(t *testing.T) {
	l, err := Listen(t.Context(), ":0")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(URL(l), "http://127.0.0.1:"))
	ctx, stop := context.WithCancel(t.Context())
	dir := t.TempDir()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Options{Client: temporal{}, Store: store.NewMemory(), Folder: dir}) }()
	answer, err := http.Get(URL(l))
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(body), "No runs yet.")
	stop()
	require.NoError(t, <-ended)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = Listen(t.Context(), "x")
	require.ErrorContains(t, err, "not host:port")
}
