package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a server may be silent within a request: no byte taken and none given.
	patience = 20 * time.Second
	// partPatience is added for each part that the server puts together, because some say nothing meanwhile.
	partPatience = time.Second
	// headroom is how long before its caller's deadline a silent request is given up, so that the caller can still
	// say for what it waited.
	headroom = time.Second
)

// silence is a request that was given up because the server was silent.
type silence struct {
	request string // method and path
	lasted  time.Duration
	// answered: the server began to answer, and stopped within the body.
	answered bool
}

// Error says for what the client waited.
func (s *silence) Error() string {
	if s.answered {
		return fmt.Sprintf("%s: no byte for %.3g s within the answer", s.request, s.lasted.Seconds())
	}
	return fmt.Sprintf("%s: no answer in %.3g s", s.request, s.lasted.Seconds())
}

// endKey is the key of the function that ends an operation.
type endKey struct{}

// extraKey is the key of the time that an operation's requests may be silent longer.
type extraKey struct{}

// operation is the context of one operation of the store. A request that meets silence ends the operation: the client
// library would send it again and again, each time as long.
func operation(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, endKey{}, end), func() { end(nil) }
}

// silent is the silence that has ended an operation; nil if none has.
func silent(ctx context.Context, err error) *silence {
	if s, ok := errors.AsType[*silence](err); ok {
		return s
	}
	s, _ := errors.AsType[*silence](context.Cause(ctx))
	return s
}

// attentive is a transport that gives a request up when the server is silent for too long, however long the
// request takes while bytes flow.
type attentive struct {
	to    http.RoundTripper
	limit time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (a *attentive) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	w := &watched{request: r.Method + " " + strings.TrimPrefix(r.URL.Path, "/"), of: r.Context(), patience: a.limit, end: end}
	w.timer = time.AfterFunc(time.Hour, w.giveUp)
	w.waits()
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &sentBody{ReadCloser: r.Body, of: w}
	}
	resp, err := a.to.RoundTrip(r)
	w.rests()
	if err != nil {
		w.stop()
		return nil, w.errorOf(err)
	}
	w.answered.Store(true)
	resp.Body = &givenBody{ReadCloser: resp.Body, of: w}
	return resp, nil
}

// watched is a request on the way.
type watched struct {
	request  string
	of       context.Context // the operation's
	patience time.Duration
	end      context.CancelCauseFunc // ends the request
	answered atomic.Bool

	mu      sync.Mutex
	timer   *time.Timer
	limit   time.Duration // of the wait that is on
	waiting bool
	silence *silence
}

// waits begins a wait for the server, anew if one is on.
func (w *watched) waits() {
	limit := w.patience
	if extra, ok := w.of.Value(extraKey{}).(time.Duration); ok {
		limit += extra
	}
	if deadline, ok := w.of.Deadline(); ok {
		// Little is left to what begins late: it has a fourth of the patience all the same.
		limit = min(limit, max(time.Until(deadline)-headroom, w.patience/4))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.waiting = limit, true
	w.timer.Reset(limit)
}

// rests ends a wait: it is the caller's turn, who may take as long as he likes.
func (w *watched) rests() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = false
	w.timer.Stop()
}

// stop is the end of the request.
func (w *watched) stop() {
	w.rests()
	w.end(nil)
}

// giveUp ends the request and its operation.
func (w *watched) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting {
		return
	}
	w.waiting = false
	w.silence = &silence{request: w.request, lasted: w.limit, answered: w.answered.Load()}
	if operation, ok := w.of.Value(endKey{}).(context.CancelCauseFunc); ok {
		operation(w.silence)
	}
	w.end(w.silence)
}

// errorOf is the silence in place of an error that it caused.
func (w *watched) errorOf(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.silence != nil {
		return w.silence
	}
	return err
}

// sentBody is a request's body: what the connection takes of it shows that the server takes.
type sentBody struct {
	io.ReadCloser
	of *watched
}

// Read implements [io.Reader].
func (b *sentBody) Read(p []byte) (int, error) {
	b.of.waits()
	return b.ReadCloser.Read(p)
}

// givenBody is an answer's body.
type givenBody struct {
	io.ReadCloser
	of *watched
}

// Read implements [io.Reader].
func (b *givenBody) Read(p []byte) (int, error) {
	b.of.waits()
	n, err := b.ReadCloser.Read(p)
	b.of.rests()
	return n, b.of.errorOf(err)
}

// Close implements [io.Closer].
func (b *givenBody) Close() error {
	defer b.of.stop()
	return b.ReadCloser.Close()
}
