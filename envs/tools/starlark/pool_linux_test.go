package starlark

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Arguments with which the test's program is a child, or a parent of one.
const (
	asChild  = "starlark-child"
	asParent = "starlark-parent"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asChild:
			if err := Serve(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case asParent:
			beParent()
		}
	}
	goleak.VerifyTestMain(m)
}

// beParent starts a child that works for long, says which process it is, and waits to be killed.
func beParent() {
	c, err := begin(context.Background(), []string{"/proc/self/exe", asChild}, endlessLimits())
	if err != nil {
		panic(err)
	}
	fmt.Println(c.command.Process.Pid)
	_, _, err = c.run(context.Background(), endless, nil)
	panic(err)
}

// endless is a program that runs for longer than any test, with endlessLimits.
const endless = "for i in range(1000000000000): pass"

func endlessLimits() Limits {
	limits := testLimits()
	limits.Steps, limits.Deadline = 1<<60, time.Minute
	return limits
}

// slow is a program of few steps that takes long in one built-in function.
const slow = "print(max(range(10000000000)))"

// limits of tests: little time, so that they are fast.
func testLimits() Limits {
	return Limits{Steps: 1_000_000, Output: 1000, Deadline: 10 * time.Second, Memory: 32 << 20}
}

func newPool(t testing.TB, limits Limits, children int) *Pool {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	pool, err := NewPool([]string{program, asChild}, limits, children)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// pids are the idle children's processes.
func (p *Pool) pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pids []int
	for _, c := range p.idle {
		pids = append(pids, c.command.Process.Pid)
	}
	return pids
}

// exists reports whether there is such a process, a zombie too.
func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAChildAnswersAsTheInterpreter(t *testing.T) {
	pool := newPool(t, testLimits(), 1)
	in := Interpreter{Steps: testLimits().Steps, Output: testLimits().Output}
	var pid int
	for _, program := range []string{
		"print(1)", "print(1 // 0)", "print(", "", "print('é|\\u2028<>&\\x00')", "for i in range(10000000): pass", "print('a' * 5000)",
		strings.Repeat("#", MaxProgram), strings.Repeat("#", MaxProgram+1), "\xff", "print('\\x01' * 1000)", "fail('\\n')",
		"x = 1", "print(x)", `print(b"\xff\x01" * 200)`,
	} {
		answer, err := pool.Run(t.Context(), program)
		require.NoError(t, err)
		require.Equal(t, in.Run(program), answer, program)
		if pids := pool.pids(); pid == 0 {
			pid = pids[0]
		} else {
			require.Equal(t, []int{pid}, pids, "one child answers all")
		}
	}
	pool.Close()
	require.False(t, exists(pid), "the child is gone, and is no zombie")
	_, err := pool.Run(t.Context(), "print(1)")
	require.ErrorIs(t, err, ErrClosed)
}

// A program that takes too much is the policy's failure, and the next one has a child as good as new.
func TestKills(t *testing.T) {
	for name, c := range map[string]struct {
		program  string
		deadline time.Duration
		want     string
	}{
		"one large text":    {"x = 'a' * 1000000000\nprint(len(x))", 0, "it took more than 32 MiB of memory"},
		"a growing list":    {"x = []\nfor i in range(100000):\n    x.append('a' * 10000)", 0, "it took more than 32 MiB of memory"},
		"a huge list":       {"print(len(list(range(100000000))))", 0, "it took more than 32 MiB of memory"},
		"huge texts joined": {"x = 'a' * 10000000\nprint(len([x + x for i in range(100)]))", 0, "it took more than 32 MiB of memory"},
		"doubling":          {"x = 'a'\nfor i in range(60):\n    x += x", 0, "it took more than 32 MiB of memory"},
		"deep JSON":         {"json.decode('[' * 10000000)", 0, "it nests too deeply"},
		"time in a builtin": {slow, 150 * time.Millisecond, "it took more than 150ms"},
		"large numbers":     {"x = 3\nfor i in range(24):\n    x = x * x\nprint(str(x)[:3])\n", 100 * time.Millisecond, "it took more than 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := testLimits()
			if c.deadline > 0 {
				limits.Deadline = c.deadline
			}
			pool := newPool(t, limits, 1)
			answer, err := pool.Run(t.Context(), c.program)
			require.NoError(t, err)
			require.Equal(t, Answer{Text: "Error: the program was stopped, since " + c.want + ".", Failed: true, Killed: true}, answer)
			require.Empty(t, pool.pids())
			answer, err = pool.Run(t.Context(), "print(1)")
			require.NoError(t, err)
			require.Equal(t, Answer{Text: "1"}, answer)
		})
	}
}

