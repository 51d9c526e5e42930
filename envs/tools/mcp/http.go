package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-rl/reprise/infra/strict"
)

// maxRedirects is how often a server may send a request to another address of its own.
const maxRedirects = 3

const (
	sessionHeader = "Mcp-Session-Id"       // in requests of a session to which the server has given a name
	versionHeader = "Mcp-Protocol-Version" // in all requests but the first
)

// web reaches a server by HTTP: its sessions add the headers, bound what is read, and tell calls what went wrong.
type web struct {
	server Server
	under  *http.Transport
}

func newWeb(s Server) *web {
	under := http.DefaultTransport.(*http.Transport).Clone()
	under.MaxIdleConnsPerHost = s.AtOnce
	return &web{server: s, under: under}
}

// webSession is a server's session by HTTP.
type webSession struct {
	*web
	version atomic.Value // of the protocol, a string; nil before it is known
}

// Connect begins the connection. The stream on which a server writes unasked is not opened: nothing that it says there is
// heeded.
func (w *webSession) Connect(ctx context.Context) (sdk.Connection, error) {
	transport := &sdk.StreamableClientTransport{
		Endpoint: w.server.URL, HTTPClient: &http.Client{Transport: w, CheckRedirect: sameHost},
		DisableStandaloneSSE: true, MaxRetries: 2, MaxEventSize: -1, // bodies are bounded here
	}
	connection, err := transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &screened{Connection: connection, version: &w.version}
	s.ended, s.end = context.WithCancel(context.Background())
	return s, nil
}

// sameHost refuses to follow a redirect to another scheme, host or port: the request carries secrets.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return fmt.Errorf("%w: it redirects from %s://%s to %s://%s, which is not followed; name that address if it is right",
			ErrAnswer, first.Scheme, first.Host, next.URL.Scheme, next.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: it redirects more than %d times", ErrAnswer, maxRedirects)
	}
	return nil
}

// RoundTrip sends a request and tells the call that it belongs to of a fault.
func (w *webSession) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range w.server.Headers {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if version, ok := w.version.Load().(string); ok && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, version) // the SDK sets it on a connection of its own only
	}
	n := noted(r.Context())
	response, err := w.under.RoundTrip(r)
	if err != nil {
		if r.Context().Err() == nil {
			n.set(fmt.Errorf("%w: %w", ErrExited, err), false)
		}
		return nil, err
	}
	if fault, unsent := status(r, response); fault != nil {
		n.set(fault, unsent)
	}
	if response.StatusCode == http.StatusOK && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return w.whole(r, response)
	}
	response.Body = &bounded{ReadCloser: response.Body, most: w.server.message, note: n}
	return response, nil
}

// whole reads a response before the SDK gets it: one that fails then fails its call alone, and not the session.
func (w *web) whole(r *http.Request, response *http.Response) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(w.server.message)+1))
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrExited, err)
	case len(body) > w.server.message:
		err = fmt.Errorf("%w: more than %d bytes", ErrFlood, w.server.message)
	case len(bytes.TrimSpace(body)) > 0: // some servers answer a notification so, with nothing
		if _, bad := decode(body); bad != nil {
			err = fmt.Errorf("%w: it answers %s, want a message of JSON-RPC: %w", ErrAnswer, strict.Quote(string(body)), bad)
		}
	}
	if err != nil {
		noted(r.Context()).set(err, false)
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// status says what is wrong with a response's status, and whether the server has refused the call before it ran.
func status(r *http.Request, response *http.Response) (fault error, unsent bool) {
	code := response.StatusCode
	switch {
	case code < http.StatusBadRequest, r.Method != http.MethodPost:
		return nil, false
	case r.Header.Get(sessionHeader) != "" && (code == http.StatusNotFound || code == http.StatusBadRequest && namesSession(response)):
		return fmt.Errorf("%w: it does not know the session any more (%s)", ErrExited, response.Status), true
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: it answers %s", ErrBusy, response.Status), false
	case code == http.StatusBadGateway || code == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: it answers %s", ErrExited, response.Status), false
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w: it answers %s; a header gives it what it asks for", ErrAnswer, response.Status), false
	}
	return fmt.Errorf("%w: it answers %s", ErrAnswer, response.Status), false
}

// namesSession reports whether a refusal speaks of the session: servers after the TypeScript SDK's examples answer 400,
// and not 404, where they do not know it. The body can be read again.
func namesSession(response *http.Response) bool {
	beginning, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // what came of it
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(beginning), response.Body), response.Body}
	return bytes.Contains(bytes.ToLower(beginning), []byte("session id"))
}

// bounded is a body of at most so many bytes. One that is longer ends, and its call with it.
type bounded struct {
	io.ReadCloser
	most int
	read int
	note *note
}

// Read reads up to the bound.
func (b *bounded) Read(p []byte) (int, error) {
	if b.read >= b.most {
		b.note.end(fmt.Errorf("%w: more than %d bytes", ErrFlood, b.most))
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.most-b.read)])
	b.read += n
	return n, err
}
