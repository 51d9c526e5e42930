package workers

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"

	"github.com/reprise-rl/reprise/activities"
)

// startHelper serves blocks of runs that have their sessions on other workers, while no run has one
// here.
func (p *process) startHelper(o worker.Options, free *spare, fingerprint string) error {
	o, err := slotted(o, free)
	if err != nil {
		return err
	}
	w := worker.New(p.Client, activities.HelperQueue(fingerprint), o)
	register(w, p.device.HelperSteps())
	return p.start(w)
}

// spare is the one slot for a block of a run whose session is elsewhere. It is not there while a run
// has a session here, so that the worker does not ask for blocks then.
type spare struct {
	mu       sync.Mutex
	sessions int
	used     bool
	changed  chan struct{} // closed at the next change
}

func newSpare() *spare { return &spare{changed: make(chan struct{})} }

// change changes the slot, and wakes those who wait for it.
func (s *spare) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// take removes the slot until the function that it returns is called.
func (s *spare) take() (back func()) {
	s.change(func() { s.sessions++ })
	return func() { s.change(func() { s.sessions-- }) }
}

// ReserveSlot implements worker.SlotSupplier.
func (s *spare) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		s.mu.Lock()
		there, changed := s.sessions == 0 && !s.used, s.changed
		s.used = s.used || there
		s.mu.Unlock()
		if there {
			return &worker.SlotPermit{}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot implements worker.SlotSupplier. Nothing takes the slot but a poll.
func (s *spare) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed implements worker.SlotSupplier.
func (s *spare) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot implements worker.SlotSupplier.
func (s *spare) ReleaseSlot(worker.SlotReleaseInfo) { s.change(func() { s.used = false }) }

// MaxSlots implements worker.SlotSupplier.
func (s *spare) MaxSlots() int { return 1 }

// bothUntil calls first and then second, and the function that it returns calls what second returned
// and then what first returned.
func bothUntil(first, second func() (end func())) func() (end func()) {
	return func() func() {
		endFirst := first()
		endSecond := second()
		return func() {
			endSecond()
			endFirst()
		}
	}
}
