package faults

import (
	"context"
	"errors"
)

// failures are the errors that PJRT gives, as go-xla writes them.
var failures = map[string]error{
	OutOfMemory: errors.New("PJRT error (code=8): Out of memory allocating 281474976710656 bytes. (planted)"),
	Lost:        errors.New("PJRT error (code=14): UNAVAILABLE: the device is gone (planted)"),
	Poisoned:    errors.New("PJRT error (code=13): INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered (planted)"),
	Unclear:     errors.New("PJRT error (code=2): UNKNOWN: something went wrong (planted)"),
}

// hold notes which activity has the device.
func (p *Plan) hold(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = c
}

// Executes is asked before each execution on the device: see model.Device.Before.
func (p *Plan) Executes(string) error {
	p.mu.Lock()
	c, poisoned := p.current, p.poisoned
	p.mu.Unlock()
	if poisoned {
		return failures[Poisoned]
	}
	if c == nil {
		return nil
	}
	for _, failure := range []string{OutOfMemory, Lost, Poisoned, Unclear, Stuck} {
		f, ok := p.find(c.of, failure)
		if !ok {
			continue
		}
		p.say("the device fails at %s", f)
		switch failure {
		case Stuck:
			select {}
		case Poisoned:
			p.mu.Lock()
			p.poisoned = true
			p.mu.Unlock()
		}
		return failures[failure]
	}
	return nil
}

// Differs is asked whether a self-test of the device is to find a difference: see
// device.Engine.Differ.
func (p *Plan) Differs(ctx context.Context) bool {
	c := callOf(ctx)
	if c == nil {
		return false
	}
	f, ok := p.find(c.of, Differs)
	if ok {
		p.say("the device differs at %s", f)
	}
	return ok
}
