package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// serve serves the stand-in by HTTP behind before, which may answer in its place.
func serve(t *testing.T, o *sdk.StreamableHTTPOptions, before func(http.ResponseWriter, *http.Request, []byte) (done bool)) *httptest.Server {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return standInServer() }, o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || before != nil && before(w, r, body) {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestHTTP(t *testing.T) {
	for name, o := range map[string]*sdk.StreamableHTTPOptions{"events": nil, "json": {JSONResponse: true}, "without sessions": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			var wrong atomic.Int64
			server := serve(t, o, func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
				if first := strings.Contains(string(body), `"initialize"`); (r.Header.Get("Mcp-Protocol-Version") == earlier) == first {
					wrong.Add(1)
				}
				if r.Header.Get("Authorization") != "Bearer key" || r.URL.RawQuery != "token=hidden" {
					wrong.Add(1)
				}
				return false
			})
			c := open(t, Server{URL: server.URL + "/mcp?token=hidden", message: least, Headers: http.Header{"authorization": {"Bearer key"}}})
			require.Equal(t, "hello", said(t, c, "echo", `{"text":"hello"}`))
			var calls sync.WaitGroup
			for i := range 8 {
				calls.Go(func() {
					a, err := c.Call(context.Background(), "", "slow", fmt.Appendf(nil, `{"text":"%d","number":5}`, i))
					if err != nil || a.Text != fmt.Sprint(i) {
						t.Errorf("%d: %v %v", i, a, err)
					}
				})
			}
			calls.Wait()
			d, err := c.Describe(t.Context(), []string{"echo"})
			require.NoError(t, err)
			require.Equal(t, "stand-in 1.2", d.Server)
			require.Equal(t, `{"a":null,"b":[1,"<|>",12345678901234567890,1.0]}`, said(t, c, "structured", `{}`))
			a, err := call(t, c, "fail", `{}`)
			require.NoError(t, err)
			require.True(t, a.Failed)

			// A flood, and a time-out, fail their own calls; the session stays.
			said(t, c, "remember", `{"text":"1"}`)
			_, err = call(t, c, "flood", fmt.Sprintf(`{"number":%d}`, least))
			require.ErrorIs(t, err, ErrFlood)
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer stop()
			_, err = c.Call(ctx, "", "slow", json.RawMessage(`{"number":100}`))
			require.ErrorIs(t, err, ErrTimeout)
			if o == nil || !o.Stateless {
				require.Equal(t, "1,2", said(t, c, "remember", `{"text":"2"}`))
				_, err = c.Call(t.Context(), "a", "remember", json.RawMessage(`{"text":"3"}`))
				require.NoError(t, err)
				require.Equal(t, 1, c.Sent("a"))
			}
			require.Zero(t, wrong.Load(), "requests without the headers")
		})
	}
}

// What a server asks over HTTP is refused as over standard output.
func TestHTTPAsks(t *testing.T) {
	c := open(t, Server{URL: serve(t, nil, nil).URL})
	require.Contains(t, said(t, c, "sample", `{}`), "not support")
}

// A session that the server has forgotten is begun again, once a call, and the call is sent again.
func TestSessionLost(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter){
		"404":           func(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) },
		"404 with JSON": func(w http.ResponseWriter) { jsonError(w, http.StatusNotFound, "Session not found") },
		"400, as others": func(w http.ResponseWriter) {
			jsonError(w, http.StatusBadRequest, "Bad Request: No valid session ID provided")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lost, always atomic.Bool
			var begun atomic.Int64
			server := serve(t, nil, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				if strings.Contains(string(body), `"initialize"`) {
					begun.Add(1)
					return false
				}
				if strings.Contains(string(body), "tools/call") && (lost.Swap(false) || always.Load()) {
					refuse(w)
					return true
				}
				return false
			})
			c := open(t, Server{URL: server.URL})
			said(t, c, "remember", `{"text":"1"}`)
			lost.Store(true)
			require.Equal(t, "2", said(t, c, "remember", `{"text":"2"}`))
			require.EqualValues(t, 2, begun.Load())
			always.Store(true)
			_, err := call(t, c, "echo", `{}`)
			require.ErrorIs(t, err, ErrExited)
			require.EqualValues(t, 2+maxTries-1, begun.Load(), "a bounded number of sessions")
		})
	}
}

func jsonError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":%q},"id":null}`, text)
}

// What a server answers that does not work is an error by kind, and what its address hides is not shown.
func TestHTTPFaults(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was followed to, with the header %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	initialize := func(body []byte) bool { return strings.Contains(string(body), `"initialize"`) }
	for name, test := range map[string]struct {
		before func(http.ResponseWriter, *http.Request, []byte) bool
		kind   error
		text   string
	}{
		"another host": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return true
		}, ErrAnswer, "which is not followed"},
		"a circle": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
			return true
		}, ErrAnswer, "more than 3 times"},
		"no key":  {status401, ErrAnswer, "401 Unauthorized; a header"},
		"no MCP":  {func(w http.ResponseWriter, r *http.Request, _ []byte) bool { http.NotFound(w, r); return true }, ErrAnswer, "404"},
		"a page":  {page("text/html", "<html>"), ErrAnswer, "text/html"},
		"no JSON": {page("application/json", "<html>"), ErrAnswer, "want a message of JSON-RPC"},
		"busy": {func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if !initialize(body) {
				http.Error(w, "later", http.StatusTooManyRequests)
			}
			return !initialize(body)
		}, ErrBusy, "429"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if strings.Contains(string(body), "tools/call") {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
			}
			return strings.Contains(string(body), "tools/call")
		}, ErrExited, "terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, nil, test.before)
			c := open(t, Server{URL: server.URL + "?key=hidden", Timeout: 2 * time.Second, Headers: http.Header{"Authorization": {"secret"}}})
			if name == "busy" {
				c.server.Timeout = 100 * time.Millisecond
			}
			_, err := call(t, c, "echo", `{}`)
			require.ErrorIs(t, err, test.kind)
			require.ErrorContains(t, err, test.text)
			require.NotContains(t, err.Error(), "hidden")
			require.NotContains(t, err.Error(), "secret")
		})
	}
	server := serve(t, nil, nil)
	c := open(t, Server{URL: server.URL + "?key=hidden"})
	said(t, c, "echo", `{}`)
	server.Close()
	_, err := call(t, c, "echo", `{}`)
	require.ErrorIs(t, err, ErrExited)
	require.NotContains(t, err.Error(), "hidden")
	require.False(t, errors.Is(err, errUnsent))
}

func status401(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
	http.Error(w, "who are you?", http.StatusUnauthorized)
	return true
}

// page answers with a page.
func page(kind, text string) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text) // a client that does not read it has its error
		return true
	}
}
