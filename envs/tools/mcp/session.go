package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-rl/reprise/infra/strict"
)

// earlier is the version of the protocol with which a session is begun. Every server of today speaks it or an earlier one,
// and it has sessions, which later ones have not; some servers end if they are asked for a later one first.
const earlier = "2025-11-25"

// session is a session with a server, in which calls run beside each other.
type session struct {
	server  Server
	client  *sdk.ClientSession
	process *process      // nil over HTTP
	done    chan struct{} // closed when the connection has ended
	lost    atomic.Bool   // nothing can be asked in it any more
	atOnce  chan struct{} // an element for each call under way
}

// errUnsent is a call that no server has received, beside its kind: it can be sent again.
var errUnsent = errors.New("it was not sent")

// openSession begins a session: with the version that all speak, or with the SDK's newest if the server refuses that.
func openSession(ctx context.Context, server Server, w *web) (*session, error) {
	s, err := openAs(ctx, server, w, earlier)
	if refusedBy(err) != nil {
		s, err = openAs(ctx, server, w, "")
	}
	return s, err
}

// openAs begins a session with a version of the protocol.
func openAs(ctx context.Context, server Server, w *web, version string) (*session, error) {
	s := &session{server: server, done: make(chan struct{}), atOnce: make(chan struct{}, server.AtOnce)}
	var transport sdk.Transport
	if w != nil {
		transport = &webSession{web: w}
	} else {
		var err error
		if s.process, err = startProcess(server); err != nil {
			return nil, s.wrong(err)
		}
		transport = s.process
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "reprise", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		s.client, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	if err != nil {
		if s.process != nil {
			s.process.kill(err)
		}
		return nil, err
	}
	go func() {
		_ = s.client.Wait() // the calls say why
		close(s.done)
	}()
	return s, nil
}

// name is the name and the version that the server tells.
func (s *session) name() string {
	info := s.client.InitializeResult().ServerInfo
	if info == nil {
		return ""
	}
	return strict.Shorten(strings.TrimSpace(info.Name + " " + info.Version))
}

// alive reports whether something can be asked in the session.
func (s *session) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return !s.lost.Load() && (s.process == nil || s.process.broken() == nil)
	}
}

// close ends the session and its process.
func (s *session) close() {
	s.lost.Store(true)
	if s.process != nil {
		_ = s.process.Close() // has no error
	}
	_ = s.client.Close() // a server that is gone does not hear it
	<-s.done
}

// call calls a tool.
func (s *session) call(ctx context.Context, tool string, arguments json.RawMessage) (Answer, error) {
	select {
	case s.atOnce <- struct{}{}:
		defer func() { <-s.atOnce }()
	case <-ctx.Done():
		return Answer{}, s.wrong(fmt.Errorf("%w: %d calls were under way", ErrTimeout, s.server.AtOnce))
	}
	var result *sdk.CallToolResult
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		result, err = s.client.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
		return err
	})
	if err == nil {
		a, err := answerOf(result)
		if err != nil {
			return Answer{}, s.wrong(err)
		}
		return a, nil
	}
	if e := refusedBy(err); e != nil {
		a, err := refusal(e)
		if err != nil {
			return Answer{}, s.wrong(err)
		}
		return a, nil
	}
	return Answer{}, err
}

// ask makes one request, and says by kind what went wrong. An error of the protocol that the server answers is also a
// *jsonrpc.Error.
func (s *session) ask(ctx context.Context, request func(context.Context) error) error {
	var before int64
	if s.process != nil {
		before = s.process.received.Load()
	}
	inner, stop := context.WithCancel(ctx)
	defer stop() // a response that goes on is not read any more
	n := &note{stop: stop}
	err := safely(func() error { return request(context.WithValue(inner, noteKey{}, n)) })
	if err == nil {
		return nil
	}
	fault, unsent := n.get()
	refused := refusedBy(err)
	switch {
	case unsent:
		s.lost.Store(true)
		return fmt.Errorf("%w, %w", s.wrong(fault), errUnsent)
	case refused != nil:
		return fmt.Errorf("%w: %w", s.wrong(ErrAnswer), refused)
	case errors.Is(fault, ErrFlood), errors.Is(err, ErrFlood):
		return s.wrong(fmt.Errorf("%w: more than %d bytes", ErrFlood, s.server.message))
	case ctx.Err() != nil:
		return s.late(ctx, before)
	case s.process != nil:
		return s.died(err)
	case fault != nil:
		// Busy servers and broken connections do not end a session of HTTP.
		s.lost.Store(errors.Is(fault, ErrAnswer))
		return s.wrong(fault)
	}
	s.lost.Store(true)
	switch {
	case errors.Is(err, sdk.ErrConnectionClosed):
		return fmt.Errorf("%w, %w", s.wrong(fmt.Errorf("%w: the session has ended", ErrExited)), errUnsent)
	case errors.Is(err, ErrAnswer): // a redirect, or what cannot be read
		return s.wrong(err)
	case errors.Is(err, sdk.ErrSessionMissing), strings.Contains(err.Error(), "terminated without response"):
		return s.wrong(fmt.Errorf("%w: %w", ErrExited, err))
	}
	return s.wrong(fmt.Errorf("%w: %w", ErrAnswer, err))
}

// safely makes a panic an error: the SDK's readers of results have some, which a server must not be able to cause here.
func safely(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: it cannot be read: %v", ErrAnswer, r)
		}
	}()
	return do()
}

// notRefused is the text of the error with which the SDK marks what its transport could not send: it has the type of a
// server's error.
const notRefused = "rejected by transport"

// refusedBy is the error of the protocol that a server has answered; nil if err is another.
func refusedBy(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Message == notRefused {
		return nil
	}
	return e
}

// late is the error of a request that was given up. A process that has not said anything since is killed: it hangs, or it
// works on what nobody waits for.
func (s *session) late(ctx context.Context, before int64) error {
	err := fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	if s.process != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && s.process.received.Load() == before {
		s.process.kill(fmt.Errorf("%w: it hung", ErrExited))
		err = fmt.Errorf("%w; it said nothing meanwhile and was killed; %s", err, s.process.ending())
	}
	return s.wrong(err)
}

// died is the error of a request to a process which failed, where the process did not answer it.
func (s *session) died(err error) error {
	broke := s.process.broken()
	switch {
	case broke != nil:
		_ = s.process.Close() // has no error; it is waited for
		why := s.wrong(fmt.Errorf("%w; %s", broke, s.process.ending()))
		if errors.Is(err, sdk.ErrConnectionClosed) {
			why = fmt.Errorf("%w, %w", why, errUnsent)
		}
		return why
	case errors.Is(err, sdk.ErrConnectionClosed): // it was closed here
		return s.wrong(fmt.Errorf("%w: the session was ended", ErrExited))
	case errors.Is(err, ErrExited), errors.Is(err, ErrAnswer):
		return s.wrong(err)
	}
	return s.wrong(fmt.Errorf("%w: %w", ErrAnswer, err))
}

// wrong names the server in an error, and hides what its address may hold.
func (s *session) wrong(err error) error {
	return &failure{text: s.server.shown(fmt.Sprintf("MCP server %s: %v", s.server.Name, err)), err: err}
}

// failure is an error with a text of its own.
type failure struct {
	text string
	err  error
}

// Error is the text.
func (f *failure) Error() string { return f.text }

// Unwrap is what failed.
func (f *failure) Unwrap() error { return f.err }
