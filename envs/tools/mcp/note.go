package mcp

import (
	"context"
	"sync"
)

// note is what a transport finds out about one call: the SDK's errors do not say it. It travels in the call's context.
type note struct {
	sync.Mutex
	unsent bool  // no server has got the call
	fault  error // what went wrong, with its kind
	stop   context.CancelFunc
}

type noteKey struct{}

// noted is the note of the call that a context belongs to; nil if it belongs to none.
func noted(ctx context.Context) *note {
	n, _ := ctx.Value(noteKey{}).(*note)
	return n
}

// set remembers the first fault.
func (n *note) set(fault error, unsent bool) {
	if n == nil {
		return
	}
	n.Lock()
	defer n.Unlock()
	if n.fault == nil {
		n.fault, n.unsent = fault, unsent
	}
}

// end remembers the fault and ends the call.
func (n *note) end(fault error) {
	if n == nil {
		return
	}
	n.set(fault, false)
	n.stop()
}

func (n *note) get() (fault error, unsent bool) {
	n.Lock()
	defer n.Unlock()
	return n.fault, n.unsent
}
