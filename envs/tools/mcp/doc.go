// Package mcp asks tools of MCP servers (Model Context Protocol), which are programs of somebody else: a Client keeps
// sessions with one Server, lists its tools and calls them.
//
// # Servers
//
// A server is a command that is reached over standard input and output, or an address that is reached by streamable HTTP.
// A person names it (Parse); a spec never does. The protocol itself is the business of the official Go SDK; this package
// bounds what it reads, and says what went wrong by the kinds of errors of package foreign.
//
// # Sessions
//
// Calls without a key share one session, which is opened at the first call and again after it has ended. Calls with a key
// have a session of their own, with a process of its own: a server that remembers, as server-memory, knows one episode
// only. Such a session is never opened again by itself, since what it knew would be gone; see Client.Sent.
//
// A call that a server may have received is never sent again here: its caller knows what was recorded. A call that no
// server can have received is sent again, in a new session, a bounded number of times.
//
// # Trust
//
// A server is not trusted. Its process gets the variables and the keeper of other foreign programs; its texts are bounded;
// what it asks of its client (sampling, roots, elicitation) is answered with "not supported", and what it notifies about is
// dropped. Redirects to other hosts are refused, since requests carry secrets.
package mcp
