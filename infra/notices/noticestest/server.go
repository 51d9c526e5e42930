// Package noticestest stands in for the metadata servers of AWS, GCP and Azure in tests: it answers as each cloud
// documents, with the documents' own examples.
package noticestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-rl/reprise/infra/notices"
)

// Machine is the name of the machine that the server of Azure serves.
const Machine = "FrontEnd_IN_0"

// Server is the metadata server of one cloud.
type Server struct {
	URL   string
	cloud string

	mu      sync.Mutex
	answers map[string]string // by path; a path that is not there is not found
	token   int               // the number of the token that AWS's server takes
	asked   map[string]int    // by path
	broken  bool
}

// New starts the server of a cloud, which has no notice. It ends with the test.
func New(t testing.TB, cloud string) *Server {
	s := &Server{cloud: cloud, asked: map[string]int{}, answers: map[string]string{}}
	switch cloud {
	case notices.GCP:
		s.answers["/"] = "0.1/\ncomputeMetadata/\n"
		s.answers[gcpPreempted], s.answers[gcpMaintenance] = "FALSE", "NONE"
	case notices.Azure:
		s.answers["/metadata/instance/compute/name"] = Machine
		s.answers[azureEvents] = `{"DocumentIncarnation": 1, "Events": []}`
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// The paths whose answers are notices.
const (
	AWSAction      = "/latest/meta-data/spot/instance-action"
	AWSRebalance   = "/latest/meta-data/events/recommendations/rebalance"
	gcpPreempted   = "/computeMetadata/v1/instance/preempted"
	gcpMaintenance = "/computeMetadata/v1/instance/maintenance-event"
	azureEvents    = "/metadata/scheduledevents"
)

// Env is the environment, each NAME=VALUE, of a process that asks this server, many times a second.
func (s *Server) Env() []string {
	return []string{s.variable(), "REPRISE_NOTICES_EVERY=100ms"}
}

// Getenv reads such an environment, as os.Getenv does: it asks still more often.
func (s *Server) Getenv(name string) string {
	for _, one := range []string{s.variable(), "REPRISE_NOTICES_EVERY=10ms"} {
		if have, value, _ := strings.Cut(one, "="); have == name {
			return value
		}
	}
	return ""
}

func (s *Server) variable() string {
	switch s.cloud {
	case notices.GCP:
		return "GCE_METADATA_HOST=" + strings.TrimPrefix(s.URL, "http://")
	case notices.Azure:
		return "REPRISE_AZURE_METADATA_ENDPOINT=" + s.URL
	}
	return "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + s.URL
}

// Notify gives the notice of a spot machine: the machine ends at a time, which GCP does not say.
func (s *Server) Notify(at time.Time) {
	switch s.cloud {
	case notices.AWS:
		s.Answer(AWSAction, fmt.Sprintf(`{"action": "terminate", "time": %q}`, at.UTC().Format(time.RFC3339)))
	case notices.GCP:
		s.Answer(gcpPreempted, "TRUE")
	case notices.Azure:
		s.Schedule("Preempt", at, Machine)
	}
}

// Maintain sets what Google says of the host's maintenance.
func (s *Server) Maintain(event string) { s.Answer(gcpMaintenance, event) }

// Schedule schedules an event of Azure's for machines; one without a time has started.
func (s *Server) Schedule(kind string, at time.Time, machines ...string) {
	event := map[string]any{
		"EventId": "602d9444-d2cd-49c7-8624-8643e7171297", "EventType": kind, "ResourceType": "VirtualMachine", "Resources": machines,
		"EventStatus": "Started", "NotBefore": "", "Description": "", "EventSource": "Platform", "DurationInSeconds": -1,
	}
	if !at.IsZero() {
		event["EventStatus"], event["NotBefore"] = "Scheduled", at.UTC().Format(http.TimeFormat)
	}
	body, err := json.Marshal(map[string]any{"DocumentIncarnation": 2, "Events": []any{event}})
	if err != nil {
		panic(err) // it is text and numbers
	}
	s.Answer(azureEvents, string(body))
}

// Answer sets what the server says at a path.
func (s *Server) Answer(path, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = body
}

// Expire makes the tokens that AWS's server has given invalid.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token++
}

// Break makes the server answer 503, or answer again.
func (s *Server) Break(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// Asked is how often the server was asked for a path, with a status or another.
func (s *Server) Asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// ServeHTTP answers as the cloud's server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	if s.broken {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	switch s.cloud {
	case notices.AWS:
		s.serveAWS(w, r)
	case notices.GCP:
		w.Header().Set("Metadata-Flavor", "Google")
		if r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.serve(w, r)
	case notices.Azure:
		if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.serve(w, r)
	}
}

func (s *Server) serveAWS(w http.ResponseWriter, r *http.Request) {
	token := fmt.Sprintf("AQAEAHexample%d==", s.token)
	switch {
	case r.URL.Path == "/latest/api/token" && (r.Method != http.MethodPut || r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == ""):
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Path == "/latest/api/token":
		fmt.Fprint(w, token)
	case r.Header.Get("X-aws-ec2-metadata-token") != token:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		s.serve(w, r)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, there := s.answers[r.URL.Path]
	if !there || r.Method != http.MethodGet {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fmt.Fprint(w, body)
}
