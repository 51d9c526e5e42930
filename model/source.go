package model

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/model/draw"
)

// part is a part of a training state: the parameters, or one of AdamW's moments.
type part int

const (
	partParams part = iota
	partFirst
	partSecond
	partCount
)

// Source is a training state, or parameters alone, on its way to a device. Its tensors are
// read one at a time, so that the host need not have memory for all of them.
type Source struct {
	// Config is the configuration of the policy or the critic.
	Config Config
	// Base is the base model below adapters, on the device; see Over. Otherwise Frozen gives
	// its weights, which are copied to the device with the adapters.
	Base   *Base
	Frozen *Source

	// each calls visit once for each tensor, in any order, and returns the number of updates
	// applied. Without moments it leaves them out, as a source does that has none.
	each func(moments bool, visit visitor) (step int64, err error)
}

// visitor takes the values of tensor i of a part, in the order of Config.Tensors. They may
// change after the call.
type visitor func(p part, i int, v []float32) error

// tensorReader gives the values of tensor i of a part, in into's memory if they are read and
// there is room. The caller does not change them.
type tensorReader func(p part, i int, into []float32) ([]float32, error)

// sourceOf is a source of parts of a configuration, whose tensors are read in order.
func sourceOf(c Config, parts part, step int64, read tensorReader) Source {
	return Source{Config: c, each: func(moments bool, visit visitor) (int64, error) {
		last := parts
		if !moments {
			last = 1
		}
		room := borrow(c)
		defer room.giveBack()
		for p := range last {
			for i, t := range c.Tensors() {
				v, err := read(p, i, room.values)
				if err == nil {
					err = visit(p, i, v)
				}
				if err != nil {
					return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
				}
			}
		}
		return step, nil
	}}
}

// sized is a slice of n elements, in into's memory if there is room.
func sized(into []float32, n int) []float32 {
	if cap(into) < n {
		return make([]float32, n)
	}
	return into[:n]
}

// room is memory for the largest tensor of a configuration. It is lent, so that one pass over
// a model's tensors uses the memory of the pass before: as garbage, that would be there until
// the next collection, and in the process's memory for longer.
type room struct{ values []float32 }

// rooms keeps one room between passes, for roomIdle at most.
var rooms struct {
	sync.Mutex
	idle *room
}

const roomIdle = time.Minute

// largeRoom is the bytes from which a room is not kept. On a CPU its memory is the device's
// too, and an update follows a load within seconds.
const largeRoom = 64 << 20

func borrow(c Config) *room {
	largest := 0
	for _, t := range c.Tensors() {
		largest = max(largest, t.Elements())
	}
	rooms.Lock()
	r := rooms.idle
	rooms.idle = nil
	rooms.Unlock()
	if r == nil {
		r = new(room)
	}
	r.values = sized(r.values, largest)
	return r
}

// giveBack ends the loan: values are another's now. The memory of a large room goes back to
// the system at once, which takes some milliseconds.
func (r *room) giveBack() {
	if 4*cap(r.values) >= largeRoom {
		r.values = nil
		debug.FreeOSMemory()
		return
	}
	rooms.Lock()
	rooms.idle = r
	rooms.Unlock()
	time.AfterFunc(roomIdle, func() {
		rooms.Lock()
		defer rooms.Unlock()
		if rooms.idle == r {
			rooms.idle = nil
		}
	})
}

// source gives the parameters.
func (p Params) source() Source {
	return sourceOf(p.Config, 1, 0, func(_ part, i int, _ []float32) ([]float32, error) { return p.Values[i], nil })
}

// drawn reads the weights that NewParams draws.
func drawn(c Config, at draw.Address) tensorReader {
	shapes := c.Tensors()
	return func(_ part, i int, into []float32) ([]float32, error) {
		v := sized(into, shapes[i].Elements())
		drawTensor(c, shapes[i], i, at, v)
		return v, nil
	}
}

// Drawn gives the weights of a new policy, as NewParams draws them.
func Drawn(c Config, at draw.Address) Source { return sourceOf(c, 1, 0, drawn(c, at)) }

// Over gives the adapters over a base model that is on the device.
func (s Source) Over(b *Base) Source {
	s.Base = b
	return s
}

// On gives the adapters with the weights of their base model.
func (s Source) On(base Source) Source {
	s.Frozen = &base
	return s
}

// Params reads the parameters into the host's memory.
func (s Source) Params() (Params, error) {
	p := zeroParams(s.Config)
	_, err := s.each(false, func(_ part, i int, v []float32) error {
		copy(p.Values[i], v)
		return nil
	})
	return p, err
}

// Snapshot reads the whole state into the host's memory. Moments that the source lacks are
// zero.
func (s Source) Snapshot() (Snapshot, error) {
	out := NewSnapshot(zeroParams(s.Config))
	var err error
	out.Step, err = s.each(true, func(p part, i int, v []float32) error {
		copy(out.part(p).Values[i], v)
		return nil
	})
	return out, err
}
