package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/infra/keeper"
)

const (
	// maxTries is how many sessions a call is tried in, where no server can have received it.
	maxTries = 3
	// busyWait is how long the first pause after "busy" is; each later one is twice as long.
	busyWait = 20 * time.Millisecond
)

// Client asks one server. Several goroutines may use it.
type Client struct {
	server Server
	web    *web // nil for a process
	closed context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	places  map[string]*place // by the key of a session
	over    bool
	running sync.WaitGroup // goroutines that open or close sessions
}

// place is where the session with a key is. Its fields belong to the client's lock.
type place struct {
	session *session // nil before the first, and after one that ended
	opening *opening // nil unless one is being opened
	sent    int      // calls in the session
	users   int      // calls under way
	idle    *time.Timer
}

// opening is a session that is being opened, for all that wait for it.
type opening struct {
	done    chan struct{}
	session *session
	err     error
}

// Open checks how the server is reached. Sessions are opened when calls need them.
func Open(server Server) (*Client, error) {
	c := &Client{server: server.complete(), places: map[string]*place{}}
	switch {
	case len(server.Command) == 0 == (server.URL == ""):
		return nil, fmt.Errorf("MCP server %s: it needs a command or an address, and not both", server.Name)
	case server.URL != "":
		if err := server.checkURL(); err != nil {
			return nil, err
		}
		c.web = newWeb(c.server)
	default:
		if _, err := exec.LookPath(server.Command[0]); err != nil {
			return nil, fmt.Errorf("MCP server %s: its command %q: %w; it must be a program that can be executed (chmod +x), with its path",
				server.Name, server.Command[0], err)
		}
		// The process runs as this process's user: what this one knows, keys above all, must not be its to read.
		if err := keeper.Hide(); err != nil {
			return nil, err
		}
	}
	c.closed, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Call calls a tool with arguments, which are a JSON object. key is "" for the session that all share; any other is that
// of a session of its own, which the first call opens, and whose calls have to come one after the other if their order
// means something. A session with a key that ended by itself is not opened again: calls are ErrExited until End.
//
// A call that may have reached the server is sent once. Errors are of the kinds of this package.
func (c *Client) Call(ctx context.Context, key, tool string, arguments json.RawMessage) (Answer, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if !json.Valid(arguments) || bytes.TrimSpace(arguments)[0] != '{' {
		return Answer{Text: "The arguments are no JSON object.", Failed: true}, nil
	}
	var a Answer
	err := c.with(ctx, key, func(ctx context.Context, s *session) (err error) {
		c.count(key, 1)
		a, err = s.call(ctx, tool, arguments)
		if errors.Is(err, errUnsent) || errors.Is(err, ErrBusy) {
			c.count(key, -1)
		}
		return err
	})
	return a, err
}

// count adds to the calls that the session with a key has got.
func (c *Client) count(key string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.places[key]; p != nil {
		p.sent += n
	}
}

// Sent is how many calls the session with a key has got, those under way included; 0 if there is none, or if it has ended.
// Who recorded another number of calls has to End the session and to play them again: this one knows something else.
func (c *Client) Sent(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.places[key]
	if p == nil || p.session == nil || !p.session.alive() {
		return 0
	}
	return p.sent
}

// End ends the session with a key, and its process. Calls under way in it fail. Without such a session it does nothing.
func (c *Client) End(key string) {
	c.mu.Lock()
	p := c.places[key]
	delete(c.places, key)
	var s *session
	if p != nil {
		s = p.session
		if p.idle != nil {
			p.idle.Stop()
		}
	}
	c.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// Close ends all sessions. Calls under way end with an error.
func (c *Client) Close() {
	c.mu.Lock()
	c.over = true
	var keys []string
	for key := range c.places {
		keys = append(keys, key)
	}
	c.mu.Unlock()
	c.stop()
	var ends sync.WaitGroup
	for _, key := range keys {
		ends.Go(func() { c.End(key) })
	}
	ends.Wait()
	c.running.Wait()
	if c.web != nil {
		c.web.under.CloseIdleConnections()
	}
}

// with does something in the session with a key, and again in a new one if no server can have received it. A busy server
// is asked again until the time is up.
func (c *Client) with(ctx context.Context, key string, do func(context.Context, *session) error) error {
	ctx, stop := context.WithTimeout(ctx, c.server.Timeout)
	defer stop()
	defer context.AfterFunc(c.closed, stop)()
	leave, err := c.enter(key)
	if err != nil {
		return err
	}
	defer leave()
	wait := busyWait
	for tries := 1; ; {
		s, err := c.session(ctx, key)
		if err != nil {
			return err
		}
		err = do(ctx, s)
		switch {
		case errors.Is(err, errUnsent) && tries < maxTries && ctx.Err() == nil:
			tries++
		case errors.Is(err, ErrBusy):
			select {
			case <-time.After(wait):
				wait *= 2
			case <-ctx.Done():
				return err
			}
		default:
			return err
		}
	}
}

// enter says that the session with a key is used until leave, so that it does not end for idleness.
func (c *Client) enter(key string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.places[key]
	if p == nil {
		if key != "" && c.keys() >= c.server.Sessions {
			return nil, fmt.Errorf("MCP server %s: %w: %d sessions are open, as many as may be", c.server.Name, ErrBusy, c.server.Sessions)
		}
		if c.over {
			return nil, c.isClosed()
		}
		p = &place{}
		c.places[key] = p
	}
	p.users++
	if p.idle != nil {
		p.idle.Stop()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.users--; p.users == 0 && key != "" && c.places[key] == p {
			p.idle = time.AfterFunc(c.server.Idle, func() { c.forget(key, p) })
		}
	}, nil
}

// keys is how many places have a key.
func (c *Client) keys() int {
	n := len(c.places)
	if c.places[""] != nil {
		n--
	}
	return n
}

// forget ends a session that has been idle.
func (c *Client) forget(key string, p *place) {
	c.mu.Lock()
	if c.over || p.users > 0 || c.places[key] != p {
		c.mu.Unlock()
		return
	}
	c.running.Add(1) // Close waits for it: it has not begun to wait yet
	c.mu.Unlock()
	defer c.running.Done()
	c.End(key)
}

func (c *Client) isClosed() error {
	return fmt.Errorf("MCP server %s: %w: this client was closed", c.server.Name, ErrExited)
}

// session is the session with a key. It is opened once for all that wait for it.
func (c *Client) session(ctx context.Context, key string) (*session, error) {
	c.mu.Lock()
	p := c.places[key]
	switch {
	case c.over:
		c.mu.Unlock()
		return nil, c.isClosed()
	case p == nil: // End came between
		c.mu.Unlock()
		return nil, fmt.Errorf("MCP server %s: %w: the session was ended", c.server.Name, ErrExited)
	case p.session != nil && p.session.alive():
		defer c.mu.Unlock()
		return p.session, nil
	case p.session != nil && key != "" && p.sent > 0:
		c.mu.Unlock()
		return nil, fmt.Errorf("MCP server %s: %w: the session ended after %d calls, and what the server knew with it", c.server.Name, ErrExited, p.sent)
	}
	o := p.opening
	if o == nil {
		o = &opening{done: make(chan struct{})}
		p.opening = o
		before := p.session
		p.session = nil
		c.running.Go(func() { c.open(key, p, o, before) })
	}
	c.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("MCP server %s: %w: its session was not open yet: %w", c.server.Name, ErrTimeout, ctx.Err())
	}
}

// open opens a session after what is left of the one before is gone.
func (c *Client) open(key string, p *place, o *opening, before *session) {
	defer close(o.done)
	if before != nil {
		before.close()
	}
	ctx, stop := context.WithTimeout(c.closed, c.server.Start)
	defer stop()
	o.session, o.err = openSession(ctx, c.server, c.web)
	c.mu.Lock()
	p.opening = nil
	kept := c.places[key] == p && !c.over
	if kept {
		p.session = o.session // nil if it failed
	}
	c.mu.Unlock()
	if !kept && o.session != nil {
		o.session.close()
		o.session, o.err = nil, fmt.Errorf("MCP server %s: %w: the session was ended", c.server.Name, ErrExited)
	}
}
