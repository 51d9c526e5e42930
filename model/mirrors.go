package model

import "github.com/gomlx/compute"

// make makes the copies on device k, unless they are there. Without owners all belong to the first
// device. The caller holds run.
func (m *mirrors) make(d *Device, k int, of []compute.Buffer, owner []int) error {
	if k >= len(*m) {
		*m = append(*m, make([][]compute.Buffer, k+1-len(*m))...)
	}
	if (*m)[k] != nil {
		return nil
	}
	return try("copy to another device", func() (err error) {
		out := make([]compute.Buffer, len(of))
		defer func() {
			if (*m)[k] == nil { // also after a panic
				free(out)
			}
		}()
		for i, b := range of {
			if b == nil || owner != nil && owner[i] == k {
				continue
			}
			if out[i], err = b.CopyToDevice(d.numbers[k]); err != nil {
				return err
			}
			d.ended.Add(1)
		}
		(*m)[k] = out
		return nil
	})
}

// tables are what programs read besides weights and rows, with their copies on other devices.
type tables struct {
	first   []compute.Buffer // on the first device
	mirrors mirrors
}

// on are the buffers on device k, on which spread has been.
func (t *tables) on(k int) []compute.Buffer {
	if k == 0 {
		return t.first
	}
	return t.mirrors[k]
}

// free frees the buffers on all devices. The caller holds run.
func (t *tables) free() {
	free(t.first)
	t.first = nil
	t.mirrors.free()
}

// spread copies what the programs read, of a state and besides, to the first n devices, where it is
// not there since the load or the last update. The caller holds run.
func (p *core) spread(s *State, n int, read ...*tables) error {
	n = min(n, p.device.Count())
	if n <= 1 {
		return nil
	}
	if err := p.gather(s, 0); err != nil {
		return err
	}
	for k := 1; k < n; k++ {
		if s.base != nil {
			if err := s.base.mirrors.make(p.device, k, s.base.buffers, nil); err != nil {
				return err
			}
		}
		for _, of := range read {
			if err := of.mirrors.make(p.device, k, of.first, nil); err != nil {
				return err
			}
		}
		if err := p.gather(s, k); err != nil {
			return err
		}
	}
	return nil
}

// gather copies to device k what the programs read of a state and other devices own. The caller
// holds run.
func (p *core) gather(s *State, k int) error {
	own, err := p.own(s)
	if err != nil {
		return err
	}
	return p.mirrorsOf(s).make(p.device, k, own, s.owner)
}

// mirrorsOf are the mirrors of what the programs read of a state: its parameters, or their
// copies in the compute dtype.
func (p *core) mirrorsOf(s *State) *mirrors {
	if p.copied() {
		return &s.mirrors[1]
	}
	return &s.mirrors[0]
}

// at are the programs as they run on device k, on which spread has been.
func (p *core) at(k int) *core {
	if k == 0 {
		return p
	}
	q := *p
	q.k = k
	return &q
}

// mirrors are copies of buffers on devices that do not own them, by device: nil where there is none
// yet. A buffer that the device owns has none there.
type mirrors [][]compute.Buffer

// free frees the copies on all devices. The caller holds run.
func (m *mirrors) free() {
	for _, on := range *m {
		free(on)
	}
	*m = nil
}
