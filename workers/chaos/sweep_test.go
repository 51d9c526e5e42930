package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// sweepRun is the sweep that is disturbed: it has the same id everywhere.
const sweepRun = "fig7"

// sweepOf is a sweep of short runs of the preset chaos, so many seeds of each of two
// settings.
func sweepOf(t *testing.T, seeds, parallel int) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"base":  json.RawMessage(preset(t, "chaos", map[string]any{"iterations": 3})),
		"grid":  map[string]any{"selection.keep": []float64{0.5, 1}},
		"seeds": seeds, "parallel": parallel,
	})
	require.NoError(t, err)
	return b
}

// startSweep starts Sweep through the CLI.
func (l *lane) startSweep(id string, doc []byte) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "sweep.json")
	require.NoError(l.t, os.WriteFile(file, doc, 0o600))
	_, err := l.cli("workflow", "start", "--type", "Sweep", "--task-queue", "reprise", "--workflow-id", id, "--input-file", file)
	require.NoError(l.t, err)
}

// sweepStatus asks a sweep.
func (l *lane) sweepStatus(id string) (workflows.SweepStatus, error) {
	var s workflows.SweepStatus
	v, err := l.client.QueryWorkflow(l.t.Context(), id, "", "status")
	if err == nil {
		err = v.Get(&s)
	}
	return s, err
}

// sweepReaches waits until a sweep's status is as wanted.
func (l *lane) sweepReaches(id, what string, ok func(workflows.SweepStatus) bool) workflows.SweepStatus {
	l.t.Helper()
	var s workflows.SweepStatus
	eventually(l.t, patience, id+" reaches "+what, func() error {
		var err error
		if s, err = l.sweepStatus(id); err == nil && !ok(s) {
			err = fmt.Errorf("it is at %q, %s", s.Phase, s.Counts)
		}
		return err
	})
	return s
}

// tables are the tables of a sweep in the store, by key.
func (l *lane) tables(id string) map[string]sweep.Table {
	l.t.Helper()
	out := map[string]sweep.Table{}
	for o, err := range l.store.List(l.t.Context(), store.SweepDir(id)+"/table.") {
		require.NoError(l.t, err)
		b, ref, err := store.ReadFixed(l.t.Context(), l.store, o.Key, 1<<30)
		require.NoError(l.t, err)
		require.Contains(l.t, o.Key, store.ShortDigest(ref.Digest), "a key carries its digest")
		var table sweep.Table
		require.NoError(l.t, json.Unmarshal(b, &table))
		out[o.Key] = table
	}
	return out
}

// undisturbed is the sweep that nobody disturbs: its table's key, which carries the
// digest of its bytes.
var undisturbed struct {
	sync.Mutex
	key string
}

func undisturbedSweep(t *testing.T) string {
	t.Helper()
	undisturbed.Lock()
	defer undisturbed.Unlock()
	if undisturbed.key != "" {
		return undisturbed.key
	}
	l := newNamedLane(t, sharedStack(t), "undisturbed-sweep", true)
	p := l.worker(workerOptions{})
	begin := time.Now()
	l.startSweep(sweepRun, sweepOf(t, 3, 3))
	l.completes(sweepRun)
	t.Logf("the undisturbed sweep took %s", time.Since(begin).Round(time.Second))
	p.kill()
	require.Equal(t, 1, l.warmStarts(), "what the trials share was made once")
	key, table := l.table(sweepRun)
	require.Len(t, table.Rows, 6)
	for _, row := range table.Rows {
		require.Equal(t, sweep.Done, row.State)
		require.Equal(t, 3, row.Iterations)
	}
	require.Equal(t, 3, table.Settings[1].Metrics["reward/mean"].N)
	l.trialsVerify(table)
	undisturbed.key = key
	return key
}

// table is the one table that a sweep wrote.
func (l *lane) table(id string) (key string, table sweep.Table) {
	l.t.Helper()
	tables := l.tables(id)
	require.Len(l.t, tables, 1)
	for key, table = range tables {
	}
	return key, table
}

