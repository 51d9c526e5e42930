package workers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workers/lease"
)

// outlet is a buffer that a goroutine writes while the test reads.
type outlet struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *outlet) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// scripted is a process whose computing is a script of the shell; its number of starts is in $1's file.
func scripted(t *testing.T, script string) (p *process, out *outlet, count string) {
	count = filepath.Join(t.TempDir(), "starts")
	out = &outlet{}
	p = &process{
		Options: Options{Logger: zap.NewNop(), Child: &ChildOptions{Out: out, Command: func() *exec.Cmd {
			return exec.Command("/bin/sh", "-c", "echo >> $0; n=$(wc -l < $0); "+script, count)
		}}},
		holder: lease.New("w", "mine", nil), fatal: make(chan error, 1),
	}
	p.child = &child{p: p, first: time.Millisecond, ready: make(chan activities.DeviceInfo, 4)}
	return p, out, count
}

// says is a shell's command that says a device to the parent.
func says(fingerprint string) string {
	return fmt.Sprintf(`echo '{"serves":{"queue":"q-%[1]s","device":{"fingerprint":"%[1]s","fields":null}}}' >&3`, fingerprint)
}

// A process that ends as one that needs a new one, or is killed, is started again, and the user is told why; one that ends
// otherwise is not.
func TestChildStartsAgain(t *testing.T) {
	p, out, _ := scripted(t, fmt.Sprintf(`case $n in
1) exit %d ;;
2) kill -9 $$ ;;
3) %s; exit %d ;;
*) exit 1 ;;
esac`, Exits[0].Code, says("third"), Exits[1].Code))
	require.EqualError(t, p.child.keep(), "the process that computes has ended: exit status 1")
	require.Equal(t, "third", (<-p.child.ready).Fingerprint)
	require.Equal(t, fmt.Sprintf(`The process that computes has ended: %s (exit %d). It starts again in 1ms.
The process that computes has ended: signal: killed. It starts again in 2ms.
The process that computes has ended: %s (exit %d). It starts again in 4ms.
`, Exits[0].Meaning, Exits[0].Code, Exits[1].Meaning, Exits[1].Code), out.String())
}

// A process that comes back with another device ends the worker: its line is for another fingerprint.
func TestChildWithAnotherDevice(t *testing.T) {
	p, _, _ := scripted(t, fmt.Sprintf(`case $n in 1) %s; exit %d ;; *) %s; exec sleep 60 ;; esac`, says("one"), Exits[1].Code, says("other")))
	go func() { _ = p.child.keep() }()
	require.ErrorContains(t, <-p.fatal, "the device had the fingerprint one and has other")
	require.Len(t, p.child.ready, 1)
	_, err := p.holder.Acquire(t.Context(), activities.AcquireInput{Run: "r"})
	require.Error(t, err, "no run gets the other device")
	p.endChild()
}

