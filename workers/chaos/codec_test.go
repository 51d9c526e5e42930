package chaos

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workflows"
)

// The markers are words of a run that a server must not see where payloads are
// encrypted: each stands in another place.
const (
	markSpec    = "marked-description"
	markPrompt  = "Marked-Arm" // an arm's name, which the prompts have
	markLabel   = "marked-suite"
	markSummary = "marked-summary"
	markFailure = "marked-folder"
	markMemo    = "marked-memo"
)

var markers = []string{markSpec, markPrompt, markLabel, markSummary, markFailure, markMemo}

// continueAfter makes runs and sweeps continue as new, and so the sweep look its trials up.
const continueAfter = 2

// markedSpec is a short run with the markers of a spec.
func markedSpec(t *testing.T, iterations int) []byte {
	t.Helper()
	return preset(t, "smoke", map[string]any{
		"description": markSpec, "iterations": iterations,
		"environment": map[string]any{"name": "bandit", "options": map[string]any{"high_name": markPrompt}},
		"evaluation":  map[string]any{"every": 2, "instances": 4, "suites": []any{map[string]any{"name": markLabel, "suite": "in-distribution"}}},
	})
}

// begin starts a workflow with a client that has the lane's codec.
func (l *lane) begin(kind, id string, input []byte) {
	l.t.Helper()
	_, err := l.client.ExecuteWorkflow(l.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: activities.WorkflowQueue, StaticSummary: markSummary, Memo: map[string]any{"note": markMemo},
	}, kind, json.RawMessage(input))
	require.NoError(l.t, err)
}

// lacking is the spec of a run that fails, since a folder is not there.
func lacking(t *testing.T, folder string) []byte {
	t.Helper()
	return preset(t, "smoke", map[string]any{"policy": map[string]any{"from": "folder:/" + folder}})
}

// fails waits for the failure of a run that lacks a folder.
func (l *lane) fails(id, folder string) {
	l.t.Helper()
	l.ends(id, enums.WORKFLOW_EXECUTION_STATUS_FAILED)
	require.ErrorContains(l.t, l.failure(id), folder, "whoever has the keys reads why")
}

// seen are the markers that the server's database holds.
func (l *lane) seen() []string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.stack.Dir(), "temporal.db*"))
	require.NoError(l.t, err)
	require.Contains(l.t, files, filepath.Join(l.stack.Dir(), "temporal.db-wal"))
	var found []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(l.t, err)
		for _, m := range markers {
			if bytes.Contains(b, []byte(m)) && !slices.Contains(found, m) {
				found = append(found, m)
			}
		}
	}
	return found
}

// Without a codec the database holds every marker: the test below can fail.
func TestPlainDatabase(t *testing.T) {
	beside(t)
	l := newNamedLane(t, ownStack(t, dev.Options{Ephemeral: true}), dev.Namespace, true)
	l.worker(workerOptions{flags: []string{"--roles", "workflow,host"}})
	l.begin("Train", "waits", markedSpec(t, 3))
	l.begin("Train", "fails", lacking(t, markFailure))
	l.fails("fails", markFailure)
	l.reaches("waits", "a plan", func(s workflows.Status) bool { return s.Iterations > 0 })
	require.ElementsMatch(t, markers, l.seen())
}

// Under a codec everything works as without it, and the server's database holds nothing
// of what runs are about.
func TestCodec(t *testing.T) {
	beside(t)
	keys := filepath.Join(t.TempDir(), "codec.keys")
	require.NoError(t, os.WriteFile(keys, []byte("k1 "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))+"\n"), 0o600))
	stack := ownStack(t, dev.Options{Ephemeral: true})
	settings := connect.Settings{DevDir: stack.Dir(), CodecKeyFile: keys}
	c, err := settings.DialTemporal(t.Context(), zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	l := newNamedLane(t, stack, dev.Namespace, true)
	l.client = c
	p := l.worker(workerOptions{flags: []string{"--codec-key-file", keys, "--metrics-listen", "127.0.0.1:0", "--continue-as-new-after", fmt.Sprint(continueAfter)}})

	// The worker has a client of its own for metrics: it has to encrypt as well.
	l.begin("Train", "run", markedSpec(t, 3))
	l.begin("Train", "fails", lacking(t, markFailure))
	l.fails("fails", markFailure)
	l.reaches("run", "a plan", func(s workflows.Status) bool { return s.Iterations == 3 })
	for _, command := range []string{"pause", "resume"} {
		var answer string
		h, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: "run", UpdateName: command, WaitForStage: client.WorkflowUpdateStageCompleted})
		require.NoError(t, err)
		require.NoError(t, h.Get(t.Context(), &answer))
		require.NotEmpty(t, answer)
		l.reaches("run", command, func(s workflows.Status) bool { return s.Paused == (command == "pause") })
	}
	out, err := l.reprise("watch", "run", "--codec-key-file", keys)
	require.NoError(t, err, out)
	require.Contains(t, out, "iteration 2 (3 of 3)")
	out, err = l.reprise("watch", "run")
	require.Error(t, err)
	require.Contains(t, out, `it was encrypted with the key "k1"; name the file that holds it with --codec-key-file`)
	l.completes("run")

	l.begin("Evaluate", "measured", []byte(`{"policy": {"run": "run", "version": 2}, "suites": [{"name": "`+markLabel+`", "suite": "in-distribution", "instances": 4}]}`))
	sweep, err := json.Marshal(map[string]any{
		"description": markSpec, "base": json.RawMessage(markedSpec(t, 2)), "grid": map[string]any{"selection.keep": []float64{0.5, 1}},
		"seeds": 1, "parallel": 2, "metrics": []string{"rollout/selected_rows"}, "goal": "minimize",
		"early_stopping": map[string]any{"method": "median", "first": 1, "min_trials": 1},
	})
	require.NoError(t, err)
	l.begin("Sweep", sweepRun, sweep)
	l.completes("measured")
	l.completes(sweepRun)
	_, table := l.table(sweepRun)
	require.Len(t, table.Rows, 2)
	require.Len(t, table.Decisions, 1, "the second trial keeps more rows than the first")

	l.readsThroughServer(keys)
	p.terminate(t, time.Minute)
	signals := l.decidesAgain(connectConverter(t, settings))
	require.Positive(t, signals, "the trials read the memo that names their sweep")
	require.Empty(t, l.seen())
}

