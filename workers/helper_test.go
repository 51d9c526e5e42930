package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The slot for a block of another worker's run is there for one at a time, and not while a run has a
// session here; who waits for it gets it when the last session has ended.
func TestSpareIsForOneWhileNoSessionIsOpen(t *testing.T) {
	s := newSpare()
	now, stop := context.WithCancel(t.Context())
	stop() // a call with now does not wait
	taken := func() bool {
		permit, err := s.ReserveSlot(now, nil)
		return err == nil && permit != nil
	}
	require.True(t, taken())
	require.False(t, taken(), "it is used")
	require.Nil(t, s.TryReserveSlot(nil))
	s.ReleaseSlot(nil)

	first, second := s.take(), s.take()
	require.False(t, taken(), "a run has a session")
	got := make(chan error)
	go func() {
		_, err := s.ReserveSlot(t.Context(), nil)
		got <- err
	}()
	first()
	require.False(t, taken(), "another run has one")
	second()
	require.NoError(t, <-got)
	require.False(t, taken(), "the one that waited has it")
	s.ReleaseSlot(nil)
	require.True(t, taken())
}
