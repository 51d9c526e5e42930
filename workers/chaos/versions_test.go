package chaos

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/workers/runs"
)

// versionedRuns is how many runs TestVersions has.
var versionedRuns = flag.Int("versions", 6, "runs of TestVersions, a multiple of six")

// deployment is that of the workers of TestVersions.
const deployment = "reprise"

// stories are what happens to the runs of TestVersions, and which builds decide on them.
var stories = []struct {
	name   string
	builds []string // in their order
	moved  int      // how often somebody moves it
}{
	{name: "before", builds: []string{runs.Unversioned, "1"}}, // begins on unversioned workers
	{name: "stays", builds: []string{"1"}},                    // ends on build 1, long after others became current
	{name: "moves", builds: []string{"1", "2"}, moved: 1},     // is moved in its third iteration
	{name: "next", builds: []string{"2"}},                     // begins on build 2, and ends on it
	{name: "early", builds: []string{"2"}},                    // begins on build 3, which fails its first task
	{name: "late", builds: []string{"3", "2"}, moved: 1},      // begins on build 3, which fails it in its second iteration
}

// storied are the ids of the runs of a story.
func storied(name string) (ids []string) {
	for n := range max(1, *versionedRuns/len(stories)) {
		ids = append(ids, fmt.Sprintf("%s-%d", name, n+1))
	}
	return ids
}

// build starts a worker of a build, without a device.
func (l *lane) build(id, fault string) *process {
	l.t.Helper()
	p := l.worker(workerOptions{fault: fault, flags: []string{
		"--roles", "workflow,host", "--continue-as-new-after", "3", "--deployment", deployment, "--build", id}})
	p.says(l.t, "worker serves", patience)
	return p
}

// setsCurrent makes a build the current one, as an operator does. The server knows a build a moment after its worker has polled.
func (l *lane) setsCurrent(build string) {
	l.t.Helper()
	eventually(l.t, time.Minute, "build "+build+" is current", func() error {
		_, err := l.cli("worker", "deployment", "set-current-version", "--deployment-name", deployment, "--build-id", build, "--yes")
		return err
	})
}

// toBuild is what `temporal workflow update-options` needs besides which runs it moves.
func toBuild(build string) []string {
	return []string{"--versioning-override-behavior", "pinned", "--versioning-override-deployment-name", deployment,
		"--versioning-override-build-id", build}
}

// areOn waits until `reprise runs` lists each of the runs as one of a build.
func (l *lane) areOn(build string, ids ...string) {
	l.t.Helper()
	eventually(l.t, patience, fmt.Sprintf("%q are on build %s", ids, build), func() error {
		out, err := l.asks("runs", "--json", "--limit", "0")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var list []runs.Run
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return err
		}
		for _, id := range ids {
			if !slices.ContainsFunc(list, func(r runs.Run) bool { return r.ID == id && strings.TrimPrefix(r.Build, deployment+":") == build }) {
				return fmt.Errorf("%s is not: %s", id, out)
			}
		}
		return nil
	})
}

// deciders is what the histories of a run, over its continue-as-new, say of who decided.
type deciders struct {
	builds []string // whose workers completed workflow tasks, without repetitions
	moved  int      // by update-options
	failed []string // the identities of workers that failed one
	runs   int      // executions
}

func (l *lane) deciders(id string) (d deciders) {
	l.t.Helper()
	described, err := l.client.DescribeWorkflowExecution(l.t.Context(), id, "")
	require.NoError(l.t, err)
	for next := described.GetWorkflowExecutionInfo().GetFirstRunId(); next != ""; d.runs++ {
		events := l.client.GetWorkflowHistory(l.t.Context(), id, next, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		next = ""
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(l.t, err)
			if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
				build := runs.Unversioned
				if v := a.GetDeploymentVersion(); v != nil {
					require.Equal(l.t, enumspb.VERSIONING_BEHAVIOR_PINNED, a.GetVersioningBehavior())
					build = v.GetBuildId()
				}
				d.builds = append(d.builds, build)
			}
			if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
				// The SDK's message is of a deferred function, where one waits; the stack is that of the fault.
				require.Contains(l.t, a.GetFailure().GetStackTrace(), "faults.(*outboundInterceptor).ExecuteActivity")
				d.failed = append(d.failed, a.GetIdentity())
			}
			if e.GetWorkflowExecutionOptionsUpdatedEventAttributes() != nil {
				d.moved++
			}
			if a := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
				next = a.GetNewExecutionRunId()
			}
		}
	}
	d.builds = slices.Compact(d.builds)
	return d
}

