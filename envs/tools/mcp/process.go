package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	// grace is how long a process may take to end after its standard input was closed; then it is killed.
	grace = time.Second
	// maxNoise is how many bytes of lines that are no messages a process may write to standard output.
	maxNoise = 1 << 20
	// maxSkipped is how many bytes of a message that is too long are read to find its end.
	maxSkipped = 256 << 20
)

// process is a server that runs, and the SDK's connection with it. It is reached by lines of JSON.
//
// The SDK has a connection of its own for this. This one starts the process under a keeper, bounds lines, tells which
// call an answer that is too long belongs to, passes over a banner on standard output, and answers what a server asks.
type process struct {
	*stdio.Child
	server   Server
	writing  chan struct{} // has one element while nobody writes
	received atomic.Int64  // messages
	noise    int           // bytes of lines that are no messages

	faults sync.Mutex
	broke  error // the first fault that ends the connection

	closing atomic.Bool // Close has begun: an end is no fault
	once    sync.Once
	over    chan struct{} // closed when the process has been waited for
}

// startProcess starts a server, whose children end with it, and all of them with this process.
func startProcess(s Server) (*process, error) {
	child, err := stdio.StartChild(s.Command, stdio.Inherited(s.Variables...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExited, err)
	}
	p := &process{Child: child, server: s, writing: make(chan struct{}, 1), over: make(chan struct{})}
	p.writing <- struct{}{}
	return p, nil
}

// Connect is the transport's part of an sdk.Transport: the process is the connection.
func (p *process) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID is empty: a process is its session.
func (p *process) SessionID() string { return "" }

// fault remembers why the connection ends; the first reason counts.
func (p *process) fault(err error) error {
	p.faults.Lock()
	defer p.faults.Unlock()
	if p.broke == nil {
		p.broke = err
	}
	return p.broke
}

// broken is why the connection ended; nil if it goes on or was closed here.
func (p *process) broken() error {
	p.faults.Lock()
	defer p.faults.Unlock()
	return p.broke
}

// Read reads the next answer. Notifications are dropped, and requests are answered here: a server that sends many of
// them waits until it has read the answers. Lines that are no messages are kept for errors, up to maxNoise bytes.
func (p *process) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		l, err := readLine(p.Out, p.server.message)
		switch {
		case err != nil && p.closing.Load():
			return nil, err
		case err != nil:
			return nil, p.fault(err)
		case l.long():
			return p.tooLong(l)
		}
		text := bytes.TrimSpace(l.text)
		if len(text) == 0 {
			continue
		}
		message, err := decode(text)
		if err != nil {
			if bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte(`"jsonrpc"`)) {
				return nil, p.fault(fmt.Errorf("%w: it wrote %s, want a message of JSON-RPC: %w", ErrAnswer, strict.Quote(string(text)), err))
			}
			fmt.Fprintf(p.Log, "(standard output) %s\n", text)
			if p.noise += len(text); p.noise > maxNoise {
				return nil, p.fault(fmt.Errorf("%w: it wrote more than %d bytes to standard output that are no messages, as %s; logs belong on standard error",
					ErrAnswer, maxNoise, strict.Quote(string(text))))
			}
			continue
		}
		p.received.Add(1)
		answer, reply := screen(message)
		if answer != nil {
			return answer, nil
		}
		if reply != nil {
			if err := p.Write(ctx, reply); err != nil {
				return nil, p.fault(err)
			}
		}
	}
}

// The answers to a request begin or end so, as the SDKs of Go and Python, and of TypeScript, write them.
var (
	idFirst = regexp.MustCompile(`^\s*\{"jsonrpc":\s*"2\.0",\s*"id":\s*(\d{1,15}),\s*"(?:result|error)":`)
	idLast  = regexp.MustCompile(`,\s*"jsonrpc":\s*"2\.0",\s*"id":\s*(\d{1,15})\}\s*$`)
)

// tooLong is the answer in place of one that is too long: only its call fails. Where the call is not known, the session
// ends.
func (p *process) tooLong(l line) (jsonrpc.Message, error) {
	err := fmt.Errorf("%w: more than %d bytes", ErrFlood, p.server.message)
	number := idFirst.FindSubmatch(l.text)
	if number == nil {
		number = idLast.FindSubmatch(l.end)
	}
	if number == nil {
		return nil, p.fault(err)
	}
	n, _ := json.Number(number[1]).Float64() // digits
	id, bad := jsonrpc.MakeID(n)
	if bad != nil {
		return nil, p.fault(err)
	}
	p.received.Add(1)
	return &jsonrpc.Response{ID: id, Error: err}, nil
}

// line is a line of a process: all of it, or the beginning and the end of one that is too long.
type line struct{ text, end []byte }

func (l line) long() bool { return l.end != nil }

// ends is how much is kept of the beginning and of the end of a line that is too long.
const ends = 256

// readLine reads a line of at most so many bytes, or the ends of one that is longer. Errors are of the kinds ErrExited and,
// of a line without an end, ErrFlood.
func readLine(r *bufio.Reader, most int) (line, error) {
	var l line
	for n := 0; ; {
		part, err := r.ReadSlice('\n')
		n += len(part)
		switch {
		case l.long():
			l.end = append(l.end, part[max(0, len(part)-ends):]...)
			l.end = append(l.end[:0], l.end[max(0, len(l.end)-ends):]...)
		case n > most:
			l = line{text: bytes.Clone(l.text[:min(len(l.text), ends)]), end: bytes.Clone(part[max(0, len(part)-ends):])}
		default:
			l.text = append(l.text, part...)
		}
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line{}, fmt.Errorf("%w: %w", ErrExited, err)
		case n > maxSkipped:
			return line{}, fmt.Errorf("%w: more than %d bytes without an end", ErrFlood, maxSkipped)
		}
	}
}

// Write sends a message. A server that does not read it while the context lasts is killed: half of a message may have
// been written.
func (p *process) Write(ctx context.Context, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	select {
	case <-p.writing:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		err := fmt.Errorf("%w: it was asked after its end", ErrExited)
		noted(ctx).set(err, true)
		return err
	}
	defer func() { p.writing <- struct{}{} }()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	late := context.AfterFunc(ctx, p.End)
	defer late()
	if n, err := p.In.Write(append(text, '\n')); err != nil {
		err = fmt.Errorf("%w: %w", ErrExited, err)
		noted(ctx).set(err, n == 0)
		return err
	}
	return nil
}

// Close ends the process: its standard input is closed, upon which it should end; what has not ended then is killed.
// A process that did wrong is killed at once.
func (p *process) Close() error {
	p.once.Do(func() {
		p.closing.Store(true)
		_ = p.In.Close() // says that it is closed
		waited := make(chan struct{})
		go func() {
			_ = p.Command.Wait() // its status is in ProcessState
			close(waited)
		}()
		if broke := p.broken(); broke == nil || errors.Is(broke, ErrExited) {
			select {
			case <-waited:
			case <-time.After(grace):
			}
		}
		p.Log.Close()
		p.End()
		<-waited
		close(p.over)
	})
	<-p.over
	return nil
}

// kill ends the process at once.
func (p *process) kill(why error) {
	_ = p.fault(why)
	p.End()
	_ = p.Close() // has no error
}

// ending says how a process ended that was waited for, and what it wrote last.
func (p *process) ending() string {
	var how []string
	if text := p.Ending(); text != "" {
		how = append(how, text)
	}
	if said := p.Log.Text(); said != "" {
		how = append(how, "it last wrote: "+said)
	} else {
		how = append(how, "it wrote nothing to standard error")
	}
	return strings.Join(how, "; ")
}
