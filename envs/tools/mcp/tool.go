package mcp

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Kind is the name of these tools in a spec.
const Kind = "mcp"

// The sessions that a spec may ask for.
const (
	// Shared is one session for all episodes.
	Shared = "shared"
	// ByEpisode is a session for each episode. One that has ended is begun anew, and the episode's calls are made again.
	ByEpisode = "episode"
)

// Allowed are tools of a server that a spec allows. They stand for nothing until the server has described them, which the
// start of a run lets it do.
type Allowed struct {
	server, sessions string
	allowed          []string
	seconds          float64
	described        bool
	description      Description
	table            *envs.Options
	written          json.RawMessage
}

// Declare declares the tools' options.
func Declare(o *envs.Options) *Allowed {
	a := &Allowed{table: o}
	o.Text("server", &a.server, "", "which server: the NAME of the worker's --mcp NAME=COMMAND|URL")
	if !validName.MatchString(a.server) {
		o.Wrong("server", "the name of a server: a letter or digit, then up to 63 of a-z, 0-9, _ and -")
	}
	o.Texts("tools", &a.allowed, "the names of its tools that the policy may call")
	if len(a.allowed) == 0 {
		o.Wrong("tools", "at least one name")
	}
	o.Choice("sessions", &a.sessions, Shared, []string{Shared, ByEpisode},
		"shared: one session for all episodes; episode: one for each, for servers that remember")
	o.Number("seconds", &a.seconds, 30, 0.1, 600, "how long a call may take, 0.1 to 600; one that takes longer fails, and the policy is told so")
	o.Object("description", &a.written, "what the server said of the tools; leave it out: the start of the run writes it down")
	if string(a.written) == "{}" {
		return a
	}
	if err := json.Unmarshal(a.written, &a.description); err != nil || len(a.description.Tools) == 0 {
		o.Wrong("description", "what the start of a run writes down, or no such option")
	}
	a.described = true
	return a
}

// Server is the server's name and the tools that are allowed.
func (a *Allowed) Server() (name string, allowed []string) { return a.server, a.allowed }

// Description is what the server said; false if it has not been asked.
func (a *Allowed) Description() (Description, bool) { return a.description, a.described }

// Described are the options with a description in them.
func (a *Allowed) Described(d Description) (json.RawMessage, error) {
	description, err := d.JSON()
	if err != nil {
		return nil, err
	}
	return calls.JSON(struct {
		Server      string          `json:"server"`
		Tools       []string        `json:"tools"`
		Sessions    string          `json:"sessions"`
		Seconds     float64         `json:"seconds"`
		Description json.RawMessage `json:"description"`
	}{a.server, a.allowed, a.sessions, a.seconds, description})
}

// Describe implements envs.Tool; the policy is told about Tools instead.
func (a *Allowed) Describe() chat.Tool { return chat.Tool{Name: Kind} }

// Call implements envs.Tool. Nobody calls it.
func (a *Allowed) Call(json.RawMessage) envs.ToolAnswer { panic("mcp: a server answers its tools") }

// Tools implements envs.SeveralTools.
func (a *Allowed) Tools() []envs.Tool {
	var out []envs.Tool
	for _, t := range a.description.Tools {
		out = append(out, one{a, t})
	}
	return out
}

// one is a tool of a server.
type one struct {
	of   *Allowed
	told chat.Tool
}

func (o one) Describe() chat.Tool                  { return o.told }
func (o one) Call(json.RawMessage) envs.ToolAnswer { panic("mcp: a server answers its tools") }

// suggestedWords is the most words of a suggested text.
const suggestedWords = 6

// Suggest implements envs.Suggesting: each phrase of up to six words that was read, for a tool that takes one text; no calls for others.
func (o one) Suggest(read string) []json.RawMessage {
	name, ok := calls.TextArgument(o.told)
	if !ok {
		return nil
	}
	var out []json.RawMessage
	for _, phrase := range envs.Phrases(read, suggestedWords) {
		out = append(out, calls.OfText(name, phrase))
	}
	return out
}

// question is what a server is asked.
type question struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Sessions  string          `json:"sessions"`
	Seconds   float64         `json:"seconds"`
}

// Question implements envs.OutsideTool.
func (o one) Question(arguments json.RawMessage) envs.ToolQuestion {
	body, err := calls.JSON(question{Tool: o.told.Name, Arguments: arguments, Sessions: o.of.sessions, Seconds: o.of.seconds})
	if err == nil {
		body, err = calls.Canonical(body)
	}
	if err != nil {
		panic(fmt.Sprintf("mcp: encode a question: %v", err)) // arguments that were read
	}
	return envs.ToolQuestion{Kind: Kind, Server: o.of.server, Body: body}
}

// Asked is a question as the client takes it.
type Asked struct {
	Tool      string
	Arguments json.RawMessage
	// OwnSession says that each episode has a session.
	OwnSession bool
	Timeout    time.Duration
}

// ReadQuestion reads the question of one of Allowed's tools.
func ReadQuestion(q envs.ToolQuestion) (Asked, error) {
	var read question
	if err := json.Unmarshal(q.Body, &read); err != nil {
		return Asked{}, fmt.Errorf("read the question to MCP server %s: %w", q.Server, err)
	}
	return Asked{
		Tool: read.Tool, Arguments: read.Arguments, OwnSession: read.Sessions == ByEpisode,
		Timeout: time.Duration(read.Seconds * float64(time.Second)),
	}, nil
}
