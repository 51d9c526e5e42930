package mcp

import (
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
)

// kind is a kind of error that is also one of another package's, in the words of this package.
type kind struct {
	text string
	like error
}

// Error is what happened.
func (k *kind) Error() string { return k.text }

// Unwrap is the other package's kind.
func (k *kind) Unwrap() error { return k.like }

// The kinds of errors. All but ErrUnknown are also the kinds of these names of package foreign. An answer that says that a tool failed
// is none of them: see Answer.
var (
	// ErrAnswer is an answer that is not of the protocol's form, that refuses this client, or that breaks a bound.
	ErrAnswer error = &kind{"the MCP server's answer is not valid", foreign.ErrAnswer}
	// ErrBusy is a server, or a client, that has no room now.
	ErrBusy error = &kind{"the MCP server is busy", foreign.ErrBusy}
	// ErrTimeout is a server that did not answer in time, or a call that its caller gave up.
	ErrTimeout error = &kind{"the MCP server did not answer in time", foreign.ErrTimeout}
	// ErrFlood is an answer of more than MaxMessage bytes.
	ErrFlood error = &kind{"the MCP server's answer is too long", foreign.ErrFlood}
	// ErrExited is a server that ended before it answered, that did not start or that is not there.
	ErrExited error = &kind{"the MCP server ended or is not there", foreign.ErrExited}
	// ErrUnknown is a tool that the server has not, or that a policy cannot have. It is also of kind envs.ErrUnknown.
	ErrUnknown error = &kind{"unknown tool", envs.ErrUnknown}
)
