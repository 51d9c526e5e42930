package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Call sends the input of a call to a server and returns its output. Transports implement
// it. Errors wrap one of this package's kinds.
type Call func(ctx context.Context, name string, input []byte) ([]byte, error)

// Way gives the calls to a server that are made for one turn, which has a name, or for a
// description, whose turn is "". timeout is how long an answer may take.
type Way func(turn string, timeout time.Duration) Call

// Always is the way of a transport to which all turns are the same, and whose callers bound the time.
func Always(call Call) Way { return func(string, time.Duration) Call { return call } }

// Server is an environment with its options, behind a transport. Several goroutines may use it.
type Server struct {
	// Description is what the server said when it was connected.
	Description Description
	name        string
	options     json.RawMessage
	call        Call
}

// Connect describes the environment called name with its options.
func Connect(ctx context.Context, name string, options json.RawMessage, call Call) (*Server, error) {
	if len(options) > 0 && !json.Valid(options) {
		return nil, fmt.Errorf("describe environment %q: its options are not JSON", name)
	}
	out, err := call(ctx, CallDescribe, describeInput(options))
	if err != nil {
		return nil, fmt.Errorf("describe environment %q: %w", name, err)
	}
	d, err := ReadDescription(out)
	if err != nil {
		return nil, fmt.Errorf("describe environment %q: %w", name, err)
	}
	return &Server{Description: d, name: name, options: options, call: call}, nil
}

// Play asks about episodes, at most MaxEpisodes. The answers are checked; see ReadAnswers.
// Where they are too many for the transport, it asks about each half of them.
func (s *Server) Play(ctx context.Context, episodes []Asked) ([]Answer, error) {
	answers, err := s.play(ctx, episodes)
	if half := len(episodes) / 2; half > 0 && errors.Is(err, ErrFlood) {
		if answers, err = s.Play(ctx, episodes[:half]); err != nil {
			return nil, err
		}
		rest, err := s.Play(ctx, episodes[half:])
		return append(answers, rest...), err
	}
	return answers, err
}

// play asks about episodes in one call.
func (s *Server) play(ctx context.Context, episodes []Asked) ([]Answer, error) {
	input, err := playInput(s.options, episodes)
	if err != nil {
		return nil, err
	}
	out, err := s.call(ctx, CallPlay, input)
	if err != nil {
		return nil, fmt.Errorf("play environment %q: %w", s.name, err)
	}
	answers, err := ReadAnswers(out, s.Description, episodes)
	if err != nil {
		return nil, fmt.Errorf("play environment %q: %w", s.name, err)
	}
	return answers, nil
}

// Described is an environment that was described before: its answers are compared with that
// description.
func Described(name string, options json.RawMessage, d Description, call Call) *Server {
	return &Server{Description: d, name: name, options: options, call: call}
}
