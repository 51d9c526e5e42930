// Package stdio reaches a foreign environment that is a process: one JSON line in, one
// JSON line out.
//
//	→ {"id":1,"call":"EnvPlay","input":{…}}
//	← {"id":1,"output":{…}}   or   {"id":1,"error":{"kind":"broken"|"busy","message":…}}
//
// A process has one request at a time; several requests use several processes of a pool.
// A process that is late, answers another request, floods or writes what is not a reply is
// killed, and the next request starts a new one. Requests are pure functions, so a request
// whose process ended is sent once more, to a new one.
//
// What the process writes to standard error is not interpreted: its last lines are shown
// if the process fails. How much of it is read in a second is bounded.
//
// A process ends with its pool and with this program, however that ends, and so does what it
// started: see package keeper. It runs as the same user, but cannot read this program's
// memory and variables.
package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/keeper"
)

// Config says how a pool's processes are started and used.
type Config struct {
	// Command is the program and its arguments.
	Command []string
	// Processes is the most processes at a time; 0 is 1.
	Processes int
	// Timeout is how long an answer may take, the process's start included; 0 is 60 seconds.
	Timeout time.Duration
	// HashSeed is Python's PYTHONHASHSEED, which orders its sets; "" is "0".
	HashSeed string
}

// inherited are the variables of this process that a foreign process gets. All others stay away from it, since some hold
// credentials.
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "VIRTUAL_ENV", "PYTHONPATH"}

// Inherited are those variables of this process that every foreign process gets, each NAME=VALUE: PATH, HOME, and those
// of languages and of Python. None holds a credential. extra are names of further ones.
func Inherited(extra ...string) []string {
	var variables []string
	for _, name := range slices.Concat(inherited, extra) {
		if value, ok := os.LookupEnv(name); ok {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// judgePrefix begins the names of the variables that are meant for such processes: a judge's address
// and key.
const judgePrefix = "JUDGE_"

// environment is the process's environment variables.
func (c Config) environment() []string {
	seed := c.HashSeed
	if seed == "" {
		seed = "0"
	}
	variables := append([]string{"PYTHONHASHSEED=" + seed}, Inherited()...)
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, judgePrefix) {
			variables = append(variables, variable)
		}
	}
	return variables
}

// Pool is the processes of one environment. Several goroutines may use it.
type Pool struct {
	config Config
	slots  chan *slot // the free ones
	kept   kept
	closed context.Context
	close  context.CancelFunc
	once   sync.Once
}

// Open checks the command. Processes start when the first requests need them.
func Open(config Config) (*Pool, error) {
	if len(config.Command) == 0 || config.Command[0] == "" {
		return nil, errors.New("an environment's process needs a command, as in guess=./guess.py")
	}
	if _, err := exec.LookPath(config.Command[0]); err != nil {
		return nil, fmt.Errorf("environment's command %q: %w; it must be a program that can be executed (chmod +x), with its path", config.Command[0], err)
	}
	// The processes run as this process's user: what it knows, keys above all, must not be theirs to read.
	if err := keeper.Hide(); err != nil {
		return nil, err
	}
	config.Processes = max(config.Processes, 1)
	if config.Timeout <= 0 {
		config.Timeout = time.Minute
	}
	p := &Pool{config: config, slots: make(chan *slot, config.Processes)}
	p.closed, p.close = context.WithCancel(context.Background())
	for range config.Processes {
		p.slots <- &slot{}
	}
	return p, nil
}

// Named reads NAME=COMMAND, the value of --env-process. Blanks separate the command's
// arguments; there are no quotes: what needs them is a script.
func Named(value string) (name string, command []string, err error) {
	name, line, ok := strings.Cut(value, "=")
	command = strings.Fields(line)
	if !ok || name == "" || len(command) == 0 {
		return "", nil, fmt.Errorf("found %q, want NAME=COMMAND, as in guess=./guess.py", value)
	}
	return name, command, nil
}

// Close kills the processes. Requests under way end with an error.
func (p *Pool) Close() {
	p.once.Do(func() {
		p.close()
		for range p.config.Processes {
			if s := <-p.slots; s.process != nil {
				s.process.Kill()
			}
		}
	})
}

// busyWait is how long the first pause after "busy" is; each later one is twice as long.
const busyWait = 20 * time.Millisecond

// Call sends a request and reads its answer; it is a foreign.Call. A busy server is asked
// again until the time is up.
func (p *Pool) Call(ctx context.Context, name string, input []byte) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, p.config.Timeout)
	defer stop()
	defer context.AfterFunc(p.closed, stop)()
	anew := false
	for wait := busyWait; ; wait *= 2 {
		out, err := p.attempt(ctx, name, input, anew)
		switch {
		case errors.Is(err, foreign.ErrExited) && !anew && ctx.Err() == nil:
			anew = true
		case errors.Is(err, foreign.ErrBusy):
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return nil, err
			}
		default:
			return out, err
		}
	}
}

// attempt sends a request to a free process, or to a new one: any free one may have been
// killed since it answered. A process that answered last about the request's episodes goes before others.
func (p *Pool) attempt(ctx context.Context, name string, input []byte, anew bool) (out []byte, err error) {
	var asked []episode
	if name == foreign.CallPlay && p.config.Processes > 1 {
		asked = episodes(input)
	}
	at, err := p.take(ctx, p.kept.most(asked))
	if err != nil {
		return nil, err
	}
	defer func() { p.slots <- at }()
	if at.process != nil && anew {
		at.process.Kill()
		at.process = nil
	}
	if at.process == nil {
		if at.process, err = start(p.config); err != nil {
			return nil, err
		}
	}
	out, err = at.process.ask(ctx, name, input)
	if err == nil {
		p.kept.answered(asked, at)
		return out, nil
	}
	if !errors.Is(err, foreign.ErrBusy) && !errors.Is(err, foreign.ErrBroken) {
		at.process.Kill()
		if how := at.process.Ending(); how != "" && errors.Is(err, foreign.ErrExited) {
			err = fmt.Errorf("%w: %s", err, how)
		}
		if log := at.process.Log.Text(); log != "" {
			err = fmt.Errorf("%w; it last wrote to standard error: %s", err, log)
		} else {
			err = fmt.Errorf("%w; it wrote nothing to standard error", err)
		}
		at.process = nil
	}
	return nil, err
}
