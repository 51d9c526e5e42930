package starlark

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
	"strings"
	"sync"
	"time"
)

// Kinds of errors of children. None is the policy's failure.
var (
	// ErrStart says that a child cannot be started.
	ErrStart = errors.New("a process for Starlark programs does not start")
	// ErrEnded says that a child ended, and not by what its program did: somebody else killed it.
	ErrEnded = errors.New("the process of a Starlark program ended")
	// ErrProtocol says that a child, or its parent, wrote what is no line of the protocol.
	ErrProtocol = errors.New("not a line of the protocol of Starlark programs")
	// ErrClosed says that the pool is closed.
	ErrClosed = errors.New("the pool of Starlark programs is closed")
)

// readyWithin is how long a child may take until it is ready. Linking a large program takes a part of a second.
const readyWithin = 20 * time.Second

// child is a process that runs programs one after the other.
type child struct {
	limits  Limits
	command *exec.Cmd
	in      io.WriteCloser
	pipe    io.Closer // that out reads
	out     *bufio.Reader
	stderr  head
	gone    chan struct{} // closed when the process has ended and was waited for
}

// begin starts a child and waits until it is ready.
func begin(ctx context.Context, argv []string, limits Limits) (*child, error) {
	c, err := spawn(argv, limits)
	if err != nil && keepsNetwork(err) {
		c, err = spawn(argv, limits)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStart, argv[0], err)
	}
	answered := exchange[ready](c, setup{Memory: limits.Memory})
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	select {
	case r := <-answered:
		if r.err == nil && r.value.Ready {
			return c, nil
		}
		c.await()
		return nil, fmt.Errorf("%w: %s ended before it was ready (%s): %s", ErrStart, argv[0], c.command.ProcessState, c.stderr.String())
	case <-late.C:
		c.kill()
		return nil, fmt.Errorf("%w: %s is not ready after %v: %s", ErrStart, argv[0], readyWithin, c.stderr.String())
	case <-ctx.Done():
		c.kill()
		return nil, context.Cause(ctx)
	}
}

// spawn starts the process, with nothing of this one's variables.
func spawn(argv []string, limits Limits) (*child, error) {
	c := &child{limits: limits, command: exec.Command(argv[0], argv[1:]...), gone: make(chan struct{})}
	c.command.Env = []string{}
	c.command.Dir = "/"
	c.command.Stderr = &c.stderr
	c.command.WaitDelay = time.Second
	in, err := c.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait closes that when the process ends, perhaps before the last line was read.
	reader, writer, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	c.command.Stdout = writer
	c.in, c.pipe, c.out = in, reader, bufio.NewReaderSize(reader, 32<<10)
	err = start(c.command, func() { close(c.gone) })
	writer.Close() // the process has it
	if err != nil {
		in.Close()
		reader.Close()
		return nil, err
	}
	return c, nil
}

// answered is what a child wrote, or why it did not.
type answered[T any] struct {
	value T
	err   error
}

// exchange writes a line to a child and reads its answer. The result comes when the child has answered or is gone.
func exchange[T any](c *child, question any) <-chan answered[T] {
	result := make(chan answered[T], 1)
	go func() {
		var a answered[T]
		line, err := json.Marshal(question)
		if err == nil {
			_, err = c.in.Write(append(line, '\n'))
		}
		if err == nil {
			line, err = readLine(c.out, maxReply(c.limits))
		}
		if err == nil {
			if err = json.Unmarshal(line, &a.value); err != nil {
				err = fmt.Errorf("%w: %w", ErrProtocol, err)
			}
		}
		a.err = err
		result <- a
	}()
	return result
}

// maxReply is the most bytes of a reply: a byte of the output takes at most six in JSON, and each of the values of
// expressions may have an error beside.
func maxReply(l Limits) int { return 6*l.Output + 4096 + 6*MaxExpressions*(maxMessage+64) }

// readLine reads a line of at most so many bytes.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > most {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, most)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// run runs a program and, if there are any, evaluates expressions. usable says that the child can run another; if not, it
// is gone. Errors are of kind ErrEnded or ErrProtocol, or the context's.
func (c *child) run(ctx context.Context, program string, expressions []string) (answer Answer, usable bool, err error) {
	l := c.limits
	answers := exchange[reply](c, request{
		Program: program, Expressions: expressions, Steps: l.Steps, Output: l.Output, Deadline: l.Deadline,
	})
	deadline := time.NewTimer(l.Deadline)
	defer deadline.Stop()
	select {
	case a := <-answers:
		if a.err == nil && !a.value.Last {
			return Answer{Text: a.value.Text, Failed: a.value.Failed}, true, nil
		}
		answer, err = c.last(a)
	case <-deadline.C:
		answer = c.late()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.kill()
	return answer, false, err
}

// last is the answer of a child that ends: of its own accord, or since the program was too much for it.
func (c *child) last(a answered[reply]) (Answer, error) {
	if a.err == nil {
		return Answer{Text: a.value.Text, Failed: a.value.Failed}, nil
	}
	if errors.Is(a.err, ErrProtocol) {
		return Answer{}, a.err
	}
	c.await()
	state, says := c.command.ProcessState, c.stderr.String()
	killed := func(sentence string) (Answer, error) {
		stopped := failure("", sentence)
		stopped.Killed = true
		return stopped, nil
	}
	switch {
	case state.ExitCode() == exitDeadline:
		return c.late(), nil
	case strings.Contains(says, "stack exceeds"):
		return killed("the program was stopped, since it nests too deeply")
	case state.ExitCode() == exitMemory, state.ExitCode() == exitRuntime, outOfMemory(says):
		return killed(fmt.Sprintf("the program was stopped, since it took more than %d MiB of memory", c.limits.Memory>>20))
	}
	return Answer{}, fmt.Errorf("%w (%s): %s", ErrEnded, state, says)
}

// late is the answer of a program that took too long.
func (c *child) late() Answer {
	answer := failure("", fmt.Sprintf("the program was stopped, since it took more than %v", c.limits.Deadline))
	answer.Killed = true
	return answer
}

// exitRuntime is the exit code with which Go's runtime ends a process. While a program runs, that is for want of memory,
// whatever it says: the interpreter's own panics are recovered, and where the kernel refuses a page, the runtime may also
// meet a nil pointer of its own.
const exitRuntime = 2

// outOfMemory reports whether a process ended since a part of it that is not Go's runtime got no memory.
func outOfMemory(says string) bool {
	return strings.Contains(says, "pthread_create failed") || strings.Contains(says, "ThreadSanitizer failed to allocate")
}

// await waits for the end of a process that writes no more, for so long as one may take to end, and kills it then.
func (c *child) await() {
	select {
	case <-c.gone:
	case <-time.After(time.Second):
	}
	c.kill()
}

// kill ends the process at once, and returns when it is gone. It has no children.
func (c *child) kill() {
	_ = c.command.Process.Kill() // it may have ended
	c.in.Close()
	<-c.gone
	c.pipe.Close()
}

// head keeps the beginning of what is written: a Go program says first why it ends.
type head struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// maxHead is the most bytes that are kept.
const maxHead = 2048

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b.Write(p[:min(len(p), maxHead-h.b.Len())])
	return len(p), nil
}

// String is what was kept, in one line.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ToValidUTF8(strings.Join(strings.Fields(h.b.String()), " "), "\uFFFD")
}
