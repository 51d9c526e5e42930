package model

import (
	"fmt"
	"time"

	"github.com/gomlx/compute"
)

// State is the training state of a policy or a critic on a device: parameters,
// AdamW's moments and the number of updates applied. It never changes: an update consumes
// it and makes a new one in its memory. All Programs of the same device and configuration
// can use it.
type State struct {
	device *Device
	c      Config
	// params, m and v are in Config.Tensors order; all guarded by the device's run.
	// A state of UploadParams has neither m nor v.
	params, m, v []compute.Buffer
	// owner is the device that has a tensor, its moments and its copy. Of a state without
	// moments it is the first.
	owner []int
	// copies are what programs in bfloat16 read in place of params, nil where they read
	// those; nil until one has run since the load or the last update. Guarded by run.
	copies []compute.Buffer
	// mirrors are what programs read on devices that do not own it: of params, and of those with
	// copies. nil until they have run there since the load or the last update. Guarded by run.
	mirrors     [2]mirrors
	base        *Base // below adapters; nil: none
	step        int64
	fingerprint group
	sum         *[lanes]uint32 // of the fingerprint, where it was computed with the load
	freed       bool
	consumer    string // what has consumed it; empty: nothing
}

func (p *core) load(src Source, moments bool) (*State, error) {
	st, err := p.emptyFrom(src, moments)
	if err != nil {
		return nil, fmt.Errorf("upload state: %w", err)
	}
	put := func(p part, i int, v []float32) error { return st.use(nil, func() error { return st.put(p, i, v) }) }
	if st.step, err = src.each(moments, put); err == nil && moments {
		err = p.fillMoments(st)
	}
	if err != nil {
		st.Free()
		return nil, fmt.Errorf("upload state: %w", err)
	}
	return st, nil
}

// emptyFrom is a state of a source without its tensors, over the source's base model.
func (p *core) emptyFrom(src Source, moments bool) (*State, error) {
	base, loaded, err := p.baseOf(src)
	if loaded != nil {
		defer loaded.Free() // the state holds it
	}
	if err != nil {
		return nil, err
	}
	return p.empty(src.Config, base, moments)
}

// empty is a state without its tensors.
func (p *core) empty(c Config, base *Base, moments bool) (*State, error) {
	if c.shape() != p.c.shape() {
		return nil, fmt.Errorf("%w: another configuration than the programs'", ErrInput)
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if p.device.closed {
		return nil, ErrClosed
	}
	prints, err := p.group(kindFingerprint)
	if err != nil {
		return nil, err
	}
	if base != nil {
		if err := base.usable(); err != nil {
			return nil, err
		}
	}
	st := &State{device: p.device, c: c, fingerprint: prints.hold(), base: base.hold()}
	n := len(c.Tensors())
	st.params = make([]compute.Buffer, n)
	st.owner = make([]int, n)
	if moments {
		st.m, st.v = make([]compute.Buffer, n), make([]compute.Buffer, n)
		st.owner = owners(c.Tensors(), p.bundles, p.device.Count())
	}
	return st, nil
}

// buffers are the tensors of a part.
func (s *State) buffers(p part) []compute.Buffer { return [...][]compute.Buffer{s.params, s.m, s.v}[p] }

// put uploads tensor i of a part. The caller holds run.
func (s *State) put(p part, i int, v []float32) error {
	t := s.c.Tensors()[i]
	return try("upload tensor "+t.Name, func() (err error) {
		s.buffers(p)[i], err = upload(s.device, s.owner[i], v, t.Shape...)
		return err
	})
}

// fillMoments makes the moments that have not been uploaded zeros, on the device.
func (p *core) fillMoments(s *State) error {
	moments := []part{partFirst, partSecond}
	return s.use(nil, func() error {
		return p.device.abreast("make moments", len(moments)*len(s.params), func(i int) error {
			return p.fillMoment(s, moments[i%len(moments)], i/len(moments))
		})
	})
}

// fillMoment makes tensor i of a moment zeros, unless it is there. The caller holds run.
func (p *core) fillMoment(s *State, moment part, i int) error {
	of := s.buffers(moment)
	if of[i] != nil {
		return nil
	}
	fills, err := p.group(kindFill)
	if err != nil {
		return err
	}
	return try("make moments", func() (err error) {
		of[i], err = fills[i].fill(s.owner[i], 0, 0, 0)
		return err
	})
}

// use calls f while it holds run, unless the state cannot be used, and adds the time that f
// takes to busy, unless that is nil.
func (s *State) use(busy *time.Duration, f func() error) error {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if busy != nil {
		defer func(begin time.Time) { *busy += time.Since(begin) }(time.Now())
	}
	return f()
}

// Download copies the state to the host, bit for bit.
func (s *State) Download() (Snapshot, error) {
	if s.m == nil && s.consumer == "" {
		return Snapshot{}, fmt.Errorf("download state: %w: the state has no moments", ErrInput)
	}
	return sourceOf(s.c, partCount, s.step, s.reader()).Snapshot()
}

// reader downloads the state's tensors, one at a time.
func (s *State) reader() tensorReader {
	shapes := s.c.Tensors()
	return func(p part, i int, into []float32) ([]float32, error) {
		s.device.run.Lock()
		defer s.device.run.Unlock()
		if err := s.usable(); err != nil {
			return nil, fmt.Errorf("download state: %w", err)
		}
		v := sized(into, shapes[i].Elements())
		err := try("download state", func() error { return fetch(s.buffers(p)[i], v) })
		s.device.ended.Add(1)
		return v, err
	}
}

// Step is the number of updates applied.
func (s *State) Step() int64 { return s.step }

// Config is the policy's configuration.
func (s *State) Config() Config { return s.c }

// Free releases the device memory. Freeing twice is fine.
func (s *State) Free() {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	s.release()
}

func (s *State) release() {
	if !s.freed {
		s.freed = true
		free(s.params)
		free(s.m)
		free(s.v)
		s.dropCopies()
		s.fingerprint.release()
		s.base.release()
	}
}

// pass gives all that the state has to a new one, and records what has consumed it. The
// caller holds run.
func (s *State) pass(consumer string) *State {
	next := *s
	next.sum = nil // it changes
	*s = State{device: s.device, c: s.c, step: s.step, consumer: consumer}
	return &next
}

// usable returns an error if the state was freed or consumed, or its device closed. The
// caller holds run.
func (s *State) usable() error {
	switch {
	case s.device.closed:
		return ErrClosed
	case s.consumer != "":
		return fmt.Errorf("%w by %s", ErrConsumed, s.consumer)
	case s.freed:
		return ErrFreed
	}
	return nil
}

// check returns an error if the programs cannot use the state. The caller holds run.
func (p *core) check(s *State) error {
	if s.device != p.device || s.c.shape() != p.c.shape() {
		return fmt.Errorf("%w: the state is of another device or configuration", ErrInput)
	}
	if s.base != nil {
		if err := p.checkBase(s.base); err != nil {
			return err
		}
	}
	return s.usable()
}
