package storetest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Call is a kind of request to an S3 server.
type Call string

// The kinds of requests that a store makes.
const (
	Get      Call = "GET"
	Head     Call = "HEAD"
	Put      Call = "PUT" // conditional or not
	Create   Call = "create upload"
	PutPart  Call = "put part"
	Complete Call = "complete upload"
	Abort    Call = "abort upload"
	List     Call = "LIST"
	Uploads  Call = "list uploads"
	Delete   Call = "DELETE"
)

// Calls are all kinds of requests.
var Calls = []Call{Get, Head, Put, Create, PutPart, Complete, Abort, List, Uploads, Delete}

// Request is a request as a [Proxy] sees it.
type Request struct {
	Call Call
	// Key is the object's, with the prefix; a list's is its prefix.
	Key string
	// Nth counts the requests of this call and key, from 1.
	Nth int
}

// Answer is what a proxy does in place of passing a request on.
type Answer struct {
	// Status is the answer's.
	Status int
	// Code is S3's code in the answer's body; "" is the page of a server that is not S3's.
	Code string
	// Done says that the request is passed on all the same, and its answer lost on the way.
	Done bool
	// Flip passes the request on and changes a bit in the middle of the answer's body.
	Flip bool
	// Hang takes the request and answers nothing, as a server that is stopped.
	Hang bool
}

// Proxy stands before an S3 server and answers some requests in its place, as proxies, gateways and overloaded servers do.
type Proxy struct {
	// Endpoint is "http://127.0.0.1:PORT".
	Endpoint string

	mu     sync.Mutex
	counts map[string]int
	given  []Request
	rule   func(Request) *Answer
}

// StartProxy starts a proxy before the server at an endpoint, "http://HOST:PORT", and ends it with the test. rule may be nil,
// and answers nil for a request that is passed on.
func StartProxy(t testing.TB, endpoint string, rule func(Request) *Answer) *Proxy {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{counts: map[string]int{}, rule: rule}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			panic(http.ErrAbortHandler) // a server that is away, not one that answers
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := p.ask(requestOf(r))
		switch {
		case answer == nil:
			pass.ServeHTTP(w, r)
			return
		case answer.Flip:
			flip(w, r, pass)
			return
		case answer.Hang:
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		case answer.Done:
			pass.ServeHTTP(httptest.NewRecorder(), r)
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
		answer.write(w, r)
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	p.Endpoint = server.URL
	return p
}

// Rule replaces the rule, and forgets what was asked.
func (p *Proxy) Rule(rule func(Request) *Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.counts, p.given = rule, map[string]int{}, nil
}

// Given are the requests that the proxy has answered itself since the rule was set: the witness that its fault happened.
func (p *Proxy) Given() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.given...)
}

func (p *Proxy) ask(r Request) *Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := string(r.Call) + " " + r.Key
	p.counts[name]++
	r.Nth = p.counts[name]
	if p.rule == nil {
		return nil
	}
	answer := p.rule(r)
	if answer != nil {
		p.given = append(p.given, r)
	}
	return answer
}

// flip passes a request on and changes a bit of the answer.
func flip(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	kept := httptest.NewRecorder()
	pass.ServeHTTP(kept, r)
	maps.Copy(w.Header(), kept.Header())
	w.WriteHeader(kept.Code)
	body := kept.Body.Bytes()
	if len(body) > 0 {
		body[len(body)/2] ^= 1
	}
	_, _ = w.Write(body)
}

// requestOf says what a request is. The bucket is the first part of the path.
func requestOf(r *http.Request) Request {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	out := Request{Key: key}
	switch has := query.Has; {
	case key == "" && has("uploads"):
		out.Call, out.Key = Uploads, query.Get("prefix")
	case key == "":
		out.Call, out.Key = List, query.Get("prefix")
	case r.Method == http.MethodPost && has("uploads"):
		out.Call = Create
	case r.Method == http.MethodPost:
		out.Call = Complete
	case r.Method == http.MethodPut && has("partNumber"):
		out.Call = PutPart
	case r.Method == http.MethodDelete && has("uploadId"):
		out.Call = Abort
	default:
		out.Call = Call(r.Method)
	}
	return out
}

func (a *Answer) write(w http.ResponseWriter, r *http.Request) {
	if a.Status == 0 {
		panic(http.ErrAbortHandler) // the answer is lost
	}
	body := "<html><body>No.</body></html>"
	w.Header().Set("Content-Type", "text/html")
	if a.Code != "" {
		body = fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>As the proxy says.</Message></Error>`, a.Code)
		w.Header().Set("Content-Type", "application/xml")
	}
	if a.Status == http.StatusMovedPermanently {
		w.Header().Set("Location", "http://127.0.0.1:1"+r.URL.Path)
	}
	w.WriteHeader(a.Status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body)
	}
}

// CodeOf is the code that S3 has for a status.
func CodeOf(status int) string {
	return map[int]string{
		301: "PermanentRedirect", 400: "InvalidRequest", 401: "Unauthorized", 403: "AccessDenied", 404: "NoSuchBucket",
		405: "MethodNotAllowed", 411: "MissingContentLength", 412: "PreconditionFailed", 416: "InvalidRange", 501: "NotImplemented",
		503: "SlowDown", 505: "HttpVersionNotSupported",
	}[status]
}

// Statuses are the answers that proxies, gateways and servers give in place of what was asked for.
var Statuses = []int{301, 400, 401, 403, 404, 405, 411, 412, 416, 501, 503, 505}
