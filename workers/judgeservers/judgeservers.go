// Package judgeservers asks the language models that judge episodes, at the addresses that flags name.
package judgeservers

import (
	"fmt"
	"os"
	"strings"

	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/strict"
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
	var out []judge.Server
	at := map[string]int{}
	for _, value := range f.Judges {
		s, err := judge.Parse(value)
		if err != nil {
			return nil, fmt.Errorf("--judge: %w", err)
		}
		if _, again := at[s.Name]; again {
			return nil, fmt.Errorf("--judge names the server %q twice: each name has one URL", s.Name)
		}
		at[s.Name] = len(out)
		out = append(out, s)
	}
	for _, value := range f.Variables {
		name, variable, _ := strings.Cut(value, "=")
		i, named := at[name]
		if variable == "" {
			return nil, fmt.Errorf("--judge-variable: found %s, want NAME=VARIABLE, as in grader=OPENAI_API_KEY", strict.Quote(value))
		}
		key := strings.TrimSpace(os.Getenv(variable))
		switch {
		case !named:
			return nil, fmt.Errorf("--judge-variable names the server %q: no --judge does", name)
		case key == "":
			return nil, fmt.Errorf("--judge-variable %s: the variable %s is not set", name, variable)
		case out[i].Key != "":
			return nil, fmt.Errorf("--judge-variable names the server %q twice: each has one key", name)
		case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, fmt.Errorf("--judge-variable %s: the variable %s has a character that no header can have", name, variable)
		}
		out[i].Key = key
	}
	return out, nil
}
