package workers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
)

const (
	// A process that computes and has ended starts again at once, if it has lived for restartCalm. Otherwise it waits
	// restartFirst, and twice as long each time, up to restartMost.
	restartFirst = time.Second
	restartMost  = 30 * time.Second
	restartCalm  = 10 * time.Second
	// stopTime is what it needs to stop besides its grace.
	stopTime = 10 * time.Second
	// quietTime is how much longer than its grace it may take to say that it runs no step.
	quietTime = 2 * answerTime
	// silentTicks is how many times of aliveEvery it may be silent once it serves. Then it is frozen, and is killed. They are
	// counted, not measured: this process may have been frozen itself.
	silentTicks = 15
	// sendTime bounds a message to it, which may be frozen, and the wait for its last ones.
	sendTime = time.Second
)

// ChildOptions is how the process that computes is started, and started again when it has ended.
type ChildOptions struct {
	// Command makes its command: this program as a worker that is supervised. See Parent.
	Command func() *exec.Cmd
	// Out gets a line when it has ended and will start again.
	Out io.Writer
}

// upward is what the process that computes tells its parent, a line of JSON each.
type upward struct {
	// Serves comes once: its device, and the queue of the run that has it.
	Serves *serves `json:"serves,omitempty"`
	// Step is the step that begins, or has ended.
	Step *stepState `json:"step,omitempty"`
	// Session tells that a session of the SDK's begins, or has ended.
	Session *bool `json:"session,omitempty"`
	// Device comes every aliveEvery: why its device cannot be used now; "" while it can.
	Device *string `json:"device,omitempty"`
	// Ends tells that no step runs any more, and why.
	Ends *activities.HoldResult `json:"ends,omitempty"`
}

type serves struct {
	Queue  string                `json:"queue"`
	Device activities.DeviceInfo `json:"device"`
	// Devices is how many it computes on.
	Devices int `json:"devices"`
	// Metrics is the URL of its metrics; "" for none.
	Metrics string `json:"metrics,omitempty"`
}

type stepState struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
}

// downward is what it is told: the run that has its device from now on; "" for none.
type downward struct {
	Run string `json:"run"`
}

// child keeps the process that computes.
type child struct {
	p     *process
	first time.Duration // restartFirst, but in tests
	ready chan activities.DeviceInfo

	// sends guards down. It is not mu: the holder sends while it has its own lock, and is called by who has mu.
	sends sync.Mutex
	down  *os.File

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	quiet   chan struct{} // closed when it runs no step any more
	step    stepState
	// fingerprint is that of the device, and devices how many there are, as it said last.
	fingerprint string
	devices     int
	served      bool     // it serves
	trouble     string   // why its device cannot be used now
	heard       int      // messages
	sessions    []func() // of the SDK's
	stopping    bool
}

// startChild starts the process that computes, and waits until it serves.
func (p *process) startChild(ctx context.Context) (info activities.DeviceInfo, err error) {
	c := &child{p: p, first: restartFirst, ready: make(chan activities.DeviceInfo, 1)}
	p.child = c
	p.holder.Given = c.given
	failed := make(chan error, 1)
	go func() { failed <- c.keep() }()
	select {
	case info = <-c.ready:
	case err = <-failed:
		return info, err
	case <-ctx.Done():
		return info, ctx.Err()
	}
	go func() {
		if err := <-failed; err != nil {
			p.fatal <- err
		}
	}()
	return info, nil
}

// given tells the process that a run has its device, until back is called.
func (c *child) given(run string) (back func()) {
	c.tell(downward{Run: run})
	return func() { c.tell(downward{}) }
}

