package model

import (
	"fmt"
	"time"
)

// Loading is how long the parts of a load took. They pass at the same time, and while the
// tensors' bytes are read.
type Loading struct {
	// Upload is the time for which tensors were copied to the device, or made there.
	Upload time.Duration
	// Fingerprint is the time of computing the fingerprint.
	Fingerprint time.Duration
}

// LoadVersion is Load, and computes the state's fingerprint tensor by tensor while the next
// ones are read: Fingerprint has it then.
func (p *Programs) LoadVersion(src Source) (*State, Loading, error) {
	s, err := p.emptyFrom(src, true)
	if err != nil {
		return nil, Loading{}, fmt.Errorf("upload state: %w", err)
	}
	l := loader{p: p, s: s, there: make(chan place, int(partCount)*len(s.params))}
	summed := make(chan error, 1)
	go func() { summed <- l.addUp(!src.moments) }()
	s.step, err = src.each(true, l.put)
	if err != nil {
		s.Free() // then addUp ends with an error, whatever it does
	}
	close(l.there)
	if failed := <-summed; err == nil {
		err = failed
	}
	if err == nil {
		err = l.end()
	}
	l.free()
	if err != nil {
		s.Free()
		return nil, Loading{}, fmt.Errorf("upload state: %w", err)
	}
	return s, Loading{Upload: l.uploaded + l.made, Fingerprint: l.summed}, nil
}

// loader loads a state. put is called by one goroutine, addUp by another.
type loader struct {
	p     *Programs
	s     *State
	tally tally
	there chan place // tensors whose lanes are not added yet; it has room for all
	// The times of put, and of addUp.
	uploaded, made, summed time.Duration
}

func (l *loader) put(p part, i int, v []float32) error {
	if err := l.s.use(&l.uploaded, func() error { return l.s.put(p, i, v) }); err != nil {
		return err
	}
	l.there <- place{p, i}
	return nil
}

// addUp adds up the fingerprint of the tensors as they come. It first makes the moments, if
// none come.
func (l *loader) addUp(makes bool) error {
	if makes {
		for i := range l.s.params {
			for _, moment := range []part{partFirst, partSecond} {
				if err := l.s.use(&l.made, func() error { return l.p.fillMoment(l.s, moment, i) }); err != nil {
					return err
				}
				if err := l.add(place{moment, i}); err != nil {
					return err
				}
			}
		}
	}
	for at := range l.there {
		if err := l.add(at); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) add(at place) error {
	return l.s.use(&l.summed, func() error { return l.tally.add(l.s, at.part, at.i) })
}

// end makes the fingerprint the state's.
func (l *loader) end() error {
	return l.s.use(&l.summed, func() error {
		sum, err := l.tally.end(l.s)
		if err == nil {
			l.s.sum = &sum
		}
		return err
	})
}

func (l *loader) free() {
	l.s.device.run.Lock()
	defer l.s.device.run.Unlock()
	l.tally.free()
}
