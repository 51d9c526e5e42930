package lease

import (
	"context"

	"go.temporal.io/sdk/worker"
)

// Slot is the slot of the worker that serves the line: it is there while the device is free, so that nobody leaves the line
// for a device that is not.
type Slot struct{ *Holder }

// ReserveSlot implements worker.SlotSupplier.
func (s Slot) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		var changed chan struct{}
		free := false
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed = s.changed
		if free = s.computes != "" && !s.stopping && s.given == nil && s.outside == 0 && !s.asking; free {
			s.asking = true
		}
		s.mu.Unlock()
		if free {
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
func (s Slot) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed implements worker.SlotSupplier.
func (s Slot) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot implements worker.SlotSupplier.
func (s Slot) ReleaseSlot(worker.SlotReleaseInfo) { s.change(func() { s.asking = false }) }

// MaxSlots implements worker.SlotSupplier.
func (s Slot) MaxSlots() int { return 1 }
