package completions

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// ServeHTTP answers POST /v1/chat/completions and GET /v1/models to whoever has the key of an open episode.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.RLock()
	defer s.requests.RUnlock()
	if s.gone {
		panic(http.ErrAbortHandler) // its connection is closed already
	}
	out := newWriter(w)
	out.control.SetReadDeadline(time.Now().Add(bodyTime))
	method, handle := http.MethodPost, s.complete
	switch r.URL.Path {
	case "/v1/chat/completions":
	case "/v1/models":
		method, handle = http.MethodGet, s.models
	default:
		out.refuse(&Refusal{
			Status:  http.StatusNotFound,
			Message: fmt.Sprintf("%s %s is not served: POST /v1/chat/completions and GET /v1/models are", r.Method, r.URL.Path),
		})
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		out.refuse(&Refusal{
			Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s %s is not served, but %s", r.Method, r.URL.Path, method),
		})
		return
	}
	e := s.find(bearer(r))
	if e == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		out.refuse(noKey(CodeKey, "the key is that of no open episode: an agent gets its key when it is started"))
		return
	}
	handle(out, r, e)
}

// bearer is the key of a request, empty if it has none.
func bearer(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// models lists the policy.
func (s *Server) models(out *writer, _ *http.Request, _ *episode) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	out.json(http.StatusOK, encode(struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{{ID: s.options.Model, Object: "model", OwnedBy: "reprise"}}}))
}

// complete reads a call, waits for its answer and writes it.
func (s *Server) complete(out *writer, r *http.Request, e *episode) {
	request, refusal := s.read(r, e.limits)
	if refusal != nil {
		out.refuse(refusal)
		return
	}
	out.control.SetReadDeadline(time.Time{}) // from here on a client sends nothing, however long it waits
	out.stream = request.Stream
	c, refusal := s.attach(e, request)
	if refusal != nil {
		out.refuse(refusal)
		return
	}
	delivered := false
	defer func() { s.detach(c, delivered) }()
	// A client may close its connection as soon as it has read the answer: what it does after the writing says nothing.
	if !s.wait(out, r, c) || r.Context().Err() != nil {
		return
	}
	switch {
	case c.refusal != nil:
		out.refuse(c.refusal)
		delivered = !c.refusal.Passes() && !out.failed
	case request.Stream:
		out.events(c.completion.Stream(c.Address, s.options.Model, request))
		delivered = !out.failed
	default:
		out.json(http.StatusOK, c.completion.Body(c.Address, s.options.Model, request))
		delivered = !out.failed
	}
}

// wait reports whether the call is over; otherwise its client went away.
func (s *Server) wait(out *writer, r *http.Request, c *call) bool {
	tick := time.NewTicker(s.options.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return true
		case <-r.Context().Done():
			return false
		case <-tick.C:
			if out.beat(); out.failed {
				return false
			}
		}
	}
}

// read reads the body of a call.
func (s *Server) read(r *http.Request, limits Limits) (Request, *Refusal) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return Request{}, &Refusal{
			Status: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("the body is coded as %q: send it as it is", coding),
		}
	}
	if r.ContentLength > MaxBody {
		return Request{}, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Request{}, tooLarge()
	}
	if err != nil {
		return Request{}, &Refusal{Status: http.StatusRequestTimeout, Message: fmt.Sprintf("the body did not come: %v", err)}
	}
	s.parsing <- struct{}{}
	defer func() { <-s.parsing }()
	return ReadRequest(body, limits)
}