// What steps, output and depth bound kills nobody.
func TestBoundedProgramsKillNobody(t *testing.T) {
	pool := newPool(t, testLimits(), 1)
	var before []int
	for _, program := range []string{
		"for i in range(1000000000): pass",
		"for i in range(1000000): print('x' * 1000)",
		"x = [1]\nx.append(x)\nprint(x < x)",
		"def f(): return g()\ndef g(): return f()\nf()",
		strings.Repeat("(", 10_000),
	} {
		answer, err := pool.Run(t.Context(), program)
		require.NoError(t, err)
		require.True(t, answer.Failed, program)
		require.False(t, answer.Killed, answer.Text)
		if before == nil {
			before = pool.pids()
		}
		require.Equal(t, before, pool.pids(), program)
	}
}

// A program that leaves much memory has a good answer; the next has another child.
func TestAWornChildIsReplaced(t *testing.T) {
	limits := testLimits()
	pool := newPool(t, limits, 1)
	const much = "x = 'a' * 22000000\nprint(len(x))"
	for range 3 {
		answer, err := pool.Run(t.Context(), much)
		require.NoError(t, err)
		require.Equal(t, Answer{Text: "22000000"}, answer)
		require.Empty(t, pool.pids())
	}
}

// A child that somebody else kills is no failure of the policy: the program runs again, once.
func TestAChildThatIsKilledFromOutside(t *testing.T) {
	pool := newPool(t, endlessLimits(), 1)
	_, err := pool.Run(t.Context(), "")
	require.NoError(t, err)
	idle := pool.pids()
	require.NoError(t, syscall.Kill(idle[0], syscall.SIGKILL))
	answer, err := pool.Run(t.Context(), "print(1)")
	require.NoError(t, err)
	require.Equal(t, Answer{Text: "1"}, answer)
	require.NotEqual(t, idle, pool.pids())

	// At work: killed twice, it is an error that says how it ended.
	ended := make(chan error)
	go func() {
		_, err := pool.Run(t.Context(), endless)
		ended <- err
	}()
	for range 2 {
		var working []int
		require.Eventually(t, func() bool {
			working = childrenAtWork()
			return len(working) == 1
		}, 5*time.Second, 2*time.Millisecond)
		require.NoError(t, syscall.Kill(working[0], syscall.SIGKILL))
		require.Eventually(t, func() bool { return !exists(working[0]) }, 5*time.Second, time.Millisecond)
	}
	err = <-ended
	require.ErrorIs(t, err, ErrEnded)
	require.ErrorContains(t, err, "signal: killed")
}

// childrenAtWork are the child processes of this one that have used the processor for a while.
func childrenAtWork() []int {
	var pids []int
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range tasks {
		text, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(field)
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, after, _ := strings.Cut(string(stat), ") ")
			if fields := strings.Fields(after); len(fields) > 11 {
				if ticks, _ := strconv.Atoi(fields[11]); ticks >= 5 {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

// A caller that no longer waits ends the program.
func TestCancel(t *testing.T) {
	pool := newPool(t, endlessLimits(), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := pool.Run(ctx, endless)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, pool.pids())
	_, err = pool.Run(ctx, "print(1)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Children die with their parent, however it ends.
func TestAChildDiesWithItsParent(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(program, asParent)
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.True(t, exists(pid))
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return state(pid) == "" || state(pid) == "Z" }, 5*time.Second, 5*time.Millisecond)
}

// state is the letter of a process's state, "" if there is none. Who adopts an orphan may leave it a zombie.
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

func TestManyAtOnce(t *testing.T) {
	pool := newPool(t, testLimits(), 2)
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			answer, err := pool.Run(t.Context(), fmt.Sprintf("print(%d * 2)", i))
			if err != nil || answer.Text != strconv.Itoa(2*i) {
				t.Errorf("%d: %v %v", i, answer, err)
			}
		})
	}
	wait.Wait()
	require.LessOrEqual(t, len(pool.pids()), 2)
}

// A child has no variables, its own group, few rights.
func TestAChildsProcess(t *testing.T) {
	t.Setenv("SECRET", "1")
	pool := newPool(t, testLimits(), 1)
	_, err := pool.Run(t.Context(), "")
	require.NoError(t, err)
	pid := pool.pids()[0]
	variables, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	require.Empty(t, variables)
	group, err := syscall.Getpgid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, group)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	require.NoError(t, err)
	require.Regexp(t, `Max file size +0 +0 `, string(limits))
	require.Regexp(t, `Max core file size +0 +0 `, string(limits))
	require.Regexp(t, `Max data size +\d+ +\d+ `, string(limits))
	if networked.Load() {
		t.Log("this machine does not permit a child without a network")
		return
	}
	devices, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(devices, []byte("\n")), "two lines of heads, and lo: %s", devices)
}

