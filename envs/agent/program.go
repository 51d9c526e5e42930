package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/infra/named"
	"github.com/reprise-rl/reprise/infra/strict"
)

// Program says what an agent is: a command or a URL.
type Program struct {
	// Name is what a spec calls it.
	Name string
	// Command is the program and its arguments.
	Command []string
	// Variables are names of variables of this process that the command gets besides stdio.Inherited.
	Variables []string
	// URL is where episodes are posted. What stands after "?" may be a secret and is not shown.
	URL string
}

// validName is what a spec may call an agent.
var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Parse reads NAME=COMMAND or NAME=URL, the value of --agent. A URL begins with http:// or https://. Blanks separate the
// command's arguments; there are no quotes: what needs them is a script.
func Parse(value string) (Program, error) {
	name, rest, _ := strings.Cut(value, "=")
	rest = strings.TrimSpace(rest)
	if name == "" || rest == "" {
		return Program{}, fmt.Errorf("found %s, want NAME=COMMAND or NAME=URL, as in solver=./solver.py or solver=http://127.0.0.1:8000/play", strict.Quote(value))
	}
	if !validName.MatchString(name) {
		return Program{}, fmt.Errorf("found the name %s, want a letter or digit, then up to 63 of a-z, 0-9, dots, dashes and underscores", strict.Quote(name))
	}
	if strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://") {
		if u, err := url.Parse(rest); err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
			return Program{}, fmt.Errorf("agent %s: its address is no URL with a host, and without user, password or #", name)
		}
		return Program{Name: name, URL: rest}, nil
	}
	return Program{Name: name, Command: strings.Fields(rest)}, nil
}

// player tells an agent of episodes.
type player interface {
	// play waits for the episode's end. Errors are of kind errDied if the agent has to be started again, else of kind
	// ErrAnswer.
	play(ctx context.Context, s start) (Result, error)
	// close ends the agent, if it is a process.
	close()
}

// Kinds of errors about agents.
var (
	// ErrAnswer says that an agent answered what is no answer.
	ErrAnswer = errors.New("answer of an agent")
	// ErrDied says that an agent ended, or cannot be reached.
	ErrDied = errors.New("the agent is gone")
)

func (p Program) start() (player, error) {
	if p.URL != "" {
		return address{&p}, nil
	}
	return startProcess(p)
}

// Flags name agents.
type Flags struct {
	// Agents are NAME=COMMAND or NAME=URL each.
	Agents []string
	// Variables are environment variables that a command gets, each NAME=VARIABLE.
	Variables []string
}

// Programs reads the flags. The error names the flag.
func (f Flags) Programs() ([]Program, error) {
	out, err := named.Read(named.Flag{Name: "agent", Thing: "agent", Gives: "command or URL"}, f.Agents, Parse, func(p Program) string { return p.Name })
	if err != nil {
		return nil, err
	}
	for _, value := range f.Variables {
		p, parts, err := out.About("agent-variable", value, "NAME=VARIABLE", "solver=SEARCH_API_KEY")
		if err != nil {
			return nil, err
		}
		if p.URL != "" {
			return nil, fmt.Errorf("--agent-variable %s: the agent has a URL, and its own variables", p.Name)
		}
		p.Variables = append(p.Variables, parts[1])
	}
	return out.All, nil
}