// The lease ends when the process does: at once, with its signal and the step that ran.
func TestLeaseEndsWithChild(t *testing.T) {
	p, _, count := scripted(t, says("f")+`; read lease <&4; echo "$lease" > $0.$n; echo '{"step":{"name":"Update, activity 7","running":true}}' >&3
case $n in 1) sleep 0.1; kill -9 $$ ;; *) exec sleep 60 ;; esac`)
	p.holder.Given = p.child.given
	ended := make(chan error, 1)
	go func() { ended <- p.child.keep() }()
	require.Equal(t, "f", (<-p.child.ready).Fingerprint)
	var l activities.Lease
	require.Eventually(t, func() (ok bool) {
		var err error
		l, err = p.holder.Acquire(t.Context(), activities.AcquireInput{Run: "r"})
		return err == nil
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, "q-f", l.Queue)
	require.Eventually(t, func() bool {
		_, err := p.holder.Acquire(t.Context(), activities.AcquireInput{Run: "again"})
		return err == nil
	}, 5*time.Second, time.Millisecond, "the process has ended, and a new one serves")
	told, err := os.ReadFile(count + ".1")
	require.NoError(t, err)
	require.JSONEq(t, `{"run":"r"}`, string(told))
	p.endChild()
	require.NoError(t, <-ended)
}

// A process that is silent after it has served is frozen: it is killed, and a new one starts. One that speaks is left alone.
func TestFrozenChildIsKilled(t *testing.T) {
	for script, want := range map[string]bool{"exec sleep 60": true, `while :; do echo '{"device":""}' >&3; sleep 0.005; done`: false} {
		p, _, _ := scripted(t, script)
		command := p.Child.Command()
		from, up, err := os.Pipe()
		require.NoError(t, err)
		command.ExtraFiles = []*os.File{up}
		require.NoError(t, command.Start())
		up.Close()
		ended := make(chan struct{})
		p.child.served = true
		go p.child.listen(from)
		killed := make(chan struct{})
		go func() { p.child.guard(command, ended, time.NewTicker(20*time.Millisecond)); close(killed) }()
		select {
		case <-killed:
			require.True(t, want, script)
		case <-time.After(time.Second):
			require.False(t, want, script)
			require.NoError(t, command.Process.Kill())
			close(ended)
		}
		_ = command.Wait() // it was killed
	}
}

// A session of the SDK's that begins and ends beside leases that are given and expire locks nobody out.
func TestChildsLocks(t *testing.T) {
	p, _, _ := scripted(t, "")
	p.holder.Given = p.child.given
	p.holder.Computes("q", activities.DeviceInfo{})
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() {
			for range 2000 {
				p.child.session(true)
				p.child.session(false)
			}
		})
		done.Go(func() {
			for range 2000 {
				if l, err := p.holder.Acquire(t.Context(), activities.AcquireInput{}); err == nil {
					_, _ = p.holder.Release(t.Context(), activities.HoldInput{Lease: l.ID})
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { done.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		require.Fail(t, "they wait for each other")
	}
}

// A worker that stops waits until no step runs any more, and then for the process's end.
func TestChildDrains(t *testing.T) {
	p, _, count := scripted(t, `trap 'sleep 0.1; echo "{\"ends\":{\"end\":\"drained\"}}" >&3; touch $0.stopped; exit 0' TERM; `+says("f")+
		`; while :; do sleep 0.01; done`)
	ended := make(chan error, 1)
	go func() { ended <- p.child.keep() }()
	<-p.child.ready
	lease, err := p.holder.Acquire(t.Context(), activities.AcquireInput{Run: "r"})
	require.NoError(t, err)
	p.child.drain(10 * time.Second)
	p.endChild()
	require.NoError(t, <-ended)
	require.FileExists(t, count+".stopped")
	info, err := p.holder.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, "r", info.Busy, "how lease %s ends is the worker's to say", lease.ID)
}

func TestEndOf(t *testing.T) {
	run := func(script string) error { return exec.Command("/bin/sh", "-c", script).Run() }
	for name, c := range map[string]struct {
		script string
		memory bool
		want   activities.HoldResult
		again  bool
	}{
		"killed":            {"kill -9 $$", false, activities.HoldResult{End: activities.LeaseLost, Reason: "signal: killed", Signal: "killed"}, true},
		"killed for memory": {"kill -9 $$", true, activities.HoldResult{End: activities.LeaseLost, Reason: "the system killed it for memory", Signal: "killed"}, true},
		"a crash":           {"kill -SEGV $$", true, activities.HoldResult{End: activities.LeaseLost, Reason: "signal: segmentation fault", Signal: "segmentation fault"}, true},
		"no memory on the device": {fmt.Sprintf("exit %d", Exits[0].Code), false,
			activities.HoldResult{End: activities.LeaseLost, Reason: Exits[0].Meaning + fmt.Sprintf(" (exit %d)", Exits[0].Code), ExitCode: Exits[0].Code}, true},
		"a mistake": {"exit 1", false, activities.HoldResult{End: activities.LeaseLost, Reason: "exit status 1", ExitCode: 1}, false},
	} {
		how, again := endOf(run(c.script), c.memory)
		require.Equal(t, c.want, how, name)
		require.Equal(t, c.again, again, name)
	}
}
