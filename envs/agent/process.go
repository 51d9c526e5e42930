package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/strict"
)

// process is an agent that runs.
type process struct {
	*stdio.Child
	name string

	writing sync.Mutex // held while a line is written

	mu      sync.Mutex
	waiting map[string]chan Result // by the episode

	dead chan struct{} // closed with err set
	err  error
}

func startProcess(p Program) (*process, error) {
	child, err := stdio.StartChild(p.Command, append(stdio.Inherited(p.Variables...), "PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1"))
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w: %w", p.Name, ErrDied, err)
	}
	a := &process{Child: child, name: p.Name, waiting: map[string]chan Result{}, dead: make(chan struct{})}
	go a.run()
	return a, nil
}

// run hands out answers until the program ends, or writes what is none.
func (p *process) run() {
	err := p.answers()
	p.Kill()
	if how := p.Ending(); how != "" && errors.Is(err, ErrDied) {
		err = fmt.Errorf("%w: %s", err, how)
	}
	if text := completions.Masked(p.Log.Text()); text != "" {
		err = fmt.Errorf("%w; it last wrote to standard error: %s", err, text)
	}
	p.err = fmt.Errorf("agent %s: %w", p.name, err)
	close(p.dead)
}

// answers reads answers and hands them out. The error is of kind ErrDied or ErrAnswer.
func (p *process) answers() error {
	for {
		line, err := stdio.ReadLine(p.Out, MaxAnswer)
		if errors.Is(err, io.EOF) {
			return ErrDied
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		episode, result, err := readResult(line)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		p.mu.Lock()
		to := p.waiting[episode]
		delete(p.waiting, episode)
		p.mu.Unlock()
		if to == nil {
			return fmt.Errorf("%w: it answered about episode %s, which it does not play", ErrAnswer, strict.Quote(episode))
		}
		to <- result
	}
}

func (p *process) play(ctx context.Context, s start) (Result, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return Result{}, fmt.Errorf("encode an episode for agent %s: %w", p.name, err)
	}
	answer := make(chan Result, 1)
	p.mu.Lock()
	p.waiting[s.Episode] = answer
	p.mu.Unlock()
	go func() { // a program that does not read holds up nobody else
		p.writing.Lock()
		defer p.writing.Unlock()
		_, _ = p.In.Write(append(line, '\n')) // the program's end says why it failed
	}()
	select {
	case r := <-answer:
		return r, nil
	case <-p.dead:
		return Result{}, p.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

func (p *process) close() {
	p.End()
	<-p.dead
}
