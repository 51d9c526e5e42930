package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
	"github.com/reprise-rl/reprise/workflows"
)

// patience bounds every wait for a run's end; with -full, whose runs lose many
// workers beside each other, it is longer.
var patience = 10 * time.Minute

// lane is a namespace and a prefix on a stack: a world of one test.
type lane struct {
	t         *testing.T
	stack     *dev.Stack
	namespace string
	prefix    string
	logs      string
	client    client.Client
	store     store.Store
	workers   int
	processes []*process
	flags     []string // of every worker
	devices   []int    // how many virtual devices the workers have, in turns; nil leaves it to the program
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

var _ log.Logger = quiet{}

// newLane makes a lane named after the test. When the test fails, it shows the
// logs of the workers and what the server says of the workflows.
func newLane(t *testing.T, stack *dev.Stack) *lane {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ":", "-").Replace(t.Name()))
	return newNamedLane(t, stack, name, true)
}

// newNamedLane makes a lane, with our search attributes registered or without.
func newNamedLane(t *testing.T, stack *dev.Stack, name string, attributes bool) *lane {
	t.Helper()
	name = unused(stack, name)
	l := &lane{t: t, stack: stack, namespace: name, prefix: name, logs: t.TempDir()}
	l.register(attributes)
	l.dial()
	l.store = l.open(l.prefix)
	t.Cleanup(l.explain)
	return l
}

// names counts the lanes of a name on a stack, for go test -count.
var names struct {
	sync.Mutex
	used map[string]int
}

func unused(stack *dev.Stack, name string) string {
	names.Lock()
	defer names.Unlock()
	if names.used == nil {
		names.used = map[string]int{}
	}
	key := fmt.Sprintf("%p %s", stack, name)
	names.used[key]++
	if n := names.used[key]; n > 1 {
		return fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

func (l *lane) dial() {
	l.t.Helper()
	c, err := client.Dial(client.Options{HostPort: l.stack.TemporalAddress(), Namespace: l.namespace, Logger: quiet{}})
	require.NoError(l.t, err)
	l.t.Cleanup(c.Close)
	l.client = c
}

// open opens the stack's bucket under a prefix.
func (l *lane) open(prefix string) store.Store {
	l.t.Helper()
	endpoint := l.stack.S3()
	s, err := s3.Open(s3.Config{
		Endpoint: endpoint.Endpoint, Region: endpoint.Region, Bucket: endpoint.Bucket, Prefix: prefix, Lookup: "path",
		Keys: s3.StaticKeys(endpoint.AccessKey, endpoint.SecretKey),
	})
	require.NoError(l.t, err)
	return s
}

// register makes the lane's namespace, with our search attributes or without.
func (l *lane) register(attributes bool) {
	l.t.Helper()
	c, err := client.NewNamespaceClient(client.Options{HostPort: l.stack.TemporalAddress(), Logger: quiet{}})
	require.NoError(l.t, err)
	defer c.Close()
	err = c.Register(l.t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: l.namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	var there *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &there) {
		require.NoError(l.t, err)
	}
	own, err := client.NewLazyClient(client.Options{HostPort: l.stack.TemporalAddress(), Namespace: l.namespace, Logger: quiet{}})
	require.NoError(l.t, err)
	defer own.Close()
	// The server's caches learn of a new namespace a moment later.
	registered := false
	eventually(l.t, patience, "the namespace "+l.namespace, func() error {
		ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
		defer cancel()
		if attributes && !registered {
			if err := dev.RegisterSearchAttributes(ctx, own.OperatorService(), l.namespace, dev.SearchAttributes); err != nil {
				return err
			}
			registered = true
		}
		missing, err := dev.MissingSearchAttributes(ctx, own.OperatorService(), l.namespace)
		if err == nil && attributes && len(missing) > 0 {
			err = fmt.Errorf("search attributes are still missing: %v", missing)
		}
		if err != nil {
			return err
		}
		_, err = own.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: l.namespace})
		return err
	})
}

// cli runs the temporal CLI on the lane's namespace.
func (l *lane) cli(arguments ...string) (string, error) {
	l.t.Helper()
	temporal, err := dev.TemporalCLI()
	require.NoError(l.t, err)
	// The context of a finished test has ended; then its log is printed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), time.Minute)
	defer cancel()
	arguments = append(arguments, "--address", l.stack.TemporalAddress(), "--namespace", l.namespace)
	out, err := exec.CommandContext(ctx, temporal, arguments...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("temporal %s: %w\n%s", strings.Join(arguments[:2], " "), err, out)
	}
	return string(out), err
}

