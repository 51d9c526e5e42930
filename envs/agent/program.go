package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/keeper"
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

// process is an agent that runs.
type process struct {
	program Program
	command *exec.Cmd // its keeper
	end     func()
	log     *stdio.Tail

	writing sync.Mutex
	in      io.WriteCloser

	mu      sync.Mutex
	waiting map[string]chan Result
	err     error
	dead    chan struct{} // closed with err set
}

func startProcess(program Program) (*process, error) {
	p := &process{
		program: program, command: exec.Command(program.Command[0], program.Command[1:]...), log: stdio.NewTail(),
		waiting: map[string]chan Result{}, dead: make(chan struct{}),
	}
	p.command.Env = append(stdio.Inherited(program.Variables...), "PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1")
	p.command.Stderr = p.log
	p.command.WaitDelay = time.Second
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", program.Name, ErrDied, err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", program.Name, ErrDied, err)
	}
	if p.end, err = keeper.Start(p.command); err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", program.Name, ErrDied, err)
	}
	p.in = in
	go p.read(bufio.NewReaderSize(out, 1<<16))
	return p, nil
}

// read hands out answers until the process ends or writes what is none.
func (p *process) read(out *bufio.Reader) {
	var bad error
	for bad == nil {
		line, err := readLine(out)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				bad = err
			}
			break
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var episode string
		var result Result
		if episode, result, bad = readResult(line); bad != nil {
			break
		}
		p.mu.Lock()
		to := p.waiting[episode]
		delete(p.waiting, episode)
		p.mu.Unlock()
		if to == nil {
			bad = fmt.Errorf("it answered about episode %s, which it does not play", strict.Quote(episode))
			break
		}
		to <- result
	}
	p.end()
	p.log.Close()
	_ = p.in.Close()
	_ = p.command.Wait() // its status says how it ended
	err := ErrDied
	if bad != nil {
		err = fmt.Errorf("%w: %w", ErrAnswer, bad)
	} else if state := p.command.ProcessState; state != nil && state.ExitCode() >= 0 {
		err = fmt.Errorf("%w: it ended with %s", ErrDied, state)
	}
	if text := p.log.Text(); text != "" {
		err = fmt.Errorf("%w; it last wrote to standard error: %s", err, text)
	}
	p.mu.Lock()
	p.err = fmt.Errorf("agent %s: %w", p.program.Name, err)
	p.mu.Unlock()
	close(p.dead)
}

// readLine reads a line of at most MaxAnswer bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxAnswer:
			return nil, fmt.Errorf("a line of more than %d bytes", MaxAnswer)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (p *process) play(ctx context.Context, s start) (Result, error) {
	answer := make(chan Result, 1)
	p.mu.Lock()
	p.waiting[s.Episode] = answer
	p.mu.Unlock()
	line, err := json.Marshal(s)
	if err != nil {
		return Result{}, fmt.Errorf("encode an episode for agent %s: %w", p.program.Name, err)
	}
	written := make(chan struct{})
	go func() { // a process that does not read holds up nobody else
		defer close(written)
		p.writing.Lock()
		defer p.writing.Unlock()
		_, _ = p.in.Write(append(line, '\n')) // the process's end says why it failed
	}()
	select {
	case r := <-answer:
		<-written
		return r, nil
	case <-p.dead:
		p.mu.Lock()
		defer p.mu.Unlock()
		return Result{}, p.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

func (p *process) close() {
	p.end()
	<-p.dead
}

// address is an agent that is reached by HTTP.
type address struct{ program *Program }

func (a address) play(ctx context.Context, s start) (Result, error) {
	fail := func(kind error, format string, values ...any) (Result, error) {
		return Result{}, fmt.Errorf("agent %s: %w: %s", a.program.Name, kind, fmt.Sprintf(format, values...))
	}
	body, err := json.Marshal(s)
	if err != nil {
		return Result{}, fmt.Errorf("encode an episode for agent %s: %w", a.program.Name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.program.URL, bytes.NewReader(body))
	if err != nil {
		return fail(ErrDied, "its address is no URL")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var reason *url.Error // it shows the address
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return fail(ErrDied, "%v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return fail(ErrDied, "%v", err)
	case response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return fail(ErrDied, "it answered with status %d: %s", response.StatusCode, strict.Quote(string(text)))
	case response.StatusCode != http.StatusOK:
		return fail(ErrAnswer, "it answered with status %d: %s", response.StatusCode, strict.Quote(string(text)))
	case len(text) > MaxAnswer:
		return fail(ErrAnswer, "more than %d bytes", MaxAnswer)
	}
	episode, result, err := readResult(text)
	if err == nil && episode != "" && episode != s.Episode {
		err = fmt.Errorf("it answered about episode %s, asked was %s", strict.Quote(episode), s.Episode)
	}
	if err != nil {
		return fail(ErrAnswer, "%v", err)
	}
	return result, nil
}

func (address) close() {}

// Flags name agents.
type Flags struct {
	// Agents are NAME=COMMAND or NAME=URL each.
	Agents []string
	// Variables are environment variables that a command gets, each NAME=VARIABLE.
	Variables []string
}

// Programs reads the flags. The error names the flag.
func (f Flags) Programs() ([]Program, error) {
	var out []Program
	byName := func(name string) *Program {
		i := slices.IndexFunc(out, func(p Program) bool { return p.Name == name })
		if i < 0 {
			return nil
		}
		return &out[i]
	}
	for _, value := range f.Agents {
		p, err := Parse(value)
		if err != nil {
			return nil, fmt.Errorf("--agent: %w", err)
		}
		if byName(p.Name) != nil {
			return nil, fmt.Errorf("--agent names the agent %q twice: each name has one command or URL", p.Name)
		}
		out = append(out, p)
	}
	for _, value := range f.Variables {
		name, variable, ok := strings.Cut(value, "=")
		p := byName(name)
		switch {
		case !ok || variable == "":
			return nil, fmt.Errorf("--agent-variable: found %s, want NAME=VARIABLE, as in solver=SEARCH_API_KEY", strict.Quote(value))
		case p == nil:
			return nil, fmt.Errorf("--agent-variable names the agent %q: no --agent does", name)
		case p.URL != "":
			return nil, fmt.Errorf("--agent-variable %s: the agent has a URL, and its own variables", name)
		}
		p.Variables = append(p.Variables, variable)
	}
	return out, nil
}