// trialsVerify has `reprise verify` find nothing wrong with the trials of a table.
func (l *lane) trialsVerify(table sweep.Table) {
	l.t.Helper()
	for _, row := range table.Rows {
		if id := sweep.ID(sweepRun, row.Trial); row.Iterations > 0 {
			require.Equal(l.t, row.Iterations-1, l.committed(id))
			l.verifies(id)
		}
	}
}

// warmStarts counts the starters in the store that were made for a warm start.
func (l *lane) warmStarts() int {
	l.t.Helper()
	n := 0
	for name, err := range l.store.Folders(l.t.Context(), store.ModelPrefix) {
		require.NoError(l.t, err)
		if strings.HasPrefix(name, "starter-") {
			n++
		}
	}
	return n
}

// TestChaosSweep kills the workers of a sweep in the middle of trials, while it reads the
// trials' artifacts and while it writes the table. It kills the server in an update, and
// the sweep continues as new all the while. The table equals the undisturbed sweep's,
// byte for byte. With -full the same holds for 200 trials that lose a worker every ten
// seconds and the server every minute.
func TestChaosSweep(t *testing.T) {
	beside(t)
	want := undisturbedSweep(t)
	stack := ownStack(t, dev.Options{Ephemeral: true})
	l := newLane(t, stack)
	const away = "Update/stall:15000/2,Update/inside/3" // the server is, in the stall
	kills := []string{"WarmStart/inside/1", away, "Summarize/begin/1", "WriteTable/begin/1"}
	if *full {
		kills = []string{"ResolveSweep/written/1", "WarmStart/inside/1", "SweepTrials/begin/1", away, "Commit/written/4",
			"LookUp/begin/1", "Summarize/begin/1", "Summarize/written/1", "WriteTable/begin/1", "WriteTable/written/1"}
	}
	stop := l.keepWith(workerOptions{flags: []string{"--continue-as-new-after", "2"}}, kills...)
	l.startSweep(sweepRun, sweepOf(t, 3, 3))
	eventually(t, patience, "the stall", func() error {
		log, err := os.ReadFile(l.logOf(slices.Index(kills, away) + 1))
		if err == nil && !bytes.Contains(log, []byte(" stalls\n")) {
			err = errors.New("it does not")
		}
		return err
	})
	require.NoError(t, stack.KillTemporal())
	require.NoError(t, stack.RestartTemporal(t.Context()))
	l.completes(sweepRun)
	stop()
	key, table := l.table(sweepRun)
	require.Equal(t, want, key)
	require.Equal(t, 1, l.warmStarts())
	l.trialsVerify(table)
	eventually(t, patience, "several executions", func() error {
		out, err := l.client.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: l.namespace, Query: "WorkflowId = '" + sweepRun + "'",
		})
		if err == nil && out.Count < 3 {
			err = fmt.Errorf("there are %d", out.Count)
		}
		return err
	})
	if *full {
		loseServers(t, 200)
	}
}

// TestChaosSweepCancel terminates one of a sweep's trials, and then cancels the
// sweep: the terminated one left the rest alone; the open ones end at their last
// committed iterations, and the table is written. Started again, the sweep resumes and
// ends with the undisturbed sweep's table.
func TestChaosSweepCancel(t *testing.T) {
	beside(t)
	want := undisturbedSweep(t)
	l := newLane(t, sharedStack(t))
	// The stall keeps trials open even on a busy machine; nothing is killed, so
	// silence may be long.
	l.worker(workerOptions{fault: "Update/stall:15000/5", heartbeat: "20s"})
	l.startSweep(sweepRun, sweepOf(t, 3, 3))
	l.sweepReaches(sweepRun, "three open trials behind the first", func(s workflows.SweepStatus) bool {
		return s.Counts.Done >= 1 && s.Counts.Running+s.Counts.Waiting == 3
	})
	open := l.openTrials(sweepRun)
	_, err := l.cli("workflow", "terminate", "--workflow-id", open[2])
	require.NoError(t, err)
	l.sweepReaches(sweepRun, "another trial in the place of the terminated one", func(s workflows.SweepStatus) bool {
		return s.Counts.Terminated == 1 && s.Counts.Running+s.Counts.Waiting == 3
	})
	open = l.openTrials(sweepRun)

	begin := time.Now()
	l.cancel(sweepRun)
	l.ends(sweepRun, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
	t.Logf("the sweep and its trials ended %s after the cancellation", time.Since(begin).Round(100*time.Millisecond))
	for _, id := range open {
		is, err := l.state(id)
		require.NoError(t, err)
		require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, is, id)
	}
	_, table := l.table(sweepRun)
	states := map[sweep.State]int{}
	for _, row := range table.Rows {
		states[row.State]++
	}
	require.Equal(t, 1, states[sweep.Terminated], states)
	require.Equal(t, 5, states[sweep.Done]+states[sweep.Cancelled], states)
	require.GreaterOrEqual(t, states[sweep.Cancelled], len(open), states)
	l.trialsVerify(table)

	l.startSweep(sweepRun, sweepOf(t, 3, 3))
	l.completes(sweepRun)
	require.Contains(t, l.tables(sweepRun), want)
}

