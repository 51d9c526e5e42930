package model

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
)

// Base is the frozen weights of a base model on a device: matrices in the compute dtype,
// norms and biases in float32. States of policies and critics with adapters share it. Its
// memory is released when it has been freed and the last State that uses it has ended.
type Base struct {
	device *Device
	c      Config // of the policy, or of the critic, without adapters
	dtype  dtypes.DType
	// tensors are Config.Frozen of the programs that made the base.
	tensors []TensorShape
	buffers []compute.Buffer
	prints  group
	mirrors mirrors
	users   int  // it itself until it is freed, and its states; guarded by the device's run
	freed   bool // by Free
}

func (p *core) loadBase(src Source) (*Base, error) {
	b, err := p.uploadBase(src)
	if err != nil {
		return nil, fmt.Errorf("upload base model: %w", err)
	}
	return b, nil
}

func (p *core) uploadBase(src Source) (*Base, error) {
	if err := p.checkCritic(false); err != nil {
		return nil, err
	}
	if src.Config.shape() != p.c.Base().shape() {
		return nil, fmt.Errorf("%w: another configuration than the programs'", ErrInput)
	}
	b, err := p.emptyBase()
	if err != nil {
		return nil, err
	}
	if _, err := src.each(false, func(_ part, i int, v []float32) error { return b.put(i, v) }); err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}

// emptyBase is a base without its tensors.
func (p *core) emptyBase() (*Base, error) {
	if !p.c.Adapted() {
		return nil, fmt.Errorf("%w: the programs are not those of a model with adapters", ErrInput)
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if p.device.closed {
		return nil, ErrClosed
	}
	prints, err := p.group(kindBaseFingerprint)
	if err != nil {
		return nil, err
	}
	b := &Base{device: p.device, c: p.c.Base(), dtype: p.net.dtype, tensors: p.c.Frozen(), prints: prints.hold(), users: 1}
	b.buffers = make([]compute.Buffer, len(b.tensors))
	return b, nil
}

// put uploads tensor i.
func (b *Base) put(i int, v []float32) error {
	b.device.run.Lock()
	defer b.device.run.Unlock()
	if err := b.usable(); err != nil {
		return err
	}
	t := b.tensors[i]
	return try("upload tensor "+t.Name, func() (err error) {
		if frozenDType(t, b.dtype) == dtypes.BFloat16 {
			b.buffers[i], err = upload(b.device, 0, bfloat16.FromFloat32s(v...), t.Shape...)
		} else {
			b.buffers[i], err = upload(b.device, 0, v, t.Shape...)
		}
		return err
	})
}

// usable returns an error if the base was freed, or its device closed. The caller holds run.
func (b *Base) usable() error {
	switch {
	case b.device.closed:
		return ErrClosed
	case b.users == 0:
		return fmt.Errorf("base model: %w", ErrFreed)
	}
	return nil
}

// Config is the base model's configuration.
func (b *Base) Config() Config { return b.c }

// Fingerprint is a hash of the weights as they are on the device, as State.Fingerprint's. It
// depends on the compute dtype.
func (b *Base) Fingerprint() (string, error) {
	b.device.run.Lock()
	defer b.device.run.Unlock()
	if err := b.usable(); err != nil {
		return "", err
	}
	t := newTally(b.device)
	defer t.free()
	for i, x := range b.buffers {
		if err := t.addTensor(b.prints[i], 0, x, i, baseParts); err != nil {
			return "", fmt.Errorf("fingerprint base model: %w", err)
		}
	}
	sum, err := t.read()
	if err != nil {
		return "", fmt.Errorf("fingerprint base model: %w", err)
	}
	return digits(sum), nil
}

// Free ends the caller's use of the base. Freeing twice is fine.
func (b *Base) Free() {
	b.device.run.Lock()
	defer b.device.run.Unlock()
	if !b.freed {
		b.freed = true
		b.release()
	}
}

// hold adds a user. The caller holds run.
func (b *Base) hold() *Base {
	if b != nil {
		b.users++
	}
	return b
}

// release removes a user, and releases the memory if it was the last one. The caller holds run.
func (b *Base) release() {
	if b == nil {
		return
	}
	if b.users--; b.users == 0 {
		free(b.buffers)
		b.mirrors.free()
		b.prints.release()
	}
}

// baseOf gives the base for a state of a source, which the caller holds: nil without
// adapters. It loads the base if the source has only its weights; loaded is that one, which
// the caller frees.
func (p *core) baseOf(src Source) (b, loaded *Base, err error) {
	switch {
	case !p.c.Adapted():
		return nil, nil, nil
	case src.Base != nil:
		b = src.Base
	case src.Frozen != nil:
		if loaded, err = p.loadBase(*src.Frozen); err != nil {
			return nil, nil, err
		}
		b = loaded
	default:
		return nil, nil, fmt.Errorf("%w: adapters without their base model", ErrInput)
	}
	return b, loaded, p.checkBase(b)
}

// checkBase returns an error unless the programs' models can have the base.
func (p *core) checkBase(b *Base) error {
	switch {
	case b.device != p.device || b.c.body() != p.c.body() || len(b.tensors) < len(p.c.Frozen()):
		return fmt.Errorf("%w: the base model is of another device or configuration", ErrInput)
	case b.dtype != p.net.dtype:
		return fmt.Errorf("%w: the base model is in %s, the programs compute in %s", ErrInput, b.dtype, p.net.dtype)
	}
	return nil
}

// probeBase makes a base to test the programs with, on the device: norms of 1, noise in the
// other tensors. It is nil without adapters.
func (p *core) probeBase() (*Base, error) {
	if !p.c.Adapted() {
		return nil, nil
	}
	b, err := p.emptyBase()
	if err != nil {
		return nil, err
	}
	p.device.run.Lock()
	err = try("make weights", func() (err error) {
		b.buffers, err = p.fill(kindBaseFill, b.tensors, nil, probeTensor)
		return err
	})
	p.device.run.Unlock()
	if err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}