// keep runs the process until the worker stops, and starts it again where a new one is needed.
func (c *child) keep() error {
	wait := time.Duration(0)
	for {
		began := time.Now()
		how, again, err := c.once()
		c.mu.Lock()
		stopping := c.stopping
		c.mu.Unlock()
		switch {
		case stopping:
			return nil
		case err != nil:
			return err
		case !again:
			return fmt.Errorf("the process that computes has ended: %s", how.Reason)
		}
		if time.Since(began) > restartCalm {
			wait = 0
		} else {
			wait = min(max(2*wait, c.first), restartMost)
		}
		when := "It starts again."
		if wait > 0 {
			when = fmt.Sprintf("It starts again in %s.", wait)
		}
		fmt.Fprintf(c.p.Child.Out, "The process that computes has ended: %s. %s\n", how.Reason, when)
		time.Sleep(wait)
	}
}

// once runs the process once, and returns how it ended, and whether a new one may do better.
func (c *child) once() (how activities.HoldResult, again bool, err error) {
	from, up, err := os.Pipe()
	if err != nil {
		return how, false, fmt.Errorf("make a pipe for the process that computes: %w", err)
	}
	defer from.Close()
	theirs, down, err := os.Pipe()
	if err != nil {
		up.Close()
		return how, false, fmt.Errorf("make a pipe for the process that computes: %w", err)
	}
	defer down.Close()
	command := c.p.Child.Command()
	command.ExtraFiles = []*os.File{up, theirs}
	ended := make(chan struct{})
	kills := killsForMemory()
	c.mu.Lock()
	if c.stopping {
		c.mu.Unlock()
		return how, false, nil
	}
	var exit error
	err = dev.StartChild(command, func(err error) { exit = err; close(ended) })
	up.Close()
	theirs.Close()
	if err != nil {
		c.mu.Unlock()
		return how, false, fmt.Errorf("start the process that computes: %w", err)
	}
	c.command, c.ended, c.quiet, c.step = command, ended, make(chan struct{}), stepState{}
	c.mu.Unlock()
	c.sends.Lock()
	c.down = down
	c.sends.Unlock()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		c.listen(from)
	}()
	go c.guard(command, ended, time.NewTicker(aliveEvery))
	<-ended
	select { // what it said last
	case <-heard:
	case <-time.After(sendTime): // somebody that it started still has its pipe
	}
	how, again = endOf(exit, killsForMemory() > kills)
	c.mu.Lock()
	how.Step, how.Running = c.step.Name, c.step.Running
	for _, end := range c.sessions {
		end()
	}
	c.sessions, c.served = nil, false
	c.closeQuiet()
	stopping := c.stopping
	c.mu.Unlock()
	if !stopping { // else the worker says how its lease ends
		c.p.Logger.Warn("the process that computes has ended", zap.String("how", how.String()))
		c.p.holder.Ends(how)
	}
	return how, again, nil
}

// listen takes what the process tells, until it has ended.
func (c *child) listen(from io.Reader) {
	for lines := json.NewDecoder(from); ; {
		var m upward
		if lines.Decode(&m) != nil {
			return
		}
		c.mu.Lock()
		c.heard++
		c.mu.Unlock()
		switch {
		case m.Serves != nil:
			c.serves(*m.Serves)
		case m.Step != nil:
			c.mu.Lock()
			c.step = *m.Step
			c.mu.Unlock()
		case m.Session != nil:
			c.session(*m.Session)
		case m.Device != nil:
			c.mu.Lock()
			c.trouble = *m.Device
			c.mu.Unlock()
		case m.Ends != nil:
			c.mu.Lock()
			stopping := c.stopping
			c.closeQuiet()
			c.mu.Unlock()
			if !stopping {
				c.p.holder.Ends(*m.Ends)
			}
		}
	}
}

// guard kills the process if it is silent for too long.
func (c *child) guard(command *exec.Cmd, ended <-chan struct{}, tick *time.Ticker) {
	defer tick.Stop()
	heard, silent := 0, 0
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		now, serves := c.heard, c.served
		c.mu.Unlock()
		if silent++; now != heard || !serves {
			heard, silent = now, 0
		}
		if silent >= silentTicks {
			c.p.Logger.Error("the process that computes is frozen: it is killed", zap.Duration("silent", silentTicks*aliveEvery))
			_ = command.Process.Kill()
			return
		}
	}
}

