// Package judgeservers asks the language models that judge episodes, at the addresses that flags name.
package judgeservers

import (
	"fmt"
	"os"
	"strings"

	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/named"
)

// Flags name servers of the chat-completions protocol.
type Flags struct {
	// Judges are the servers, each NAME=URL.
	Judges []string
	// Variables are environment variables with the key of a server, each NAME=VARIABLE.
	Variables []string
}

// Servers are the clients of servers.
type Servers struct{ clients map[string]*judge.Client }

// Open makes the clients; nothing is sent before the first question. The error names the flag.
func Open(f Flags) (*Servers, error) {
	all, err := f.servers()
	if err != nil {
		return nil, err
	}
	s := &Servers{map[string]*judge.Client{}}
	for _, server := range all {
		if s.clients[server.Name], err = judge.Open(server); err != nil {
			return nil, fmt.Errorf("--judge %s: %w", server.Name, err)
		}
	}
	return s, nil
}

// Judges are the language models by their names.
func (s *Servers) Judges() map[string]host.ModelJudge {
	out := map[string]host.ModelJudge{}
	for name, c := range s.clients {
		out[name] = c
	}
	return out
}

// Close ends the connections.
func (s *Servers) Close() {
	for _, c := range s.clients {
		c.Close()
	}
}

// Check says what is wrong with the flags.
func (f Flags) Check() error {
	_, err := f.servers()
	return err
}

// servers reads the flags.
func (f Flags) servers() ([]judge.Server, error) {
	out, err := named.Read(named.Flag{Name: "judge", Thing: "server", Gives: "URL"}, f.Judges, judge.Parse,
		func(s judge.Server) string { return s.Name })
	if err != nil {
		return nil, err
	}
	for _, value := range f.Variables {
		s, parts, err := out.About("judge-variable", value, "NAME=VARIABLE", "grader=OPENAI_API_KEY")
		if err != nil {
			return nil, err
		}
		key := strings.TrimSpace(os.Getenv(parts[1]))
		switch {
		case key == "":
			return nil, fmt.Errorf("--judge-variable %s: the variable %s is not set", s.Name, parts[1])
		case s.Key != "":
			return nil, fmt.Errorf("--judge-variable names the server %q twice: each has one key", s.Name)
		case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, fmt.Errorf("--judge-variable %s: the variable %s has a character that no header can have", s.Name, parts[1])
		}
		s.Key = key
	}
	return out.All, nil
}
