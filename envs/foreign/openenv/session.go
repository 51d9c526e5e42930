package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/strict"
)

// maxMessage is the most bytes of a message.
const maxMessage = 1 << 20

// maxComplaint is the most bytes that are kept of a server's message about an error.
const maxComplaint = 1000

// errLost is a connection that could not be opened or was lost.
var errLost = errors.New("the connection was lost")

// session is a connection, in which there is one episode.
type session struct {
	conn   *websocket.Conn
	broken bool // nothing can be sent any more
}

// dial opens a connection.
func dial(ctx context.Context, client *http.Client, address string) (*session, error) {
	conn, response, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		if response != nil && response.StatusCode/100 == 4 && response.StatusCode != http.StatusTooManyRequests {
			return nil, fmt.Errorf("%w: %s answers %s; the address of an environment of OpenEnv's ends with /ws", foreign.ErrAnswer, address, response.Status)
		}
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	conn.SetReadLimit(maxMessage)
	return &session{conn: conn}, nil
}

// closing is how long the server may take to end its side of a session.
const closing = time.Second

// close ends the session and waits until the server has ended it too: many have room for one only.
func (s *session) close() {
	defer func() { _ = s.conn.CloseNow() }() // it may be closed
	if s.broken {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), closing)
	defer stop()
	if err := s.conn.Write(ctx, websocket.MessageText, []byte(`{"type":"close"}`)); err != nil {
		return
	}
	for {
		if _, _, err := s.conn.Read(ctx); err != nil {
			return
		}
	}
}

// state is what a server answers to reset and step.
type state struct {
	observation strict.Node
	reward      json.RawMessage
	done        bool
}

// ask sends a message and reads the answer. An error is of kind errLost, ErrTimeout, ErrFlood or
// ErrAnswer, or is a *refused, after which the session goes on.
func (s *session) ask(ctx context.Context, kind string, data any) (state, error) {
	message, err := json.Marshal(struct {
		Type string `json:"type"`
		Data any    `json:"data"`
	}{kind, data})
	if err != nil {
		return state{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	answer, err := s.exchange(ctx, message)
	if err != nil {
		s.broken = true
		return state{}, err
	}
	return read(answer)
}

// exchange sends a message and reads one.
func (s *session) exchange(ctx context.Context, message []byte) ([]byte, error) {
	// A server that has no room writes why and closes the connection: what it wrote is read even if
	// the message could not be written.
	failed := s.conn.Write(ctx, websocket.MessageText, message)
	form, answer, err := s.conn.Read(ctx)
	switch {
	case err == nil && form != websocket.MessageText:
		return nil, fmt.Errorf("%w: it sent bytes, want a message of text", foreign.ErrAnswer)
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", foreign.ErrTimeout, ctx.Err())
	case errors.Is(err, websocket.ErrMessageTooBig):
		return nil, fmt.Errorf("%w: a message of more than %d bytes", foreign.ErrFlood, maxMessage)
	}
	return nil, fmt.Errorf("%w: %w", errLost, errors.Join(failed, err))
}

// read reads an answer.
func read(message []byte) (state, error) {
	n, err := strict.Parse(message, strict.Limits{Bytes: maxMessage, Depth: 64})
	kind, _ := member(n, "type").Text()
	data := member(n, "data")
	switch {
	case err != nil || data.Kind() != strict.Object:
		return state{}, fmt.Errorf("%w: it sent %s, want a message of OpenEnv's with type and data", foreign.ErrAnswer, strict.Quote(string(message)))
	case kind == "error":
		r := &refused{}
		r.code, _ = member(data, "code").Text()
		r.message, _ = member(data, "message").Text()
		r.message = strings.ToValidUTF8(r.message[:min(len(r.message), maxComplaint)], "")
		return state{}, r
	case kind != "observation":
		return state{}, fmt.Errorf("%w: it sent a message of type %s, want observation", foreign.ErrAnswer, strict.Quote(kind))
	}
	s := state{observation: member(data, "observation")}
	if s.observation.Kind() != strict.Object {
		return state{}, fmt.Errorf("%w: data.observation is %s, want an object", foreign.ErrAnswer, s.observation.Found())
	}
	var ok bool
	if s.reward, ok = rewardOf(member(data, "reward")); !ok {
		return state{}, fmt.Errorf("%w: data.reward is %s, want a number or null", foreign.ErrAnswer, member(data, "reward").Found())
	}
	if s.done, ok = member(data, "done").Truth(); !ok {
		return state{}, fmt.Errorf("%w: data.done is %s, want true or false", foreign.ErrAnswer, member(data, "done").Found())
	}
	return s, nil
}

// rewardOf is a reward as the chain has it: null is 0, and true is 1.
func rewardOf(n strict.Node) (json.RawMessage, bool) {
	if n.Kind() == strict.Null {
		return json.RawMessage("0"), true
	}
	if yes, ok := n.Truth(); ok {
		return json.RawMessage(map[bool]string{true: "1", false: "0"}[yes]), true
	}
	value, ok := n.Float()
	if !ok {
		return nil, false
	}
	written, err := json.Marshal(value)
	return written, err == nil
}

// member is an object's member; null if there is none.
func member(n strict.Node, key string) strict.Node {
	for _, m := range n.Members() {
		if m.Key == key {
			return m.Value
		}
	}
	return strict.Node{}
}

// The codes of OpenEnv's errors that are told apart. INVALID_JSON and UNKNOWN_TYPE are servers that
// do not understand this client.
const (
	codeInvalid  = "VALIDATION_ERROR"
	codeRaised   = "EXECUTION_ERROR"
	codeCapacity = "CAPACITY_REACHED"
	codeFactory  = "FACTORY_ERROR"
	codeSession  = "SESSION_ERROR"
)

// refused is an error that the server reports.
type refused struct{ code, message string }

// Error is the server's message.
func (r *refused) Error() string { return r.code + ": " + r.message }

// Unwrap makes an error that is not one of an episode's an answer of another form.
func (r *refused) Unwrap() error {
	if r.broken() || r.crowded() {
		return nil
	}
	return foreign.ErrAnswer
}

// broken reports whether the environment raised an error of its own.
func (r *refused) broken() bool {
	return r.code == codeRaised || r.code == codeFactory || r.code == codeSession
}

// crowded reports whether the server has no room for a session.
func (r *refused) crowded() bool { return r.code == codeCapacity }
