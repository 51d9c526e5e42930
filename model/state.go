package model

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
)

// ErrFreed is returned when a freed State is used.
var ErrFreed = errors.New("state was freed")

// State is the training state of a policy or a critic on a device: parameters,
// AdamW's moments and the number of updates applied. It never changes; an update
// makes a new one. All Programs of the same device and configuration can use it.
type State struct {
	device *Device
	c      Config
	// params, m and v are in Config.Tensors order; all guarded by the device's run.
	// A state of UploadParams has neither m nor v.
	params, m, v []compute.Buffer
	step         int64
	fingerprint  *program
	freed        bool
}

// NewState uploads parameters with zero moments, before the first update.
func (p *Programs) NewState(params Params) (*State, error) {
	return p.Upload(NewSnapshot(params))
}

// Upload copies a snapshot to the device. Its configuration must have the
// programs' shapes.
func (p *Programs) Upload(s Snapshot) (*State, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("upload state: %w: %w", ErrInput, err)
	}
	return p.put(s, true)
}

// UploadParams copies parameters without moments to the device, a third of a training
// state. It is for a reference policy, which Score uses, and for a policy that only
// generates. Updates and Download return an ErrInput for it.
func (p *Programs) UploadParams(params Params) (*State, error) {
	if err := params.check(); err != nil {
		return nil, fmt.Errorf("upload state: %w: %w", ErrInput, err)
	}
	return p.put(Snapshot{Params: params}, false)
}

func (p *Programs) put(s Snapshot, moments bool) (*State, error) {
	if s.Params.Config.shape() != p.c.shape() {
		return nil, fmt.Errorf("upload state: %w: another configuration than the programs'", ErrInput)
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if p.device.closed {
		return nil, fmt.Errorf("upload state: %w", ErrClosed)
	}
	prog, err := p.program(kindFingerprint)
	if err != nil {
		return nil, fmt.Errorf("upload state: %w", err)
	}
	st := &State{device: p.device, c: s.Params.Config, step: s.Step, fingerprint: prog.hold()}
	type part struct {
		to   *[]compute.Buffer
		from Params
	}
	parts := []part{{&st.params, s.Params}}
	if moments {
		parts = append(parts, part{&st.m, s.M}, part{&st.v, s.V})
	}
	err = try("upload state", func() error {
		for _, x := range parts {
			for i, t := range st.c.Tensors() {
				b, err := upload(p.device, x.from.Values[i], t.Shape...)
				if err != nil {
					return fmt.Errorf("tensor %q: %w", t.Name, err)
				}
				*x.to = append(*x.to, b)
			}
		}
		return nil
	})
	if err != nil {
		st.release()
		return nil, err
	}
	return st, nil
}

// Download copies the state to the host, bit for bit.
func (s *State) Download() (Snapshot, error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.usable(); err != nil {
		return Snapshot{}, fmt.Errorf("download state: %w", err)
	}
	if s.m == nil {
		return Snapshot{}, fmt.Errorf("download state: %w: the state has no moments", ErrInput)
	}
	out := Snapshot{Step: s.step}
	err := try("download state", func() (err error) {
		if out.Params, err = fetchParams(s.c, s.params); err != nil {
			return err
		}
		if out.M, err = fetchParams(s.c, s.m); err != nil {
			return err
		}
		out.V, err = fetchParams(s.c, s.v)
		return err
	})
	return out, err
}

// fetchParams downloads buffers in Config.Tensors order. The caller holds run.
func fetchParams(c Config, buffers []compute.Buffer) (Params, error) {
	p := Params{Config: c}
	for i, t := range c.Tensors() {
		v, err := download[float32](buffers[i], t.Elements())
		if err != nil {
			return Params{}, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		p.Values = append(p.Values, v)
	}
	return p, nil
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
		s.fingerprint.release()
	}
}

// usable returns an error if the state was freed or its device closed. The caller holds run.
func (s *State) usable() error {
	switch {
	case s.device.closed:
		return ErrClosed
	case s.freed:
		return ErrFreed
	}
	return nil
}

// check returns an error if the programs cannot use the state. The caller holds run.
func (p *Programs) check(s *State) error {
	if s.device != p.device || s.c.shape() != p.c.shape() {
		return fmt.Errorf("%w: the state is of another device or configuration", ErrInput)
	}
	return s.usable()
}
