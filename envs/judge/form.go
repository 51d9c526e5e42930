package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// maxQuestion is the most bytes of a question. What a model takes is far below it.
const maxQuestion = 1 << 20

// Criterion is one thing that a verdict says.
type Criterion struct {
	// Name is the component's, Asks what the judge is told of it.
	Name string `json:"name"`
	Asks string `json:"asks"`
}

// Own is the name of the judge that is the run's own engine.
const Own = "run"

// First and Current are the versions of the policy that judge, where the run's own engine does: version 0, which stays, and
// the one with which the iteration begins.
const (
	First   = "first"
	Current = "current"
)

// Form is what a judge is asked about episodes, and how its replies are read.
type Form struct {
	// Judge is the NAME of the worker's --judge NAME=URL, Model the model that its server is asked for; or Own, whose Model is
	// First or Current; or where a model is from that the run's own engine serves (IsModel), whose Model is the digest of its
	// folder in the store, "" before the start of a run writes it down.
	Judge string `json:"judge"`
	Model string `json:"model"`
	// PromptTokens is the most tokens of a question to the run's own engine; 0 for a server.
	PromptTokens int `json:"prompt_tokens,omitempty"`
	// Prompt is the template of a question; CheckPrompt reads it.
	Prompt string `json:"prompt"`
	// Criteria are those of a verdict, in its order.
	Criteria []Criterion `json:"criteria"`
	Scale    Scale       `json:"scale"`
	// ByTurn says that each turn is asked about by itself.
	ByTurn bool `json:"by_turn"`
	// Temperature and MaxTokens are those of the replies.
	Temperature float64 `json:"temperature"`
	MaxTokens   int     `json:"max_tokens"`
	// Unreadable is the value, from 0 to 1, of each criterion of a reply that cannot be read twice.
	Unreadable float64 `json:"unreadable"`
}

// IsModel reports whether the name of a judge says where a model is from ("hf:NAME", "run:ID@VERSION"), which the run's own
// engine serves. No server's name has a colon.
func IsModel(name string) bool { return strings.Contains(name, ":") }

// Own reports whether the run's own engine judges, by the policy or by another model.
func (f Form) Own() bool { return f.Judge == Own || IsModel(f.Judge) }

// Message is one of a request.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Request is a question as the server gets it.
type Request struct {
	Model       string    `json:"model"`
	Messages    []Message `json:"messages"`
	Temperature float64   `json:"temperature"`
	MaxTokens   int       `json:"max_tokens"`
}

// Answer is what a server answered.
type Answer struct {
	// Model is the model that answered, as the server calls it; "" where it says nothing.
	Model string `json:"model"`
	// Reply is what the model wrote: of a long one the end, at most 16 KiB.
	Reply string `json:"reply"`
}

// PromptDigest is the SHA-256, in hexadecimal digits, of what all questions have in common.
func (f Form) PromptDigest() string {
	b, err := json.Marshal([]any{f.Prompt, f.Criteria, f.Scale, f.ByTurn})
	if err != nil {
		panic(fmt.Sprintf("judge: encode a prompt: %v", err)) // texts and finite numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Questions are those about an episode: one, or by turn one for each of its turns. The error is of kind ErrRefused.
func (f Form) Questions(e foreign.Scored) ([]Request, error) {
	if !f.ByTurn {
		one, err := f.question(e, len(e.Turns))
		return []Request{one}, err
	}
	out := make([]Request, len(e.Turns))
	for k := range out {
		var err error
		if out[k], err = f.question(e, k+1); err != nil {
			return nil, fmt.Errorf("turn %d: %w", k+1, err)
		}
	}
	return out, nil
}

// question is the one about the first turns of an episode, or by turn about the last of these.
func (f Form) question(e foreign.Scored, turns int) (Request, error) {
	values := map[string]string{
		forTask: e.Instructions, forConversation: conversationOf(e, turns), forCriteria: f.criteria(), forForm: f.ending(),
		forTurn: strconv.Itoa(turns),
	}
	if turns > 0 {
		values[forReply] = e.Turns[turns-1].Reply
	}
	text := filled(f.Prompt, f.ByTurn, values)
	if len(text) > maxQuestion {
		return Request{}, fmt.Errorf("%w: it has %d bytes, at most %d are sent", ErrRefused, len(text), maxQuestion)
	}
	return Request{Model: f.Model, Messages: []Message{{"user", text}}, Temperature: f.Temperature, MaxTokens: f.MaxTokens}, nil
}

// conversationOf is what the agent saw and wrote in the first turns, and what it saw after them.
func conversationOf(e foreign.Scored, turns int) string {
	var out strings.Builder
	for k, t := range e.Turns[:turns] {
		fmt.Fprintf(&out, "--- turn %d: what the agent saw ---\n%s\n--- turn %[1]d: what the agent wrote ---\n%[3]s\n", k+1, t.Observation, t.Reply)
	}
	after := e.Observation
	if turns < len(e.Turns) {
		after = e.Turns[turns].Observation
	}
	fmt.Fprintf(&out, "--- after turn %d ---\n%s", turns, after)
	return out.String()
}

// criteria says what each criterion asks.
func (f Form) criteria() string {
	lines := make([]string, len(f.Criteria))
	for i, c := range f.Criteria {
		lines[i] = "- " + c.Name + ": " + c.Asks
	}
	return strings.Join(lines, "\n")
}

// ending says how a reply ends.
func (f Form) ending() string {
	lines := []string{fmt.Sprintf("End your answer with a line for each criterion, in this order and in this form, where VALUE is %s. "+
		"Write nothing after them:", f.Scale.asks())}
	for _, c := range f.Criteria {
		lines = append(lines, c.Name+": VALUE")
	}
	return strings.Join(lines, "\n")
}

// Read gives a reply's values, one for each criterion, from 0 to 1. ok is false for a reply that does not end as the form
// asks for.
func (f Form) Read(reply string) (values []float64, ok bool) {
	var lines []string
	for line := range strings.Lines(reply) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) < len(f.Criteria) {
		return nil, false
	}
	for i, line := range lines[len(lines)-len(f.Criteria):] {
		name, value, _ := strings.Cut(line, ":")
		x, ok := f.Scale.read(strings.TrimSpace(value))
		if !ok || name != f.Criteria[i].Name {
			return nil, false
		}
		values = append(values, x)
	}
	return values, true
}

// Again is the question after a reply that could not be read: the same with that reply and the form, at temperature 0.
func (f Form) Again(r Request, reply string) Request {
	if strings.TrimSpace(reply) == "" {
		reply = "(no answer)" // some servers refuse an empty message
	}
	r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)],
		Message{"assistant", reply}, Message{"user", "This answer cannot be read. Answer again. " + f.ending()})
	r.Temperature = 0
	return r
}
