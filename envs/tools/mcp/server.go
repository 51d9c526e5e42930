package mcp

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/strict"
)

// The bounds of what is taken from a server.
const (
	// MaxMessage is the most bytes of a message of a process, and of the body of an HTTP response.
	MaxMessage = foreign.MaxAnswer
	// MaxText is the most bytes of an answer's text; what is longer is cut, and the text says so.
	MaxText = 64 << 10
	// MaxTools is the most tools that a server may list.
	MaxTools = 256
	// MaxTool is the most bytes of a tool: its name, its description and the schema of its arguments.
	MaxTool = 64 << 10
)

// Server says how an MCP server is reached, and how it is used. It has a Command or a URL.
type Server struct {
	// Name is what a spec calls it: a letter or digit, then up to 63 of a-z, 0-9, "_" and "-".
	Name string
	// Command is the program and its arguments. It runs in this process's working folder.
	Command []string
	// Variables are names of variables of this process that the command gets, besides stdio.Inherited: keys of services.
	Variables []string
	// URL is the address of a server that speaks streamable HTTP. What stands after "?" may be a secret and is not shown.
	URL string
	// Headers go with each request to the URL. They are secrets, and are not shown.
	Headers http.Header
	// Timeout is how long a call may take if its context gives it more; 0 is one minute.
	Timeout time.Duration
	// Start is how long the beginning of a session may take, the process's start included; 0 is one minute.
	Start time.Duration
	// AtOnce is the most calls at the same time in a session; further ones wait. 0 is 16.
	AtOnce int
	// Sessions is the most sessions with a key at the same time; a call that needs one more is ErrBusy. 0 is 64.
	Sessions int
	// Idle ends a session with a key after so long without a call; 0 is ten minutes.
	Idle time.Duration

	// message is MaxMessage; tests have less.
	message int
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Parse reads NAME=COMMAND or NAME=URL, the value of --mcp. A URL begins with http:// or https://. Blanks separate the
// command's arguments; there are no quotes: what needs them is a script.
func Parse(value string) (Server, error) {
	name, rest, _ := strings.Cut(value, "=")
	rest = strings.TrimSpace(rest)
	if rest == "" || name == "" {
		return Server{}, fmt.Errorf("found %s, want NAME=COMMAND or NAME=URL, as in time=mcp-server-time or docs=https://example.com/mcp", strict.Quote(value))
	}
	if !validName.MatchString(name) {
		return Server{}, fmt.Errorf("found the name %s, want a letter or digit, then up to 63 of a-z, 0-9, _ and -", strict.Quote(name))
	}
	if scheme, _, ok := strings.Cut(rest, "://"); ok && !strings.ContainsAny(scheme, " \t/=") {
		s := Server{Name: name, URL: rest}
		return s, s.checkURL()
	}
	_, command, err := stdio.Named(name + "=" + rest)
	if err != nil {
		return Server{}, err
	}
	return Server{Name: name, Command: command}, nil
}

// checkURL says what is wrong with the address. It shows no part in which a secret may stand.
func (s Server) checkURL() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return fmt.Errorf("MCP server %s: its address is no URL", s.Name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("MCP server %s: its address begins with %q, want http://HOST or https://HOST", s.Name, u.Scheme+"://"+u.Host)
	case u.User != nil:
		return fmt.Errorf("MCP server %s: its address has a user or a password; a header takes them (Authorization)", s.Name)
	case u.Fragment != "":
		return fmt.Errorf("MCP server %s: its address has a part after #, which no server gets", s.Name)
	}
	return nil
}

// shown is a text about the server without what stands after "?" in its address.
func (s Server) shown(text string) string {
	if _, query, ok := strings.Cut(s.URL, "?"); ok && query != "" {
		text = strings.ReplaceAll(text, "?"+query, "?…")
	}
	return text
}

// complete puts the defaults.
func (s Server) complete() Server {
	if s.Timeout <= 0 {
		s.Timeout = time.Minute
	}
	if s.Start <= 0 {
		s.Start = time.Minute
	}
	if s.message == 0 {
		s.message = MaxMessage
	}
	if s.AtOnce <= 0 {
		s.AtOnce = 16
	}
	if s.Sessions <= 0 {
		s.Sessions = 64
	}
	if s.Idle <= 0 {
		s.Idle = 10 * time.Minute
	}
	return s
}