// Where a child may not leave the network, it keeps it.
func TestNetworkIsKept(t *testing.T) {
	before := networked.Load()
	defer func() { networked.Store(before) }()
	networked.Store(false)
	require.False(t, keepsNetwork(&os.PathError{Op: "fork/exec", Path: "x", Err: syscall.ENOENT}))
	require.False(t, networked.Load())
	require.True(t, keepsNetwork(&os.PathError{Op: "fork/exec", Path: "x", Err: syscall.EPERM}))
	require.True(t, networked.Load())
	pool := newPool(t, testLimits(), 1)
	answer, err := pool.Run(t.Context(), "print(1)")
	require.NoError(t, err)
	require.Equal(t, Answer{Text: "1"}, answer)
	require.FileExists(t, fmt.Sprintf("/proc/%d/stat", pool.pids()[0]))
}

func TestWrongPools(t *testing.T) {
	for _, c := range []struct {
		argv     []string
		change   func(*Limits)
		children int
	}{
		{nil, func(*Limits) {}, 1}, {[]string{"x"}, func(*Limits) {}, 0}, {[]string{"x"}, func(l *Limits) { l.Steps = 0 }, 1},
		{[]string{"x"}, func(l *Limits) { l.Output = 0 }, 1}, {[]string{"x"}, func(l *Limits) { l.Deadline = 0 }, 1},
		{[]string{"x"}, func(l *Limits) { l.Memory = 1 << 20 }, 1},
	} {
		limits := testLimits()
		c.change(&limits)
		_, err := NewPool(c.argv, limits, c.children)
		require.Error(t, err)
	}
	for says, argv := range map[string][]string{
		"no such file": {"/nowhere/program"}, "ended before it was ready (exit status 0)": {"/bin/true"},
		"ended before it was ready": {"/bin/echo", "hello"}, "(exit status 3): no way": {"/bin/sh", "-c", "echo no way >&2; exit 3"},
	} {
		pool, err := NewPool(argv, testLimits(), 1)
		require.NoError(t, err)
		_, err = pool.Run(t.Context(), "print(1)")
		require.ErrorIs(t, err, ErrStart, argv)
		require.ErrorContains(t, err, says)
	}
}

// The protocol, without a process.
func TestServe(t *testing.T) {
	free := func(int64) (func() bool, error) { return func() bool { return false }, nil }
	for in, want := range map[string]struct{ out, err string }{
		"":                    {"", ""},
		"{}\n":                {"", "read the setup"},
		"x\n":                 {"", "read the setup"},
		"{\"memory\":1}\n":    {"{\"ready\":true}\n", ""},
		"{\"memory\":1}\nx\n": {"{\"ready\":true}\n", "read a request"},
		"{\"memory\":1}\n{\"program\":\"print(1)\",\"steps\":100,\"output\":10}\n{\"program\":\"x\",\"steps\":100,\"output\":10}\n": {
			"{\"ready\":true}\n{\"text\":\"1\"}\n{\"text\":\"Error in line 1: undefined: x\",\"failed\":true}\n", ""},
		"{\"memory\":1}\n" + strings.Repeat("x", maxLine+1): {"{\"ready\":true}\n", "token too long"},
	} {
		var out bytes.Buffer
		err := serve(strings.NewReader(in), &out, free)
		require.Equal(t, want.out, out.String())
		if want.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want.err)
		}
	}
}

func TestWatch(t *testing.T) {
	debug.FreeOSMemory() // else what other tests have left makes room
	exceeded := make(chan struct{})
	go watch(mapped()+(20<<20), func() { close(exceeded) })
	select {
	case <-exceeded:
		require.Fail(t, "nothing has grown")
	case <-time.After(4 * watchEvery):
	}
	text := bytes.Repeat([]byte("a"), 40<<20)
	select {
	case <-exceeded:
	case <-time.After(10 * time.Second):
		require.Fail(t, "40 MiB are not seen")
	}
	require.Len(t, text, 40<<20)
}