// start starts Train through the CLI with a spec.
func (l *lane) start(run string, spec []byte) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "spec.json")
	require.NoError(l.t, os.WriteFile(file, spec, 0o600))
	_, err := l.cli("workflow", "start", "--type", "Train", "--task-queue", "reprise", "--workflow-id", run, "--input-file", file)
	require.NoError(l.t, err)
}

// preset is a preset with fields of its top level replaced; a field "update.x"
// replaces one level deeper.
func preset(t *testing.T, name string, change map[string]any) []byte {
	t.Helper()
	text, err := presets.Read(name)
	require.NoError(t, err)
	var spec map[string]any
	require.NoError(t, json.Unmarshal(text, &spec))
	for key, value := range change {
		if outer, inner, deep := strings.Cut(key, "."); deep {
			nested := map[string]any{}
			if have, ok := spec[outer].(map[string]any); ok {
				nested = maps.Clone(have)
			}
			nested[inner] = value
			spec[outer] = nested
			continue
		}
		spec[key] = value
	}
	out, err := json.Marshal(spec)
	require.NoError(t, err)
	return out
}

// state is a workflow's state on the server.
func (l *lane) state(id string) (enumspb.WorkflowExecutionStatus, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	d, err := l.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return 0, err
	}
	return d.WorkflowExecutionInfo.Status, nil
}

// ends waits until a workflow has ended so.
func (l *lane) ends(id string, as enumspb.WorkflowExecutionStatus) {
	l.t.Helper()
	eventually(l.t, patience, id+" ends "+as.String(), func() error {
		is, err := l.state(id)
		switch {
		case err != nil:
			return err
		case is == as:
			return nil
		case is != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && is != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
			require.Fail(l.t, id+" has ended "+is.String(), "want %s: %v", as, l.failure(id))
		}
		return fmt.Errorf("it is %s", is)
	})
}

// completes waits until a workflow has completed.
func (l *lane) completes(id string) {
	l.t.Helper()
	l.ends(id, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}

// failure is why a workflow has ended.
func (l *lane) failure(id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), 10*time.Second)
	defer cancel()
	return l.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
}

// status asks a run.
func (l *lane) status(run string) (workflows.Status, error) {
	var s workflows.Status
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	v, err := l.client.QueryWorkflow(ctx, run, "", "status")
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// reaches waits until a run's status fits.
func (l *lane) reaches(run, what string, fits func(workflows.Status) bool) workflows.Status {
	l.t.Helper()
	var s workflows.Status
	eventually(l.t, patience, run+" reaches "+what, func() error {
		var err error
		if s, err = l.status(run); err != nil {
			return err
		}
		if !fits(s) {
			b, _ := json.Marshal(s)
			return fmt.Errorf("its status is %s", b)
		}
		return nil
	})
	return s
}

// reprise runs the program's toolbox on the lane.
func (l *lane) reprise(arguments ...string) (string, error) {
	arguments = append(arguments, "--dev-dir", l.stack.Dir(), "--s3-prefix", l.prefix)
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Env = environment
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// verifies has `reprise verify` find nothing wrong.
func (l *lane) verifies(run string) {
	l.t.Helper()
	out, err := l.reprise("verify", run)
	require.NoError(l.t, err, out)
	require.Contains(l.t, out, "is sound")
}

// isAs has `reprise verify` find a run sound, and requires the bytes of the undisturbed one.
func (l *lane) isAs(run string, want Bytes) {
	l.t.Helper()
	l.verifies(run)
	same(l.t, want, reach(l.t, l.store, run))
}

// explain shows what is known when the test has failed.
func (l *lane) explain() {
	if !l.t.Failed() {
		return
	}
	for _, p := range l.processes {
		l.t.Logf("== %s (%s)\n%s", p.name, p.log, p.tail())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := l.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: l.namespace})
	if err != nil {
		l.t.Logf("== list of the workflows: %v", err)
		return
	}
	for _, w := range list.Executions {
		out, _ := l.cli("workflow", "describe", "--workflow-id", w.Execution.WorkflowId, "--run-id", w.Execution.RunId)
		l.t.Logf("== %s\n%s\n%s", w.Execution.WorkflowId, out, l.timeline(ctx, w.Execution.WorkflowId, w.Execution.RunId))
	}
}
