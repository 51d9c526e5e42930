package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/xla/executable"
)

// program is one XLA program. It is lowered to StableHLO and compiled once, or loaded from
// the device's cache of programs, when first needed. All Programs and States that need the
// same program share it; it is released with the last of them.
type program struct {
	name   string
	device *Device
	key    any // comparable: equal programs of the device have equal ones
	users  int // Programs and States that use it; guarded by the device's run
	// build makes the graph. It declares the inputs through in, in the order of call's
	// arguments, and returns the outputs.
	build builder

	mu      sync.Mutex
	hash    string
	lowered *xla.Builder // from its hash until it is compiled
	exec    compute.Executable
	gives   []bool // which inputs are donated; nil: none
	ended   bool   // was released: a program compiled after that would never be freed
}

// hold adds a user. The caller holds run.
func (p *program) hold() *program {
	p.users++
	return p
}

// release removes a user, and frees the executable if it was the last one, because
// executables need memory of the host and the device. The caller holds run, so nothing
// runs meanwhile; release waits for a compilation that is in progress.
func (p *program) release() {
	if p.users--; p.users > 0 {
		return
	}
	delete(p.device.programs, p.key)
	p.mu.Lock()
	p.ended, p.lowered = true, nil
	p.mu.Unlock()
	p.finalize()
}

// builder makes a program's graph.
type builder func(in *inputs) []*graph.Node

// inputs declares a graph's parameters in order.
type inputs struct {
	g     *graph.Graph
	n     int
	alias map[int]int // outputs, by the donated inputs
}

func (in *inputs) next(dtype dtypes.DType, dims ...int) *graph.Node {
	in.n++
	return graph.Parameter(in.g, fmt.Sprintf("arg%d", in.n-1), shapes.Make(dtype, dims...))
}

// donated declares an input whose memory becomes that of an output of the same shape. A call
// consumes its buffer.
func (in *inputs) donated(output int, dtype dtypes.DType, dims ...int) *graph.Node {
	if in.alias == nil {
		in.alias = map[int]int{}
	}
	in.alias[in.n] = output
	return in.next(dtype, dims...)
}

// capture is a backend that records the builder it returned for a graph.
type capture struct {
	*xla.Backend
	builder *xla.Builder
}

func (c *capture) Builder(name string) compute.Builder {
	b := c.Backend.Builder(name)
	c.builder, _ = b.(*xla.Builder)
	return b
}

// lower builds the program's graph and returns its StableHLO text and the builder that
// compiles it.
func (p *program) lower() (builder *xla.Builder, text []byte, err error) {
	err = try("lower program "+p.name, func() error {
		c := &capture{Backend: p.device.backend}
		g := graph.NewGraph(c, p.name)
		in := &inputs{g: g}
		outputs := p.build(in)
		if p.name == p.device.other.Program {
			outputs[0] = graph.MulScalar(outputs[0], 1)
		}
		g.CurrentFunc().Return(outputs, nil)
		if c.builder == nil {
			return fmt.Errorf("the backend's builder is a %T", c.builder)
		}
		lowered, err := executable.Field[*stablehlo.Builder](c.builder, "builder")
		if err != nil {
			return err
		}
		if p.gives, err = in.donate(c.builder); err != nil {
			return err
		}
		builder = c.builder
		text, err = lowered.Build()
		return err
	})
	return builder, text, err
}

// donate marks the donated inputs in the lowered program, and returns which they are. go-xla
// v0.4.5 passes on which buffers a call donates, but has no call that lets the compiled
// program use them.
func (in *inputs) donate(b *xla.Builder) (gives []bool, err error) {
	if len(in.alias) == 0 {
		return nil, nil
	}
	main, err := executable.Field[*xla.Function](b, "mainFn")
	if err != nil {
		return nil, err
	}
	fn, err := executable.Field[*stablehlo.Function](main, "fn")
	if err != nil {
		return nil, err
	}
	if len(fn.Inputs) != in.n {
		return nil, fmt.Errorf("%d inputs were lowered of %d", len(fn.Inputs), in.n)
	}
	gives = make([]bool, in.n)
	for i, output := range in.alias {
		if fn.Inputs[i].Attributes == nil {
			fn.Inputs[i].Attributes = map[string]any{}
		}
		fn.Inputs[i].Attributes["tf.aliasing_output"] = int32(output)
		gives[i] = true
	}
	return gives, nil
}

// digest is the SHA-256 of the lowered program's StableHLO text.
func (p *program) digest() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hash != "" {
		return p.hash, nil
	}
	p.device.compiling.Add(1)
	defer p.device.compiling.Add(-1)
	err := p.toLower()
	return p.hash, err
}

// toLower lowers the program and hashes it, if it has not been lowered before. The caller
// holds mu.
func (p *program) toLower() error {
	if p.lowered != nil {
		return nil
	}
	builder, text, err := p.lower()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	p.lowered, p.hash = builder, hex.EncodeToString(sum[:])
	return nil
}

// compile compiles the program unless that has happened before.
func (p *program) compile() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exec != nil {
		return nil
	}
	if p.ended {
		return fmt.Errorf("compile program %s: %w: the programs were freed", p.name, ErrInput)
	}
	p.device.compiling.Add(1)
	defer p.device.compiling.Add(-1)
	if err := p.toLower(); err != nil {
		return err
	}
	var err error
	behind(func() { p.exec, err = p.device.executable(p.name, p.hash, p.lowered) })
	p.lowered = nil
	return err
}

// call runs the program on the first device: see on.
func (p *program) call(args ...compute.Buffer) (out []compute.Buffer, err error) {
	return p.on(0, args...)
}

// on runs the program on device k, where its inputs are. The program is compiled for all. The
// caller frees the outputs and holds the device's run lock. It
// must not use the buffers of donated inputs afterwards; after an error it frees them.
func (p *program) on(k int, args ...compute.Buffer) (out []compute.Buffer, err error) {
	if p.device.closed {
		return nil, fmt.Errorf("run program %s: %w", p.name, ErrClosed)
	}
	if err := p.compile(); err != nil {
		return nil, err
	}
	defer p.device.ended.Add(1)
	err = try("run program "+p.name, func() error {
		if p.device.Before != nil {
			if err := p.device.Before(p.name); err != nil {
				return err
			}
		}
		var err error
		out, err = p.exec.Execute(args, p.gives, p.device.numbers[k])
		return err
	})
	return out, err
}

// finalize releases the compiled program.
func (p *program) finalize() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exec != nil {
		p.exec.Finalize()
		p.exec = nil
	}
}
