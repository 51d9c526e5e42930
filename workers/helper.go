package workers

import (
	"go.temporal.io/sdk/worker"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workers/lease"
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
	*lease.Slot
	sessions int
}

func newSpare() *spare {
	s := &spare{}
	s.Slot = lease.NewSlot(func() bool { return s.sessions == 0 })
	return s
}

// take removes the slot until the function that it returns is called.
func (s *spare) take() (back func()) {
	s.Change(func() { s.sessions++ })
	return func() { s.Change(func() { s.sessions-- }) }
}