// A child that writes no line of the protocol is an error, and no endless reading.
func TestAnswersThatAreNone(t *testing.T) {
	for script, kind := range map[string]error{
		`read x; echo '{"ready":true}'; read x; echo no`:                         ErrProtocol,
		`read x; echo '{"ready":true}'; read x; exec head -c 10000000 /dev/zero`: ErrProtocol,
		`read x; echo '{"ready":true}'; read x; echo bad >&2; exit 5`:            ErrEnded,
		`read x; echo '{"ready":true}'; read x; exit 1`:                          ErrEnded,
		`read x; echo '{"ready":true}'; read x; kill -TERM $$`:                   ErrEnded,
		`read x; echo '{"ready":true}'; read x; kill -9 $$`:                      ErrEnded,
	} {
		pool, err := NewPool([]string{"/bin/sh", "-c", script}, testLimits(), 1)
		require.NoError(t, err)
		_, err = pool.Run(t.Context(), "print(1)")
		require.ErrorIs(t, err, kind, script)
		pool.Close()
	}
}

// However Go's runtime ends a child for want of memory, it is the program's failure.
func TestWordsOfARuntimeThatEnds(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'fatal error: runtime: out of memory' >&2; exit 2":                                      "it took more than 32 MiB of memory",
		"echo 'SIGSEGV: segmentation violation' >&2; exit 2":                                          "it took more than 32 MiB of memory",
		"echo 'runtime: goroutine stack exceeds 16777216-byte limit' >&2; exit 2":                     "it nests too deeply",
		"echo 'runtime/cgo: pthread_create failed: Resource temporarily unavailable' >&2; kill -6 $$": "it took more than 32 MiB of memory",
		"exit 86": "it took more than 32 MiB of memory",
		"exit 87": "it took more than 10s",
	} {
		pool, err := NewPool([]string{"/bin/sh", "-c", `read x; echo '{"ready":true}'; read x; ` + script}, testLimits(), 1)
		require.NoError(t, err)
		answer, err := pool.Run(t.Context(), "print(1)")
		require.NoError(t, err)
		require.Equal(t, Answer{Text: "Error: the program was stopped, since " + want + ".", Failed: true, Killed: true}, answer)
		pool.Close()
	}
}

func BenchmarkWarmCall(b *testing.B) {
	pool := newPool(b, Defaults, 1)
	for b.Loop() {
		if answer, err := pool.Run(b.Context(), "print([i * i for i in range(10)])"); err != nil || answer.Failed {
			b.Fatal(answer, err)
		}
	}
}

func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		pool := newPool(b, Defaults, 1)
		if _, err := pool.Run(b.Context(), "print(1)"); err != nil {
			b.Fatal(err)
		}
		pool.Close()
	}
}

func BenchmarkStepLimit(b *testing.B) {
	pool := newPool(b, Defaults, 1)
	for b.Loop() {
		if answer, err := pool.Run(b.Context(), "for i in range(1000000000): pass"); err != nil || !answer.Failed {
			b.Fatal(answer, err)
		}
	}
}

// A child answers as the interpreter, and bounds what it takes.
func TestAChildEvaluates(t *testing.T) {
	pool := newPool(t, testLimits(), 1)
	i := Interpreter{Steps: testLimits().Steps, Output: testLimits().Output}
	many := strings.Split(strings.Repeat("f(1),", MaxExpressions-1)+"f(2)", ",")
	for _, program := range []string{"def f(x): return x", "def f(x): return 'a' * 1000", "def f(x): fail('\x01' * 1000)", "x ="} {
		answer, err := pool.Evaluate(t.Context(), program, many)
		require.NoError(t, err)
		require.Equal(t, i.Evaluate(program, many), answer)
	}
	answer, err := pool.Evaluate(t.Context(), "def f(x): return 'a' * 1000000000", []string{"len(f(1))"})
	require.NoError(t, err)
	require.True(t, answer.Killed)
	_, err = pool.Evaluate(t.Context(), "", append(many, "1"))
	require.ErrorIs(t, err, ErrProtocol)
	_, err = pool.Evaluate(t.Context(), "", []string{strings.Repeat("1", MaxProgram+1)})
	require.ErrorIs(t, err, ErrProtocol)
}