// openTrials are the workflow ids of a sweep's open trials.
func (l *lane) openTrials(id string) []string {
	l.t.Helper()
	v, err := l.client.QueryWorkflow(l.t.Context(), id, "", "table", workflows.PageOf{Limit: 500})
	require.NoError(l.t, err)
	var page workflows.TablePage
	require.NoError(l.t, v.Get(&page))
	var open []string
	for _, row := range page.Rows {
		if row.State == sweep.Running || row.State == sweep.Waiting {
			open = append(open, row.Run)
		}
	}
	return open
}

// loseServers compares the table of so many trials with the table of the same trials that
// lose a worker every ten seconds, and the Temporal server every minute. It checks that
// the histories of the sweep's executions stay small.
func loseServers(t *testing.T, trials int) {
	t.Helper()
	play := func(name string, stack *dev.Stack, life, serverLife time.Duration) (table string, workers, servers int) {
		l := newNamedLane(t, stack, name, true).withStarter()
		quit := make(chan struct{})
		var losses sync.WaitGroup
		t.Cleanup(losses.Wait)
		over := func(after time.Duration) bool {
			select {
			case <-time.After(after):
				return false
			case <-quit:
			case <-t.Context().Done(): // the test has failed, and ends what it started
			}
			return true
		}
		losses.Go(func() {
			for {
				p := l.worker(workerOptions{})
				ended := over(life)
				p.kill()
				if ended {
					return
				}
			}
		})
		losses.Go(func() {
			for !over(serverLife) {
				servers++
				assert.NoError(t, errors.Join(stack.KillTemporal(), stack.RestartTemporal(t.Context())))
			}
		})
		begin := time.Now()
		l.startSweep(sweepRun, sweepOf(t, trials/2, 2))
		l.completes(sweepRun)
		took := time.Since(begin)
		close(quit)
		losses.Wait()
		lengths := l.histories(sweepRun)
		t.Logf("%s: %d trials took %s, %d workers and %d servers lost; the sweep's executions had %d events", name, trials,
			took.Round(time.Second), l.workers-1, servers, lengths)
		require.Less(t, slices.Max(lengths), int64(6000), "events: the server suggests to continue as new at 4096")
		key, rows := l.table(sweepRun)
		require.Len(t, rows.Rows, trials)
		return key, l.workers, servers
	}
	want, _, _ := play("many-undisturbed", sharedStack(t), time.Hour, time.Hour)
	key, workers, servers := play("many", ownStack(t, dev.Options{Ephemeral: true}), 10*time.Second, time.Minute)
	require.Equal(t, want, key, "the table is the same, byte for byte")
	require.Greater(t, workers, 4, "it lost workers")
	require.Positive(t, servers, "it lost its server")
}

// histories are the lengths, in events, of the histories of a workflow's executions.
func (l *lane) histories(id string) []int64 {
	l.t.Helper()
	var lengths []int64
	eventually(l.t, patience, "the executions of "+id, func() error {
		out, err := l.client.ListWorkflow(l.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: l.namespace, Query: "WorkflowId = '" + id + "'",
		})
		if err != nil {
			return err
		}
		lengths = nil
		for _, e := range out.Executions {
			if e.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return errors.New("one is shown as running still")
			}
			lengths = append(lengths, e.HistoryLength)
		}
		if len(lengths) == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	return lengths
}
