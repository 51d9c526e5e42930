package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/storetest"
)

// answer is one row of TestBucketAnswers: a run whose first step meets an answer that is not the server's.
type answer struct {
	call   storetest.Call
	status int
	always bool // or once
}

func (a answer) run() string {
	often := map[bool]string{true: "always", false: "once"}[a.always]
	return strings.ToLower(fmt.Sprintf("%s-%d-%s", a.call, a.status, often))
}

// comesTo is what becomes of the run: it passes; is refused, and ends with the kind; or tries again for the kind.
func (a answer) comesTo() (what, kind string) {
	switch {
	case !a.always:
		return "passes", ""
	case a.status == 401 || a.status == 403:
		return "tries again", "Again" + activities.KindStoreDenied
	case a.status == 404:
		return "tries again", "Again" + activities.KindNoBucket
	case a.status == 503, a.status == 412 && a.call == storetest.Put:
		return "tries again", "StoreUnavailable"
	}
	return "ends", activities.KindStoreRefused
}

// TestBucketAnswers starts a run for each answer that a proxy may give in the bucket's place, once and always, to each request that
// resolving a run makes: what history, status and exit code say of it within a minute.
func TestBucketAnswers(t *testing.T) {
	beside(t)
	l := newLane(t, sharedStack(t))
	rows := map[string]answer{}
	for _, call := range []storetest.Call{storetest.Get, storetest.List, storetest.Put} {
		for _, status := range storetest.Statuses {
			for _, always := range []bool{false, true} {
				a := answer{call, status, always}
				rows[a.run()] = a
			}
		}
	}
	var mu sync.Mutex
	given := map[string]bool{} // runs
	proxy := storetest.StartProxy(t, "http://"+l.stack.S3().Endpoint, func(r storetest.Request) *storetest.Answer {
		_, key, _ := strings.Cut(r.Key, "/runs/")
		run, _, _ := strings.Cut(key, "/")
		a, ok := rows[run]
		mu.Lock()
		defer mu.Unlock()
		if !ok || r.Call != a.call || given[run] && !a.always {
			return nil
		}
		given[run] = true
		return &storetest.Answer{Status: a.status, Code: storetest.CodeOf(a.status)}
	})
	l.worker(workerOptions{flags: append(l.through(proxy), "--roles", "workflow,host", "--host-slots", "16"), env: l.keys()})
	spec := json.RawMessage(preset(t, "chaos", nil))
	for run := range rows {
		_, err := l.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: run, TaskQueue: activities.WorkflowQueue}, "Train", spec)
		require.NoError(t, err)
	}
	for run, a := range rows {
		what, kind := a.comesTo()
		eventually(t, time.Minute, run+" "+what, func() error {
			is, err := l.state(run)
			if err != nil {
				return err
			}
			if what == "ends" {
				if is == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
					return errors.New("it runs")
				}
				var app *temporal.ApplicationError
				require.ErrorAs(t, l.failure(run), &app, run)
				require.Equal(t, kind, app.Type(), run)
				return nil
			}
			require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, is, "%s: %v", run, is)
			resolved, attempt := l.resolved(run)
			if what == "passes" {
				if !resolved {
					return errors.New("it is not resolved")
				}
				require.LessOrEqual(t, attempt, int32(2), run)
				return nil
			}
			require.False(t, resolved, run)
			d, err := l.client.DescribeWorkflowExecution(t.Context(), run, "")
			if err != nil {
				return err
			}
			if p := d.PendingActivities; len(p) != 1 || p[0].Attempt < 2 || p[0].LastFailure.GetApplicationFailureInfo().GetType() != kind {
				return fmt.Errorf("pending: %v", p)
			}
			return nil
		})
	}
	asked := map[string]bool{}
	for _, r := range proxy.Given() {
		_, key, _ := strings.Cut(r.Key, "/runs/")
		run, _, _ := strings.Cut(key, "/")
		asked[run] = true
	}
	require.Len(t, asked, len(rows), "each fault has happened")

	// What the program says of one of each kind.
	for _, a := range []answer{{storetest.Get, 403, true}, {storetest.List, 404, true}, {storetest.Put, 412, true}, {storetest.Get, 503, true}} {
		_, kind := a.comesTo()
		out, err := l.asks("status", a.run(), "--json")
		require.NoError(t, err)
		var status struct {
			Phase   string
			Pending struct {
				Activity string
				Attempt  int
				Error    string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(out), &status), out)
		require.Equal(t, "Resolve", status.Pending.Activity)
		require.Greater(t, status.Pending.Attempt, 1)
		require.Contains(t, status.Pending.Error, kind+": resolve the spec of run "+a.run(), a.run())
		out, err = l.asks("status", a.run())
		require.NoError(t, err)
		require.Contains(t, out, "Resolve is tried again (attempt ", a.run())
	}
	out, err := l.asks("watch", "get-301-always")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, out, "request refused: PermanentRedirect")
	require.Contains(t, out, "reprise doctor")
}

// through are the flags of a worker that reaches the stack's bucket through a proxy; see keys.
func (l *lane) through(proxy *storetest.Proxy) []string {
	s3 := l.stack.S3()
	return []string{"--s3-endpoint", proxy.Endpoint, "--s3-region", s3.Region, "--s3-bucket", s3.Bucket, "--s3-path-style"}
}

// keys are the bucket's credentials as variables of the environment.
func (l *lane) keys() []string {
	s3 := l.stack.S3()
	return []string{"AWS_ACCESS_KEY_ID=" + s3.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3.SecretKey}
}

// asks runs a command of the program that reaches Temporal alone.
func (l *lane) asks(arguments ...string) (string, error) {
	cmd := exec.CommandContext(l.t.Context(), program, append(arguments, "--dev-dir", l.stack.Dir(), "--namespace", l.namespace)...)
	cmd.Env = environment
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// resolved says whether a run's first step has ended, and at which attempt.
func (l *lane) resolved(run string) (ended bool, attempt int32) {
	l.t.Helper()
	events := l.client.GetWorkflowHistory(l.t.Context(), run, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			attempt = a.Attempt
		}
		if e.GetActivityTaskCompletedEventAttributes() != nil {
			return true, attempt
		}
	}
	return false, attempt
}

// TestOddIDs starts runs whose ids no header of gRPC may carry: they are served as any other, and the program finds them.
func TestOddIDs(t *testing.T) {
	beside(t)
	l := newLane(t, sharedStack(t))
	l.worker(workerOptions{flags: []string{"--roles", "workflow,host"}})
	for _, id := range []string{"naïve ✓", "tab\tand\x7f"} {
		l.start(id, preset(t, "chaos", nil))
		eventually(t, time.Minute, fmt.Sprintf("%q is resolved", id), func() error {
			out, err := l.asks("status", id, "--json")
			if err == nil && !strings.Contains(out, `"bandit"`) {
				err = errors.New(out)
			}
			return err
		})
		_, err := l.store.Stat(t.Context(), store.SpecKey(id))
		require.NoError(t, err)
	}
}
