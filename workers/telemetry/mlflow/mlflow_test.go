package mlflow

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/telemetry/curves"
)

func steps(from, to int64) curves.Branch {
	b := curves.Branch{Manifest: "m", Settings: "s"}
	for n := from; n < to; n++ {
		s := curves.Step{Number: n}
		for i := range 3 {
			s.Values = append(s.Values, curves.Value{Name: fmt.Sprintf("reward/m%d", i), Number: float64(n) / 2})
		}
		b.Steps = append(b.Steps, s)
	}
	return b
}

// fake keeps runs as MLflow does; it appends what is logged twice, so that a test sees it.
type fake struct {
	experiment bool
	runs       []*fakeRun
	cut        int // after so many calls of log-batch the server fails; 0 is never
}

type fakeRun struct {
	tags    map[string]string
	metrics []metric
	status  string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ID      string `json:"run_id"`
		Filter  string
		Status  string
		Tags    []tag
		Metrics []metric
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	find := func() *fakeRun {
		var n int
		if _, err := fmt.Sscanf(in.ID, "id%d", &n); err != nil {
			panic(err)
		}
		return f.runs[n]
	}
	switch strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/") {
	case "experiments/get-by-name":
		if !f.experiment {
			w.WriteHeader(http.StatusNotFound)
			answer(map[string]string{"error_code": "RESOURCE_DOES_NOT_EXIST"})
			return
		}
		answer(map[string]any{"experiment": map[string]string{"experiment_id": "7"}})
	case "experiments/create":
		f.experiment = true
		answer(map[string]string{"experiment_id": "7"})
	case "runs/search":
		var found []any
		for i, run := range f.runs {
			if in.Filter == fmt.Sprintf("tags.`reprise.id` = '%s'", run.tags["reprise.id"]) {
				found = append(found, run.json(i))
			}
		}
		answer(map[string]any{"runs": found})
	case "runs/create":
		run := &fakeRun{tags: map[string]string{}}
		for _, t := range in.Tags {
			run.tags[t.Key] = t.Value
		}
		f.runs = append(f.runs, run)
		answer(map[string]any{"run": run.json(len(f.runs) - 1)})
	case "runs/log-batch":
		if f.cut == 1 {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		f.cut = max(0, f.cut-1)
		if len(in.Metrics) > maxMetrics {
			http.Error(w, "too many", http.StatusBadRequest)
			return
		}
		run := find()
		run.metrics = append(run.metrics, in.Metrics...)
		for _, t := range in.Tags {
			run.tags[t.Key] = t.Value
		}
	case "runs/update":
		find().status = in.Status
	default:
		http.NotFound(w, r)
	}
}

func (r *fakeRun) json(i int) any {
	newest := map[string]metric{}
	for _, m := range r.metrics {
		newest[m.Key] = m
	}
	var metrics []any
	for _, m := range newest {
		metrics = append(metrics, map[string]any{"key": m.Key, "step": fmt.Sprint(m.Step)})
	}
	return map[string]any{"info": map[string]string{"run_id": fmt.Sprintf("id%d", i)}, "data": map[string]any{"metrics": metrics}}
}

func TestEachNumberOnce(t *testing.T) {
	f := &fake{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c, err := NewClient(server.URL)
	require.NoError(t, err)
	log := func(branches ...curves.Branch) (numbers []int, err error) {
		logged, err := c.Log(t.Context(), "a/b", branches)
		for _, l := range logged {
			numbers = append(numbers, l.Numbers)
		}
		return numbers, err
	}

	// A call that is cut short after its first 1,000 numbers, and the next one.
	f.cut = 2
	_, err = log(steps(0, 500))
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusBadGateway, refused.Status)
	require.Len(t, f.runs[0].metrics, maxMetrics)
	f.cut = 0
	numbers, err := log(steps(0, 500))
	require.NoError(t, err)
	require.Equal(t, []int{500}, numbers)

	// A fork, more steps, and the same again.
	fork := steps(400, 450)
	fork.Number = 1
	for _, want := range [][]int{{30, 150}, {0, 0}} {
		numbers, err = log(steps(0, 510), fork)
		require.NoError(t, err)
		require.Equal(t, want, numbers)
	}
	require.Len(t, f.runs, 2)
	seen := map[string]bool{}
	for _, m := range f.runs[0].metrics {
		at := fmt.Sprint(m.Key, m.Step)
		require.False(t, seen[at], at)
		seen[at] = true
	}
	require.Len(t, seen, 3*510)
	require.Equal(t, "FINISHED", f.runs[0].status)
	require.Equal(t, "m", f.runs[0].tags["reprise.manifest"])
}

func TestNames(t *testing.T) {
	b := curves.Branch{Steps: []curves.Step{{Number: 2, Values: []curves.Value{
		{Name: "a+b", Number: math.NaN()}, {Name: "c", Number: math.Inf(-1)}, {Name: "d", Number: math.Inf(1)},
	}}}}
	got, err := lacking(b, map[string]int64{"c": 2})
	require.NoError(t, err)
	sent, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `[{"key": "a_b", "value": "NaN", "timestamp": 2000, "step": 2},
		{"key": "d", "value": "Infinity", "timestamp": 2000, "step": 2}]`, string(sent))
	b.Steps[0].Values = append(b.Steps[0].Values, curves.Value{Name: "a_b"})
	_, err = lacking(b, nil)
	require.ErrorContains(t, err, `metrics "a+b" and "a_b" have one name in MLflow: "a_b"`)
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "localhost:5000", "ftp://h", "http://"} {
		_, err := NewClient(address)
		require.Error(t, err, address)
	}
	_, err := NewClient("ftp://user:secret@h")
	require.NotContains(t, err.Error(), "secret")
}

// TestRealServer starts `mlflow server` and reads back what it keeps.
func TestRealServer(t *testing.T) {
	program := os.Getenv("REPRISE_MLFLOW")
	if program == "" {
		t.Skip("REPRISE_MLFLOW names no mlflow program: no real server is asked")
	}
	dir := t.TempDir()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := port.Addr().String()
	require.NoError(t, port.Close())
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "server", "--host", "127.0.0.1", "--port", address[strings.LastIndex(address, ":")+1:],
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "m.db"), "--artifacts-destination", dir, "--workers", "1")
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		answer, err := http.Get("http://" + address + "/health")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, 3*time.Minute, 200*time.Millisecond)

	c, err := NewClient("http://" + address)
	require.NoError(t, err)
	b := steps(0, 400)
	b.Steps[399].Values[0].Number = math.NaN()
	for i, want := range []int{600, 600, 0} {
		part := b
		if i == 0 {
			part.Steps = b.Steps[:200]
		}
		logged, err := c.Log(t.Context(), "it's/a", []curves.Branch{part})
		require.NoError(t, err)
		require.Equal(t, want, logged[0].Numbers)
		var history struct{ Metrics []struct{ Step lenientStep } }
		require.NoError(t, c.call(t.Context(), "metrics/get-history",
			url.Values{"run_id": {logged[0].ID}, "metric_key": {"reward/m0"}}, nil, &history))
		require.Len(t, history.Metrics, len(part.Steps))
		for n, m := range history.Metrics {
			require.EqualValues(t, n, m.Step)
		}
	}
}
