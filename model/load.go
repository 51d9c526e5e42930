package model

import "time"

// Loading is how long the device took for the parts of a load.
type Loading struct {
	// Upload is the time for which tensors were copied to the device, or made there.
	Upload time.Duration
	// Fingerprint is the time of computing the fingerprint.
	Fingerprint time.Duration
}

// loader loads a state and adds up its fingerprint.
type loader struct {
	p     *core
	s     *State
	tally *tally
	took  Loading
}

func (l *loader) load(src Source) (err error) {
	l.s.step, err = src.each(true, func(p part, i int, v []float32) error {
		return l.take(p, i, func() error { return l.s.put(p, i, v) })
	})
	if err != nil {
		return err
	}
	for _, moment := range []part{partFirst, partSecond} {
		for i, there := range l.s.buffers(moment) {
			if there != nil {
				continue
			}
			if err := l.take(moment, i, func() error { return l.p.fillMoment(l.s, moment, i) }); err != nil {
				return err
			}
		}
	}
	return l.s.use(&l.took.Fingerprint, func() error {
		sum, err := l.tally.end(l.s)
		l.s.sum = &sum
		return err
	})
}

// take has tensor i of a part made, and adds up its fingerprint.
func (l *loader) take(p part, i int, make func() error) error {
	if err := l.s.use(&l.took.Upload, make); err != nil {
		return err
	}
	return l.s.use(&l.took.Fingerprint, func() error { return l.tally.add(l.s, p, i) })
}

func (l *loader) free() {
	l.s.device.run.Lock()
	defer l.s.device.run.Unlock()
	l.tally.free()
}
