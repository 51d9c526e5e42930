package model

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
)

func (p *core) loadFrozen(src Source) (*State, error) {
	if !p.sh.Frozen || p.c.Adapted() {
		return nil, fmt.Errorf("upload frozen network: %w: the programs are not those of one", ErrInput)
	}
	st, err := p.emptyFrom(src, false)
	if err != nil {
		return nil, fmt.Errorf("upload frozen network: %w", err)
	}
	if p.copied() {
		st.copies = make([]compute.Buffer, len(st.params)) // made here, not of params
	}
	if _, err := src.each(false, func(_ part, i int, v []float32) error {
		return st.use(nil, func() error { return p.putFrozen(st, i, v) })
	}); err != nil {
		st.Free()
		return nil, fmt.Errorf("upload frozen network: %w", err)
	}
	return st, nil
}

// putFrozen uploads tensor i as the programs read it. The caller holds run.
func (p *core) putFrozen(s *State, i int, v []float32) error {
	t := s.c.Tensors()[i]
	if p.net.readDType(i, t) != dtypes.BFloat16 {
		return s.put(partParams, i, v)
	}
	return try("upload tensor "+t.Name, func() (err error) {
		s.copies[i], err = upload(s.device, s.owner[i], bfloat16.FromFloat32s(v...), t.Shape...)
		return err
	})
}