// failsTask waits until a workflow task of one of the runs has failed, and returns which.
func (l *lane) failsTask(ids ...string) (failed string) {
	l.t.Helper()
	eventually(l.t, patience, fmt.Sprintf("one of %q fails a workflow task", ids), func() error {
		for _, failed = range ids {
			if len(l.deciders(failed).failed) > 0 {
				return nil
			}
		}
		return errors.New("none has")
	})
	return failed
}

// TestVersions rolls out two builds while runs are under way, and a bad third one, rolls that one back, and moves runs with the
// temporal CLI, as an operator does. Each run's history says which builds decided on it, and each run has the bytes of one that
// nothing happened to. With -versions 48 there are as many.
func TestVersions(t *testing.T) {
	beside(t)
	undisturbed := newNamedLane(t, sharedStack(t), "undisturbed-versions", true).withStarter()
	l := newLane(t, sharedStack(t)).withStarter()
	begin := time.Now()
	step := func(what string) { t.Logf("%5.1f s: %s", time.Since(begin).Seconds(), what) }
	start := func(name string) []string {
		ids := storied(name)
		for _, id := range ids {
			l.start(id, single.spec(t))
		}
		return ids
	}

	unversioned := l.worker(workerOptions{flags: []string{"--roles", "workflow,host", "--continue-as-new-after", "3"}})
	start("before")
	l.areOn(runs.Unversioned, storied("before")...)
	unversioned.terminate(t, patience)
	one := l.build("1", "")
	l.setsCurrent("1")
	l.areOn("1", slices.Concat(storied("before"), start("moves"))...)
	step("build 1 is current")

	undisturbed.worker(workerOptions{})
	for _, s := range stories {
		for _, id := range storied(s.name) {
			undisturbed.start(id, single.spec(t))
		}
	}
	first := l.worker(workerOptions{flags: []string{"--roles", "device"}, fault: "moves-1!Update#2/begin/1"})
	first.dies(t) // the run waits for a device, in its third iteration
	require.Equal(t, 1, l.committed("moves-1"))
	l.areOn("1", start("stays")...)
	step("a run of build 1 has lost its device")

	l.build("2", "")
	l.setsCurrent("2")
	l.areOn("2", start("next")...)
	step("build 2 is current")

	var planted []string
	for _, id := range storied("early") {
		planted = append(planted, id+"!Resolve/panic/1")
	}
	for _, id := range storied("late") {
		planted = append(planted, id+"!Credit#1/panic/1")
	}
	three := l.build("3", strings.Join(planted, ","))
	l.setsCurrent("3")
	early, late := start("early"), start("late")
	for _, id := range early {
		l.failsTask(id)
	}
	l.areOn("3", late...)
	step("build 3 is current, and bad")

	for _, id := range storied("moves") {
		_, err := l.cli(append([]string{"workflow", "update-options", "--workflow-id", id}, toBuild("2")...)...)
		require.NoError(t, err)
	}
	l.worker(workerOptions{flags: []string{"--roles", "device"}})
	stands := l.failsTask(late...) // it holds the device, so the others wait in line
	require.Equal(t, 0, l.committed(stands))
	out, err := l.asks("status", stands)
	require.NoError(t, err, out)
	require.Contains(t, out, " · build reprise:3\n")
	step("a run stands still on build 3")

	l.setsCurrent("2")
	l.areOn("2", early...) // by itself: nobody had decided anything
	l.areOn("3", late...)
	step("build 2 is current again, and has the runs that build 3 had not begun")
	_, err = l.cli(append([]string{"workflow", "update-options", "--yes",
		"--query", "TemporalWorkerDeploymentVersion = 'reprise:3' AND ExecutionStatus = 'Running'"}, toBuild("2")...)...)
	require.NoError(t, err)
	l.areOn("2", late...)
	three.terminate(t, patience)
	step("the runs of build 3 are moved, and its worker has ended")
	for _, id := range slices.Concat(storied("before"), storied("stays")) {
		l.completes(id)
	}
	one.terminate(t, patience)
	step("the runs of build 1 are done, and its worker has ended")

	for _, s := range stories {
		for _, id := range storied(s.name) {
			l.completes(id)
			d := l.deciders(id)
			require.Equal(t, s.builds, d.builds, id)
			require.Equal(t, s.moved, d.moved, id)
			require.GreaterOrEqual(t, d.runs, 2, "%s continued as new", id)
			require.Equal(t, slices.Contains(early, id) || id == stands, len(d.failed) > 0, id)
			for _, identity := range d.failed {
				require.True(t, strings.HasPrefix(identity, fmt.Sprintf("%d@", three.pid)), "%s is not the worker of build 3", identity)
			}
			undisturbed.completes(id)
			l.isAs(id, reach(t, undisturbed.store, id))
		}
	}
	step("all are done, with the bytes of runs that nothing happened to")
}
