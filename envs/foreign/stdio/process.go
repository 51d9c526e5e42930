package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/keeper"
	"github.com/reprise-rl/reprise/infra/strict"
)

// process is a running server.
type process struct {
	command *exec.Cmd // its keeper: see package keeper
	end     func()    // kills the server, and all that it started
	in      io.WriteCloser
	out     *bufio.Reader
	log     *Tail
	last    int64         // id of the last request
	timeout time.Duration // of a request, for the error that it passes
}

// start starts a server, whose children end with it, and all of them with this process.
func start(c Config) (*process, error) {
	p := &process{command: exec.Command(c.Command[0], c.Command[1:]...), log: NewTail(), timeout: c.Timeout}
	p.command.Env = c.environment()
	p.command.Stderr = p.log
	p.command.WaitDelay = time.Second // a child that its keeper cannot kill may keep standard error open
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", foreign.ErrExited, err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", foreign.ErrExited, err)
	}
	if p.end, err = keeper.Start(p.command); err != nil {
		return nil, fmt.Errorf("%w: it did not start: %w", foreign.ErrExited, err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 1<<16)
	return p, nil
}

// kill ends the server and waits for it.
func (p *process) kill() {
	p.end()
	p.log.Close()
	_ = p.in.Close()
	_ = p.command.Wait() // says that it was killed
}

// ask sends one request and reads its reply. After an error other than ErrBusy and
// ErrBroken, the process is of no use.
func (p *process) ask(ctx context.Context, name string, input []byte) ([]byte, error) {
	p.last++
	line, err := json.Marshal(struct {
		ID    int64           `json:"id"`
		Call  string          `json:"call"`
		Input json.RawMessage `json:"input"`
	}{p.last, name, input})
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	// Reads and writes of pipes have no deadline here: killing the process ends both.
	late := context.AfterFunc(ctx, p.end)
	defer late()
	reply, err := p.exchange(append(line, '\n'))
	switch {
	case err == nil:
		return p.read(reply)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%w: %s: no reply after %v", foreign.ErrTimeout, name, p.timeout)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %s: %w", foreign.ErrTimeout, name, ctx.Err())
	}
	return nil, fmt.Errorf("%w while it was asked %s", err, name)
}

// ending says how a process ended that was waited for: by itself, with its status; "" if it was killed here.
func (p *process) ending() string {
	state := p.command.ProcessState
	if state == nil || state.ExitCode() < 0 {
		return ""
	}
	if signal, died := keeper.Died(state.ExitCode()); died {
		return fmt.Sprintf("it ended with %s (%s)", state, signal)
	}
	return fmt.Sprintf("it ended with %s", state)
}

// exchange writes a line and reads one.
func (p *process) exchange(line []byte) ([]byte, error) {
	written := make(chan error, 1)
	go func() {
		_, err := p.in.Write(line)
		written <- err
	}()
	reply, err := readLine(p.out)
	if err != nil {
		if !errors.Is(err, foreign.ErrFlood) {
			err = fmt.Errorf("%w: %w", foreign.ErrExited, err)
		}
		return nil, err
	}
	if err := <-written; err != nil {
		return nil, fmt.Errorf("%w: %w", foreign.ErrExited, err)
	}
	return reply, nil
}

// readLine reads a line of at most foreign.MaxAnswer bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > foreign.MaxAnswer:
			return nil, fmt.Errorf("%w: more than %d bytes", foreign.ErrFlood, foreign.MaxAnswer)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// notFinite finds a number that is not finite as Python and others write it in place of JSON, with the key before it.
var notFinite = regexp.MustCompile(`("[^"]*")\s*:[^"{}:]*?(-?\b(?:NaN|nan|Infinity|inf)\b)`)

// read is a reply's output.
func (p *process) read(line []byte) ([]byte, error) {
	n, err := strict.Parse(bytes.TrimSpace(line), strict.Limits{})
	if number := notFinite.FindStringSubmatch(string(line)); err != nil && number != nil {
		return nil, fmt.Errorf("%w: %s is %s, want a finite number: JSON has no other",
			foreign.ErrAnswer, number[1], number[2])
	}
	if err != nil || n.Kind() != strict.Object {
		return nil, fmt.Errorf("%w: it wrote the line %s, want a reply; other output belongs on standard error", foreign.ErrAnswer, strict.Quote(strings.TrimSpace(string(line))))
	}
	var id, output, failure strict.Node
	for _, m := range n.Written() {
		switch {
		case m.Key == "id" && !m.Again:
			id = m.Value
		case m.Key == "output" && !m.Again:
			output = m.Value
		case m.Key == "error" && !m.Again:
			failure = m.Value
		default:
			return nil, fmt.Errorf("%w: a reply with %s, want id, and output or error, each once", foreign.ErrAnswer, strict.Quote(m.Key))
		}
	}
	if got, ok := id.Integer(); !ok || got != p.last {
		return nil, fmt.Errorf("%w: it replied to request %s, asked was %d", foreign.ErrOther, id.Found(), p.last)
	}
	switch output, failed := output.Kind() == strict.Object, failure.Kind() == strict.Object; {
	case output == failed:
		return nil, fmt.Errorf("%w: a reply has output or error, and each is an object", foreign.ErrAnswer)
	case failed:
		return nil, foreign.ReadFailure([]byte(failure.Raw()))
	}
	return []byte(output.Raw()), nil
}
