package workflows

import (
	"compress/gzip"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

const histories = "testdata/histories"

// sessions are histories of runs that have their device by sessions of the SDK, as earlier builds began them: see byLease.
const sessions = "testdata/sessions"

func readHistory(t *testing.T, name string) *history.History {
	t.Helper()
	return readHistoryAt(t, filepath.Join(histories, name))
}

func readHistoryAt(t *testing.T, path string) *history.History {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

func replayer(t *testing.T, w *Workflows) worker.WorkflowReplayer {
	t.Helper()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(w.Train, workflow.RegisterOptions{Name: "Train"})
	r.RegisterWorkflowWithOptions(w.Evaluate, workflow.RegisterOptions{Name: "Evaluate"})
	r.RegisterWorkflowWithOptions(w.Sweep, workflow.RegisterOptions{Name: "Sweep"})
	return r
}

// nonDeterministic is what the SDK calls a history that was decided otherwise.
const nonDeterministic = "[TMPRL1100]"

var silent = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// methodsOf are the methods of scenes: a worker that lacks one decides nothing of the run (TestNotLinked).
var methodsOf = map[string][]string{"passes": {"seeupo", "turns_reversed"}, "shared": {"gae"}}

// Histories of runs on real servers (package workers/record) are decided again
// as they were: a change that fails here breaks runs that are under way.
func TestReplayHistories(t *testing.T) {
	entries, err := os.ReadDir(histories)
	require.NoError(t, err)
	scenes := map[string]bool{}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".json.gz")
		scene, _, _ := strings.Cut(name, "-")
		scenes[scene] = true
		t.Run(name, func(t *testing.T) {
			methodstest.Needs(t, methodsOf[scene]...)
			// A sweep's trials have ids that begin with its own.
			options := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: scene}}
			require.NoError(t, replayer(t, &Workflows{}).ReplayWorkflowHistoryWithOptions(silent, readHistory(t, e.Name()), options))
		})
	}
	for _, scene := range fields("whole killed restarted preempted commanded continued cancelled refused evaluate returned shared swept beside passes lagging") {
		require.True(t, scenes[scene], "the scene %s was recorded", scene)
	}
}

// Runs that were begun under sessions of the SDK end as they began.
func TestReplaySessions(t *testing.T) {
	entries, err := os.ReadDir(sessions)
	require.NoError(t, err)
	require.Len(t, entries, 17)
	for _, e := range entries {
		scene, _, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".json.gz"), "-")
		t.Run(scene, func(t *testing.T) {
			methodstest.Needs(t, methodsOf[scene]...)
			options := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: scene}}
			h := readHistoryAt(t, filepath.Join(sessions, e.Name()))
			require.NoError(t, replayer(t, &Workflows{}).ReplayWorkflowHistoryWithOptions(silent, h, options))
		})
	}
}

// releases has a folder for each release: its histories, the shapes of its activities and half a run (package workers/record). It is
// empty before the first one.
const releases = "testdata/releases"

// The histories of each release are decided again as they were: its runs go on under this build. A change that fails here has to be
// guarded in changes.go.
func TestReplayReleases(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(releases, "*"))
	require.NoError(t, err)
	for _, folder := range folders {
		require.Regexp(t, `^v\d+\.\d+\.\d+$`, filepath.Base(folder))
		for _, part := range []string{"release.json", "temporal.db.gz", "bucket.tar.gz", "shapes.txt"} {
			require.FileExists(t, filepath.Join(folder, part), "make release-record was interrupted")
		}
		recorded, err := filepath.Glob(filepath.Join(folder, "histories", "*.json.gz"))
		require.NoError(t, err)
		require.NotEmpty(t, recorded, "make release-record was interrupted")
		for _, path := range recorded {
			name := strings.TrimSuffix(filepath.Base(path), ".json.gz")
			scene, _, _ := strings.Cut(name, "-")
			t.Run(filepath.Base(folder)+"/"+name, func(t *testing.T) {
				methodstest.Needs(t, methodsOf[scene]...)
				options := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: scene}}
				require.NoError(t, replayer(t, &Workflows{}).ReplayWorkflowHistoryWithOptions(silent, readHistoryAt(t, path), options))
			})
		}
	}
}

// The test above can fail: a run that would decide otherwise fails it.
func TestReplayTellsChanges(t *testing.T) {
	// Another order of steps: a Score where a Select was recorded.
	h := readHistory(t, "whole.json.gz")
	for _, e := range h.Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityType.Name == "Select" {
			a.ActivityType.Name = "Score"
			break
		}
	}
	require.ErrorContains(t, replayer(t, &Workflows{}).ReplayWorkflowHistory(silent, h), nonDeterministic)
}

// Law 2: a history carries names, digests and small numbers.
func TestHistoriesAreSmall(t *testing.T) {
	entries, err := os.ReadDir(histories)
	require.NoError(t, err)
	for _, e := range entries {
		for _, event := range readHistory(t, e.Name()).Events {
			require.Less(t, event.Size(), 32<<10, "%s: event %d, %s", e.Name(), event.EventId, event.EventType)
			if a := event.GetWorkflowTaskFailedEventAttributes(); a != nil {
				// The server's word for an event that came in while a task ended the
				// workflow: the task is done again.
				require.Equal(t, enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, a.Cause, "%s: event %d", e.Name(), event.EventId)
			}
			if a := event.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
				require.Len(t, a.Input.Payloads, 2)
				require.Less(t, len(a.Input.Payloads[1].Data), 16<<10, "what is carried")
			}
		}
	}
}
