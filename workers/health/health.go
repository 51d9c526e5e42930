// Package health answers the probes of whatever starts workers: whether a process lives, and whether it is ready
// for work, with what keeps it from that.
//
// Probes change nothing and cost little: the server is asked at most every few seconds, however many ask.
package health

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

// Check is what a probe says about one part of a worker.
type Check struct {
	// Name is the part's: "worker", "temporal", "device" or "queue NAME".
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Reason says what was found.
	Reason string `json:"reason"`
}

// Report is the answer of a probe for readiness.
type Report struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// Part answers for one part of the worker, or for several.
type Part func(ctx context.Context) []Check

// State is what is known of a worker process. It begins as one that does not serve yet.
type State struct {
	mu     sync.Mutex
	ready  bool
	reason string
	parts  []Part
}

// New is the state of a process that starts.
func New() *State { return &State{reason: "it starts"} }

// Watch adds parts that have to be ready.
func (s *State) Watch(parts ...Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, parts...)
}

// Serves says that all of the process's workers were started.
func (s *State) Serves() { s.set(true, "it serves") }

// Stops says that the process takes no new work any more.
func (s *State) Stops() { s.set(false, "it stops: it takes no new work") }

func (s *State) set(ready bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.reason = ready, reason
}

// Report asks all parts.
func (s *State) Report(ctx context.Context) Report {
	s.mu.Lock()
	own := Check{Name: "worker", Ready: s.ready, Reason: s.reason}
	parts := s.parts[:len(s.parts):len(s.parts)]
	s.mu.Unlock()
	out := Report{Ready: own.Ready, Checks: []Check{own}}
	for _, part := range parts {
		for _, c := range part(ctx) {
			out.Ready = out.Ready && c.Ready
			out.Checks = append(out.Checks, c)
		}
	}
	return out
}

// Handle answers GET /healthz and GET /readyz. The first says only that the process answers; the second is 503 unless
// every check is ready.
func (s *State) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, map[string]bool{"alive": true}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report := s.Report(r.Context())
		status := http.StatusOK
		if !report.Ready {
			status = http.StatusServiceUnavailable
		}
		write(w, status, report)
	})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(answer) // who asked is gone
}