// serves takes the device of a process that serves. If it is another one than before, as with another plugin under the same name,
// it computes other bits than the line of this worker is for: the worker ends.
func (c *child) serves(s serves) {
	c.mu.Lock()
	before := c.fingerprint
	c.fingerprint, c.devices = s.Device.Fingerprint, s.Devices
	c.served, c.trouble = true, ""
	c.mu.Unlock()
	if before != "" && before != s.Device.Fingerprint {
		c.p.fatal <- fmt.Errorf("the device had the fingerprint %s and has %s, since its process was started again: start the worker again", before, s.Device.Fingerprint)
		return
	}
	select {
	case c.ready <- s.Device:
	default:
	}
	if c.p.metrics != nil {
		c.p.metrics.Beside(s.Metrics)
	}
	c.p.holder.Computes(s.Queue, s.Device)
}

// alive tells whether the device can be used now, and what is known of it.
func (c *child) alive() (ready bool, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.served:
		return false, "the process that computes starts"
	case c.trouble != "":
		return false, c.trouble
	}
	return true, "fingerprint " + c.fingerprint
}

// count is how many devices it computes on.
func (c *child) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.devices
}

func (c *child) session(begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begins {
		if end, ok := c.p.holder.Outside(); ok {
			c.sessions = append(c.sessions, end)
		}
		return
	}
	if n := len(c.sessions) - 1; n >= 0 {
		c.sessions[n]()
		c.sessions = c.sessions[:n]
	}
}

// closeQuiet notes that no step runs any more. The caller has the lock.
func (c *child) closeQuiet() {
	select {
	case <-c.quiet:
	default:
		close(c.quiet)
	}
}

// tell sends a message. One that does not arrive does no harm: blocks of other runs are taken, or not.
func (c *child) tell(m downward) {
	c.sends.Lock()
	defer c.sends.Unlock()
	if c.down == nil {
		return
	}
	_ = c.down.SetWriteDeadline(time.Now().Add(sendTime))
	_ = json.NewEncoder(c.down).Encode(m)
}

// drain has the process finish the running step within grace, and waits until it runs none.
func (c *child) drain(grace time.Duration) {
	c.mu.Lock()
	c.stopping = true
	command, quiet := c.command, c.quiet
	c.mu.Unlock()
	if command == nil {
		return
	}
	_ = command.Process.Signal(syscall.SIGTERM) // one that has ended is quiet
	select {
	case <-quiet:
	case <-time.After(grace + quietTime):
		_ = command.Process.Kill() // its time is over, as by a kill
	}
}

// endChild ends the process, if there is one.
func (p *process) endChild() {
	if p.child == nil {
		return
	}
	c := p.child
	c.mu.Lock()
	c.stopping = true
	command, ended := c.command, c.ended
	c.mu.Unlock()
	if command == nil {
		return
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopTime):
		_ = command.Process.Kill()
		<-ended
	}
}

// endOf says how a process has ended, and whether a new one may do better. memory says that the system has killed for memory.
func endOf(err error, memory bool) (how activities.HoldResult, again bool) {
	how = activities.HoldResult{End: activities.LeaseLost}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return activities.HoldResult{End: activities.LeaseDrained, Reason: "it was told to stop"}, true
	case !errors.As(err, &exit):
		how.Reason = err.Error()
		return how, false
	}
	how.Reason, how.ExitCode = exit.Error(), max(0, exit.ExitCode())
	if meaning, known := ExitMeaning(exit.ExitCode()); known {
		how.Reason = fmt.Sprintf("%s (exit %d)", meaning, exit.ExitCode())
		return how, true
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return how, false // an error that would be the same again
	}
	how.Signal = status.Signal().String()
	if memory && status.Signal() == syscall.SIGKILL {
		how.Reason = "the system killed it for memory"
	}
	return how, true
}

// killsForMemory is how many processes the system has killed for memory since it started; 0 where it does not say.
func killsForMemory() int {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if count, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			n, _ := strconv.Atoi(count)
			return n
		}
	}
	return 0
}
