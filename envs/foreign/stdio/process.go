package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/strict"
)

// process is a running server.
type process struct {
	*Child
	last    int64         // id of the last request
	timeout time.Duration // of a request, for the error that it passes
}

// start starts a server.
func start(c Config) (*process, error) {
	child, err := StartChild(c.Command, c.environment())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", foreign.ErrExited, err)
	}
	return &process{Child: child, timeout: c.Timeout}, nil
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
	late := context.AfterFunc(ctx, p.End)
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

// exchange writes a line and reads one.
func (p *process) exchange(line []byte) ([]byte, error) {
	written := make(chan error, 1)
	go func() {
		_, err := p.In.Write(line)
		written <- err
	}()
	reply, err := ReadLine(p.Out, foreign.MaxAnswer)
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
