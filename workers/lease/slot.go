package lease

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// Slot is the one slot of a worker of activities. It is there while free says so: meanwhile the worker asks for an activity, and
// otherwise it asks for none, so that none waits for a worker that cannot do it. It implements worker.SlotSupplier.
type Slot struct {
	free func() bool

	mu      sync.Mutex
	used    bool
	changed chan struct{} // closed at the next change
}

// NewSlot makes a slot. free is called while the slot is locked.
func NewSlot(free func() bool) *Slot { return &Slot{free: free, changed: make(chan struct{})} }

// Change changes what free looks at, and wakes the worker.
func (s *Slot) Change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// ReserveSlot implements worker.SlotSupplier.
func (s *Slot) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		s.mu.Lock()
		there, changed := !s.used && s.free(), s.changed
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
func (s *Slot) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed implements worker.SlotSupplier.
func (s *Slot) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot implements worker.SlotSupplier.
func (s *Slot) ReleaseSlot(worker.SlotReleaseInfo) { s.Change(func() { s.used = false }) }

// MaxSlots implements worker.SlotSupplier.
func (s *Slot) MaxSlots() int { return 1 }
