package mcp

import (
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
)

// The kinds of errors. All but ErrUnknown are also the kinds of these names of package foreign. An answer that says that a tool failed
// is none of them: see Answer.
var (
	// ErrAnswer is an answer that is not of the protocol's form, that refuses this client, or that breaks a bound.
	ErrAnswer = foreign.Kind("the MCP server's answer is not valid", foreign.ErrAnswer)
	// ErrBusy is a server, or a client, that has no room now.
	ErrBusy = foreign.Kind("the MCP server is busy", foreign.ErrBusy)
	// ErrTimeout is a server that did not answer in time, or a call that its caller gave up.
	ErrTimeout = foreign.Kind("the MCP server did not answer in time", foreign.ErrTimeout)
	// ErrFlood is an answer of more than MaxMessage bytes.
	ErrFlood = foreign.Kind("the MCP server's answer is too long", foreign.ErrFlood)
	// ErrExited is a server that ended before it answered, that did not start or that is not there.
	ErrExited = foreign.Kind("the MCP server ended or is not there", foreign.ErrExited)
	// ErrUnknown is a tool that the server has not, or that a policy cannot have. It is also of kind envs.ErrUnknown.
	ErrUnknown = foreign.Kind("unknown tool", envs.ErrUnknown)
)
