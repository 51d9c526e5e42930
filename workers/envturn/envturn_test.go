package envturn

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/envturn/envserver"
)

// The first argument makes this program a stand-in environment, or a worker of EnvTurn.
const (
	serveArgument  = "serve-environment"
	workerArgument = "serve-envturn"
)

var (
	stack     *dev.Stack
	connected client.Client
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveArgument {
		if err := envserver.Run(os.Stdin, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 5 && os.Args[1] == workerArgument {
		if err := serveTurns(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

// serveTurns is a worker of EnvTurn until standard input ends.
func serveTurns(address, namespace, queue string) error {
	c, err := client.Dial(client.Options{HostPort: address, Namespace: namespace})
	if err != nil {
		return err
	}
	defer c.Close()
	stop, err := Transport{Client: c, Queue: queue}.Serve()
	if err != nil {
		return err
	}
	defer stop()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// run runs the tests with one stack and one worker for EnvTurn.
func run(m *testing.M) int {
	var err error
	if stack, err = dev.Start(context.Background(), dev.Options{Ephemeral: true}); err != nil {
		if devtest.Missing(err) {
			fmt.Fprintln(os.Stderr, devtest.Skipped, "(all tests of this package)")
			return 0
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stack.Stop()
	connected, err = client.Dial(client.Options{HostPort: stack.TemporalAddress(), Namespace: stack.Namespace(), Logger: quiet{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer connected.Close()
	stop, err := Transport{Client: connected}.Serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return m.Run()
}

// quiet drops the SDK's log.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

var _ log.Logger = quiet{}

// serve starts a process that serves an environment of the test's own name, and returns the
// name, the process and its marker file.
func serve(t testing.TB, fault string) (name string, server *exec.Cmd, marker string) {
	t.Helper()
	name, marker = strings.ReplaceAll(t.Name(), "/", "."), filepath.Join(t.TempDir(), "marker")
	server = start(t, name, fault, marker)
	return name, server, marker
}

func start(t testing.TB, name, fault, marker string) *exec.Cmd {
	t.Helper()
	return launch(t, os.Args[0], serveArgument, stack.TemporalAddress(), stack.Namespace(), name, fault, marker)
}

// launch starts a process that ends with the test. Standard input stays open until then.
func launch(t testing.TB, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(program, arguments...)
	_, err := command.StdinPipe()
	require.NoError(t, err)
	command.Stderr = io.Discard
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	return command
}

// connect describes an environment. Calls have ids of their own, as those of a check.
func connect(t testing.TB, name string, timeout time.Duration) (*foreign.Server, error) {
	t.Helper()
	return foreign.Connect(t.Context(), name, nil, Transport{Client: connected, Timeout: timeout}.Fresh(name))
}

// first asks for the beginning of the episode of which the number is 3.
func first() []foreign.Asked { return []foreign.Asked{{Instance: 2}} }

// playOne plays that episode's first turn.
func playOne(t *testing.T, s *foreign.Server) ([]foreign.Answer, error) {
	t.Helper()
	begun, err := s.Play(t.Context(), first())
	if err != nil {
		return nil, err
	}
	return s.Play(t.Context(), []foreign.Asked{{Instance: 2, Chain: begun[0].Chain, Next: []string{"4"}}})
}

func TestPlay(t *testing.T) {
	for _, fault := range []string{standin.None, standin.Busy} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			name, _, _ := serve(t, fault)
			s, err := connect(t, name, 20*time.Second)
			require.NoError(t, err)
			require.Equal(t, 5, s.Description.MaxActions)
			answers, err := playOne(t, s)
			require.NoError(t, err)
			require.Equal(t, "Lower.", answers[0].Observation)
			require.Equal(t, -0.1, answers[0].Steps[0].Reward)
		})
	}
}

// A server that does wrong is refused with the kind of its wrong, and another episode's error
// is its own.
func TestFaultsAreRefusedByKind(t *testing.T) {
	for fault, kind := range map[string]error{
		standin.Hang: foreign.ErrTimeout, standin.Flood: foreign.ErrFlood, standin.Noise: foreign.ErrAnswer, standin.Raise: foreign.ErrBroken,
		standin.Episode: foreign.ErrOther, standin.Lie: foreign.ErrChain, standin.Upgrade: foreign.ErrVersion,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			name, _, _ := serve(t, fault)
			timeout := 20 * time.Second
			if fault == standin.Hang {
				timeout = 4 * time.Second
			}
			s, err := connect(t, name, timeout)
			require.NoError(t, err)
			_, err = playOne(t, s)
			require.ErrorIs(t, err, kind)
		})
	}
}

// Without a worker, the error names its queue.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	_, err := connect(t, "nobody", time.Second)
	require.ErrorIs(t, err, foreign.ErrExited)
	require.ErrorContains(t, err, "no worker of queue reprise-env.nobody took EnvDescribe within 1s")
}

// An environment's worker that is killed in the middle of a call is replaced by another: same
// answers. So they are if the worker of EnvTurn or the Temporal server is killed meanwhile.
func TestKills(t *testing.T) {
	name, _, _ := serve(t, standin.None)
	s, err := connect(t, name, 20*time.Second)
	require.NoError(t, err)
	want, err := s.Play(t.Context(), first())
	require.NoError(t, err)
	for _, killed := range []string{"server", "environment", "worker"} {
		t.Run(killed, func(t *testing.T) {
			if killed != "server" { // it serves the other tests
				t.Parallel()
			}
			name, server, marker := serve(t, standin.Stuck)
			transport := Transport{Client: connected, Timeout: 6 * time.Second}
			var worker *exec.Cmd
			if killed == "worker" {
				transport.Queue = "killed"
				worker = launch(t, os.Args[0], workerArgument, stack.TemporalAddress(), stack.Namespace(), transport.Queue)
			}
			s, err := foreign.Connect(t.Context(), name, nil, transport.Fresh(name))
			require.NoError(t, err)
			type result struct {
				answers []foreign.Answer
				err     error
			}
			answered := make(chan result, 1)
			go func() {
				answers, err := s.Play(t.Context(), first())
				answered <- result{answers, err}
			}()
			require.Eventually(t, func() bool {
				pid, err := os.ReadFile(marker)
				return err == nil && string(pid) == strconv.Itoa(server.Process.Pid)
			}, 20*time.Second, time.Millisecond, "the call has begun")
			switch killed {
			case "worker":
				require.NoError(t, worker.Process.Kill())
				launch(t, os.Args[0], workerArgument, stack.TemporalAddress(), stack.Namespace(), transport.Queue)
			case "server":
				require.NoError(t, stack.KillTemporal())
				require.NoError(t, stack.RestartTemporal(t.Context()))
			}
			require.NoError(t, server.Process.Kill())
			start(t, name, standin.Stuck, marker) // its marker is there: it answers
			got := <-answered
			require.NoError(t, got.err)
			require.Equal(t, want, got.answers)
		})
	}
}

// A caller that was killed finds its own call again: the same workflow, running or completed.
func TestCallsAreFoundAgain(t *testing.T) {
	t.Parallel()
	name, _, _ := serve(t, standin.Order) // its answers depend on the requests before
	turn := "run/b0/3/1/" + name
	call := Transport{Client: connected}.Call(name, turn)
	input := []byte(`{"options":{},"episodes":[{"instance":"2","chance":"0","played":["1"],"chain":"","next":[]}]}`)
	want, err := call(t.Context(), foreign.CallPlay, input)
	require.NoError(t, err)
	abandoned, abandon := context.WithCancel(t.Context())
	abandon()
	_, err = call(abandoned, foreign.CallPlay, input)
	require.ErrorIs(t, err, foreign.ErrTimeout)
	for range 3 {
		got, err := call(t.Context(), foreign.CallPlay, input)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	require.Equal(t, map[string]int{"EnvTurn": 1, foreign.CallPlay: 1}, histories(t, turn))
}

// The way of a turn asks anew what was answered, for episodes that were busy; a caller that was
// killed finds both answers again.
func TestWay(t *testing.T) {
	t.Parallel()
	name, _, _ := serve(t, standin.Order) // its answers depend on the requests before
	turn := "run/b0/4/1/" + name
	input := []byte(`{"options":{},"episodes":[{"instance":"2","chance":"0","played":["1"],"chain":"","next":[]}]}`)
	var answers [2][]string
	for i := range answers {
		call := Transport{Client: connected}.Way(name, turn)
		for range 2 {
			out, err := call(t.Context(), foreign.CallPlay, input)
			require.NoError(t, err)
			answers[i] = append(answers[i], string(out))
		}
	}
	require.Equal(t, answers[0], answers[1])
	require.Equal(t, map[string]int{"EnvTurn": 2, foreign.CallPlay: 2}, histories(t, turn))
}

// With a codec, the environment's worker still gets plain payloads: it has no key.
func TestEnvironmentNeedsNoKey(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "codec.keys")
	require.NoError(t, os.WriteFile(keys, []byte("k1 "+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	sealing, err := codec.Load(keys)
	require.NoError(t, err)
	sealed, err := client.Dial(client.Options{
		HostPort: stack.TemporalAddress(), Namespace: stack.Namespace(), Logger: quiet{},
		DataConverter: sealing.DataConverter(), FailureConverter: sealing.FailureConverter(),
	})
	require.NoError(t, err)
	defer sealed.Close()
	transport := Transport{Client: sealed, Queue: "sealed", Timeout: 20 * time.Second}
	stop, err := transport.Serve()
	require.NoError(t, err)
	defer stop()

	name, _, _ := serve(t, standin.Raise)
	s, err := foreign.Connect(t.Context(), name, nil, transport.Call(name, "sealed/b0/1/1"))
	require.NoError(t, err)
	_, err = s.Play(t.Context(), first())
	require.ErrorIs(t, err, foreign.ErrBroken)
	require.ErrorContains(t, err, "no such file")

	describe := id("sealed/b0/1/1", name, foreign.CallDescribe, []byte(`{"options":{}}`))
	var encodings []string
	events := connected.GetWorkflowHistory(t.Context(), describe, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		var payloads *common.Payloads
		switch e.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			payloads = e.GetWorkflowExecutionStartedEventAttributes().GetInput()
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			payloads = e.GetActivityTaskScheduledEventAttributes().GetInput()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			payloads = e.GetWorkflowExecutionCompletedEventAttributes().GetResult()
		}
		for _, p := range payloads.GetPayloads() {
			encodings = append(encodings, string(p.GetMetadata()["encoding"]))
		}
	}
	require.Len(t, encodings, 3)
	require.Equal(t, "json/plain", encodings[1], "the activity's input")
	require.NotContains(t, []string{encodings[0], encodings[2]}, "json/plain")
	require.NotContains(t, []string{encodings[0], encodings[2]}, "binary/plain")
}

// What a turn of 128 episodes costs is counted: two workflows with an activity each, and
// nothing else.
func TestCountsOfATurn(t *testing.T) {
	t.Parallel()
	name, _, _ := serve(t, standin.None)
	turn := "run/b0/3/2/" + name
	s, err := foreign.Connect(t.Context(), name, nil, Transport{Client: connected}.Call(name, turn))
	require.NoError(t, err)
	playAll(t, s, episodes())
	counts := histories(t, turn)
	require.Equal(t, map[string]int{"EnvTurn": 3, foreign.CallDescribe: 1, foreign.CallPlay: 2}, counts)
}

// histories counts the workflows whose ids begin with the turn, and their activities and
// timers, by name.
func histories(t *testing.T, turn string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	query := fmt.Sprintf(`WorkflowId STARTS_WITH "%s/"`, turn)
	var found []*workflow.WorkflowExecutionInfo
	require.Eventually(t, func() bool { // what is listed lags behind what has happened
		list, err := connected.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query + ` AND ExecutionStatus = "Completed"`})
		require.NoError(t, err)
		count, err := connected.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		require.NoError(t, err)
		found = list.GetExecutions()
		return len(found) > 0 && int(count.GetCount()) == len(found)
	}, 10*time.Second, 200*time.Millisecond)
	for _, one := range found {
		counts[one.GetType().GetName()]++
		events := connected.GetWorkflowHistory(t.Context(), one.GetExecution().GetWorkflowId(), one.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			switch e.GetEventType() {
			case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
				counts[e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()]++
			case enums.EVENT_TYPE_TIMER_STARTED:
				counts["timer"]++
			}
		}
	}
	return counts
}

// episodes are the beginnings of a turn's 128 episodes.
func episodes() []foreign.Asked {
	asked := make([]foreign.Asked, 128)
	for i := range asked {
		asked[i].Instance = foreign.Number(draw.Address{Purpose: draw.Instance, Group: int64(i)})
	}
	return asked
}

// playAll asks about all episodes, in calls of the greatest size at the same time.
func playAll(t testing.TB, s *foreign.Server, asked []foreign.Asked) []foreign.Answer {
	chunks := slices.Collect(slices.Chunk(asked, foreign.MaxEpisodes))
	answers := make([][]foreign.Answer, len(chunks))
	errs := make([]error, len(chunks))
	var calls sync.WaitGroup
	for i, chunk := range chunks {
		calls.Go(func() { answers[i], errs[i] = s.Play(context.Background(), chunk) })
	}
	calls.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return slices.Concat(answers...)
}

// problems are the parts of a check that fail.
func problems(t *testing.T, s *foreign.Server) []string {
	t.Helper()
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	findings, err := foreign.Check(t.Context(), s, s, foreign.CheckOptions{Instances: 2, Tokenizer: tok})
	require.NoError(t, err)
	var parts []string
	for _, f := range findings {
		if f.Problem != "" {
			parts = append(parts, f.Part+": "+f.Problem)
		}
	}
	return parts
}

// A check finds what is planted: no call gets the answer to an earlier one.
func TestCheck(t *testing.T) {
	t.Parallel()
	name, _, _ := serve(t, standin.Order)
	s, err := connect(t, name, 20*time.Second)
	require.NoError(t, err)
	found := problems(t, s)
	require.Len(t, found, 1)
	require.Contains(t, found[0], foreign.ErrDrift.Error())
}

// python starts the example of docs/own-environments.md, or skips where Python lacks Temporal's SDK.
func python(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(program, "-c", "import temporalio").Run()
	}
	if err != nil {
		t.Skip("SKIPPED: there is no python3 with temporalio (pip install temporalio); the Go stand-in's tests have run")
	}
	// t.Setenv is not for tests that run beside others.
	return launch(t, "env", "PYTHONPATH=../../envs/foreign/python/src", "PYTHONDONTWRITEBYTECODE=1", program, "../../docs/own/guess.py",
		"--temporal", name, "--address", stack.TemporalAddress(), "--namespace", stack.Namespace())
}

// The example plays as the Go stand-in does, passes the check, and survives a kill.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	name := t.Name()
	server := python(t, name)
	s, err := connect(t, name, 20*time.Second)
	require.NoError(t, err)
	python(t, name)
	require.Empty(t, problems(t, s))
	want, err := playOne(t, s)
	require.NoError(t, err)
	require.NoError(t, server.Process.Kill())
	got, err := playOne(t, s)
	require.NoError(t, err)
	require.Equal(t, want, got)
	broken, err := s.Play(t.Context(), []foreign.Asked{{Instance: 2, Chain: "x", Played: []string{"not a number"}}})
	require.NoError(t, err)
	require.ErrorIs(t, broken[0].Err, foreign.ErrBroken)
}
