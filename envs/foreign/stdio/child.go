package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/keeper"
)

// Child is a program that runs under a keeper: its children end with it, and all of them with this process. Its standard
// files are pipes.
type Child struct {
	Command *exec.Cmd // its keeper: see package keeper
	End     func()    // kills the program, and all that it started
	In      io.WriteCloser
	Out     *bufio.Reader
	Log     *Tail // its standard error
}

// StartChild starts a program, which gets these variables, each NAME=VALUE, and no others.
func StartChild(command, variables []string) (*Child, error) {
	c := &Child{Command: exec.Command(command[0], command[1:]...), Log: NewTail()}
	c.Command.Env, c.Command.Stderr = variables, c.Log
	c.Command.WaitDelay = time.Second // a child that its keeper cannot kill may keep standard error open
	var out io.Reader
	var err error
	if c.In, err = c.Command.StdinPipe(); err == nil {
		out, err = c.Command.StdoutPipe()
	}
	if err == nil {
		c.End, err = keeper.Start(c.Command)
	}
	if err != nil {
		return nil, fmt.Errorf("it did not start: %w", err)
	}
	c.Out = bufio.NewReaderSize(out, 1<<16)
	return c, nil
}

// Kill ends the program and waits for it.
func (c *Child) Kill() {
	c.End()
	c.Log.Close()
	_ = c.In.Close()
	_ = c.Command.Wait() // says that it was killed
}

// Ending says how a program ended that was waited for: by itself, with its status; "" if it was killed here.
func (c *Child) Ending() string {
	state := c.Command.ProcessState
	if state == nil || state.ExitCode() < 0 {
		return ""
	}
	if signal, died := keeper.Died(state.ExitCode()); died {
		return fmt.Sprintf("it ended with %s (%s)", state, signal)
	}
	return fmt.Sprintf("it ended with %s", state)
}

// ReadLine reads a line of at most so many bytes. The error about a longer one is of kind foreign.ErrFlood.
func ReadLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, fmt.Errorf("%w: more than %d bytes", foreign.ErrFlood, most)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
