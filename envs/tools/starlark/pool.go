package starlark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits bound a program that runs in a child.
type Limits struct {
	// Steps and Output are those of an Interpreter.
	Steps  uint64
	Output int
	// Deadline is how long a program may run.
	Deadline time.Duration
	// Memory is the most bytes that a program may take.
	Memory int64
}

// Defaults are the limits where a user names none.
var Defaults = Limits{Steps: 1_000_000, Output: 4096, Deadline: 2 * time.Second, Memory: 256 << 20}

// MinMemory is the least Memory of Limits: the interpreter needs a part of it.
const MinMemory = 16 << 20

// check names a limit that no child can keep.
func (l Limits) check() error {
	switch {
	case l.Steps == 0, l.Output <= 0, l.Deadline <= 0:
		return fmt.Errorf("starlark: limits %+v: steps, output and deadline must be positive", l)
	case l.Memory < MinMemory:
		return fmt.Errorf("starlark: limits %+v: memory must be at least %d bytes", l, MinMemory)
	}
	return nil
}

// Pool runs programs in children, which it starts as it needs them, keeps between programs and starts anew after they
// were killed. It may be used by several goroutines.
type Pool struct {
	argv   []string
	limits Limits
	places chan struct{} // one for each child that may be at work

	mu     sync.Mutex
	idle   []*child
	closed bool
}

// NewPool makes a pool of at most so many children. argv are the path of a program that calls Serve on its standard
// input and output, and its arguments. It gets no variables. Nothing is started yet. The error names a limit out of its
// range.
func NewPool(argv []string, limits Limits, children int) (*Pool, error) {
	if err := limits.check(); err != nil {
		return nil, err
	}
	if len(argv) == 0 || children < 1 {
		return nil, fmt.Errorf("starlark: a pool of %d children of the command %q", children, argv)
	}
	return &Pool{argv: argv, limits: limits, places: make(chan struct{}, children)}, nil
}

// Run runs a program and waits for its answer. If its child ends from outside, another runs the program again, once: a
// program changes nothing. Errors are of kind ErrStart, ErrEnded, ErrProtocol or ErrClosed, or the context's; then there
// is no answer, and the same call may be made again.
func (p *Pool) Run(ctx context.Context, program string) (Answer, error) {
	return p.Evaluate(ctx, program, nil)
}

// Evaluate is Run with the values of expressions: see Interpreter's. The deadline is for all of it. Too many or too long
// expressions are of kind ErrProtocol.
func (p *Pool) Evaluate(ctx context.Context, program string, expressions []string) (Answer, error) {
	bytes := 0
	for _, e := range expressions {
		bytes += len(e)
	}
	if len(expressions) > MaxExpressions || bytes > MaxProgram {
		return Answer{}, fmt.Errorf("%w: %d expressions of %d bytes, at most %d of %d", ErrProtocol, len(expressions), bytes, MaxExpressions, MaxProgram)
	}
	if answer, refused := refuse(program); refused {
		return answer, nil
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	answer, err := p.try(ctx, program, expressions)
	if errors.Is(err, ErrEnded) {
		answer, err = p.try(ctx, program, expressions)
	}
	return answer, err
}

func (p *Pool) try(ctx context.Context, program string, expressions []string) (Answer, error) {
	c, err := p.take(ctx)
	if err != nil {
		return Answer{}, err
	}
	answer, usable, err := c.run(ctx, program, expressions)
	if usable {
		p.put(c)
	}
	return answer, err
}

// take gives an idle child, or a new one. An idle one that has ended is no loss.
func (p *Pool) take(ctx context.Context) (*child, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		var c *child
		if n := len(p.idle); n > 0 {
			c, p.idle = p.idle[n-1], p.idle[:n-1]
		}
		p.mu.Unlock()
		if c == nil {
			return begin(ctx, p.argv, p.limits)
		}
		select {
		case <-c.gone:
			c.kill()
		default:
			return c, nil
		}
	}
}

// put keeps a child for the next program.
func (p *Pool) put(c *child) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if closed {
		c.kill()
	}
}

// Close ends the children that are idle, and waits for those at work, whose programs end as they would have. Run gives
// ErrClosed from now on.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.kill()
	}
	for range cap(p.places) {
		p.places <- struct{}{}
	}
	for range cap(p.places) {
		<-p.places
	}
}