func connectConverter(t *testing.T, s connect.Settings) converter.DataConverter {
	t.Helper()
	c, err := s.PayloadCodec()
	require.NoError(t, err)
	return c.DataConverter()
}

// decidesAgain replays the histories of all of the lane's workflows, and gives the
// number of signals in them.
func (l *lane) decidesAgain(by converter.DataConverter) (signals int) {
	l.t.Helper()
	w := &workflows.Workflows{Converter: by, ContinueAfter: continueAfter, SessionHeartbeat: 5 * time.Second}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: by, DisableDeadlockDetection: true})
	require.NoError(l.t, err)
	r.RegisterWorkflowWithOptions(w.Train, workflow.RegisterOptions{Name: "Train"})
	r.RegisterWorkflowWithOptions(w.Evaluate, workflow.RegisterOptions{Name: "Evaluate"})
	r.RegisterWorkflowWithOptions(w.Sweep, workflow.RegisterOptions{Name: "Sweep"})
	list, err := l.client.ListWorkflow(l.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: l.namespace})
	require.NoError(l.t, err)
	kinds := map[string]int{}
	for _, e := range list.Executions {
		kinds[e.Type.Name]++
		h := &history.History{}
		events := l.client.GetWorkflowHistory(l.t.Context(), e.Execution.WorkflowId, e.Execution.RunId, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(l.t, err)
			h.Events = append(h.Events, event)
			if event.EventType == enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED && e.Type.Name == "Sweep" {
				signals++
			}
		}
		options := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: e.Execution.WorkflowId, RunID: e.Execution.RunId}}
		require.NoError(l.t, r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h, options), e.Execution.WorkflowId)
	}
	require.Equal(l.t, 1, kinds["Evaluate"])
	require.Greater(l.t, kinds["Sweep"], 1, "it continued as new")
	require.Greater(l.t, kinds["Train"], 4, "and so did the run")
	return signals
}

// readsThroughServer has the temporal CLI read and write through `reprise codec-server`,
// and start a run in plain text without it, which the worker reads.
func (l *lane) readsThroughServer(keys string) {
	l.t.Helper()
	server := exec.Command(program, "codec-server", "--listen", "127.0.0.1:0", "--codec-key-file", keys, "--dev-dir", l.stack.Dir())
	server.Env, server.Stderr = environment, os.Stderr
	stdout, err := server.StdoutPipe()
	require.NoError(l.t, err)
	require.NoError(l.t, server.Start())
	l.t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(l.t, err)
	endpoint := strings.TrimSuffix(strings.Fields(line)[3], ",")
	require.Contains(l.t, line, l.stack.UIURL())

	shows := func(more ...string) bool {
		out, err := l.cli(append([]string{"workflow", "show", "--workflow-id", "run", "--output", "json"}, more...)...)
		require.NoError(l.t, err)
		return strings.Contains(out, base64.StdEncoding.EncodeToString([]byte(`"`+markMemo+`"`)))
	}
	require.False(l.t, shows())
	require.True(l.t, shows("--codec-endpoint", endpoint))

	file := filepath.Join(l.t.TempDir(), "spec.json")
	require.NoError(l.t, os.WriteFile(file, lacking(l.t, markFailure), 0o600))
	_, err = l.cli("workflow", "start", "--type", "Train", "--task-queue", "reprise", "--workflow-id", "by-cli", "--input-file", file, "--codec-endpoint", endpoint)
	require.NoError(l.t, err)
	l.fails("by-cli", markFailure)
	l.start("plain", lacking(l.t, "elsewhere"))
	l.fails("plain", "elsewhere")
}
