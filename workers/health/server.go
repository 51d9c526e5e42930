package health

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// serverTime is how long the server may take to answer.
	serverTime = 3 * time.Second
	// serverEvery is how old its last answer may be before it is asked again.
	serverEvery = 5 * time.Second
)

// Server checks that the Temporal server answers ask, a cheap call. Its last answer counts for some seconds.
func Server(ask func(context.Context) error) Part {
	s := &server{ask: ask, now: time.Now}
	return s.check
}

type server struct {
	ask func(context.Context) error
	now func() time.Time

	mu   sync.Mutex // held while the server is asked: who comes meanwhile gets the same answer
	at   time.Time  // of the last answer
	last Check
}

// check asks apart from the caller's context: a probe that gives up must not make the next one fail.
func (s *server) check(ctx context.Context) []Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && s.now().Sub(s.at) < serverEvery {
		return []Check{s.last}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTime)
	defer cancel()
	begun := s.now()
	err := s.ask(ctx)
	s.at = s.now()
	s.last = Check{Name: "temporal", Ready: true, Reason: fmt.Sprintf("it answered in %s", s.at.Sub(begun).Round(time.Millisecond))}
	if err != nil {
		s.last = Check{Name: "temporal", Reason: fmt.Sprintf("it does not answer: %v", err)}
	}
	return []Check{s.last}
}
