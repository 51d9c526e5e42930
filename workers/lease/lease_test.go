package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
)

// holder has a device, and is asked at the server's side of nothing.
func holder() *Holder {
	h := New("w", "mine", func(context.Context, []byte, ...any) error { return nil })
	h.Computes("steps", activities.DeviceInfo{Fingerprint: "f"})
	return h
}

// free tells whether the slot is there.
func free(t *testing.T, h *Holder) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	permit, err := h.Slot.ReserveSlot(ctx, nil)
	if err == nil {
		require.NotNil(t, permit)
		h.Slot.ReleaseSlot(nil)
	}
	return err == nil
}

func acquire(t *testing.T, h *Holder, run string) activities.Lease {
	l, err := h.Acquire(t.Context(), activities.AcquireInput{Run: run})
	require.NoError(t, err)
	return l
}

// hold holds a lease as an activity.
func hold(t *testing.T, h *Holder, l activities.Lease) (end func() activities.HoldResult) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(h.Hold)
	type answer struct {
		r   activities.HoldResult
		err error
	}
	out := make(chan answer, 1)
	go func() {
		v, err := env.ExecuteActivity(h.Hold, activities.HoldInput{Lease: l.ID})
		var r activities.HoldResult
		if err == nil {
			err = v.Get(&r)
		}
		out <- answer{r, err}
	}()
	require.Eventually(t, func() bool {
		h.Slot.mu.Lock()
		defer h.Slot.mu.Unlock()
		return h.given == nil || h.given.held
	}, time.Second, time.Millisecond)
	return func() activities.HoldResult {
		got := <-out
		require.NoError(t, got.err)
		return got.r
	}
}

// A lease is one run's until it is given back; meanwhile nobody else is asked for. Then the next one comes.
func TestOneRunAtATime(t *testing.T) {
	h := holder()
	var has []string
	h.Given = func(string) func() {
		has = append(has, "a run")
		return func() { has = append(has, "nobody") }
	}
	require.True(t, free(t, h))
	l := acquire(t, h, "first")
	require.Equal(t, activities.Lease{ID: l.ID, Worker: "w", Queue: "steps", Holder: "mine"}, l)
	info, err := h.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, activities.DeviceInfo{Fingerprint: "f", Busy: "first"}, info)
	require.False(t, free(t, h))
	_, err = h.Acquire(t.Context(), activities.AcquireInput{Run: "second"})
	require.ErrorIs(t, err, errNone)

	end := hold(t, h, l)
	require.False(t, free(t, h))
	_, err = h.Release(t.Context(), activities.HoldInput{Lease: "another"})
	require.NoError(t, err)
	require.False(t, free(t, h), "only who has it gives it back")
	_, err = h.Release(t.Context(), activities.HoldInput{Lease: l.ID})
	require.NoError(t, err)
	require.Equal(t, activities.HoldResult{End: activities.LeaseGivenBack}, end())
	require.True(t, free(t, h))
	acquire(t, h, "second")
	require.Equal(t, []string{"a run", "nobody", "a run"}, has)
}

// The slot is one poll's: two runs never come for one device.
func TestSlotIsOnePolls(t *testing.T) {
	h := holder()
	_, err := h.Slot.ReserveSlot(t.Context(), nil)
	require.NoError(t, err)
	require.False(t, free(t, h))
	acquire(t, h, "a")
	h.Slot.ReleaseSlot(nil)
	require.False(t, free(t, h))
}

// A lease that nobody holds is free again, and is refused then.
func TestUnheldLeaseIsFreeAgain(t *testing.T) {
	h := holder()
	h.unheld = 10 * time.Millisecond
	l := acquire(t, h, "a")
	require.Eventually(t, func() bool { return free(t, h) }, time.Second, time.Millisecond)
	require.Equal(t, activities.LeaseRefused, hold(t, h, l)().End)

	h = holder()
	h.unheld = 50 * time.Millisecond
	l = acquire(t, h, "a")
	end := hold(t, h, l)
	time.Sleep(100 * time.Millisecond)
	require.False(t, free(t, h), "one that is held stays")
	require.Equal(t, activities.LeaseRefused, hold(t, h, l)().End, "it is held once")
	h.Ends(activities.HoldResult{End: activities.LeaseDrained})
	require.Equal(t, activities.LeaseDrained, end().End)
}

// What ends the process that computes ends the lease, with its reason, and no other is given before there is a new one.
func TestLeaseEndsWithWhatComputes(t *testing.T) {
	h := holder()
	end := hold(t, h, acquire(t, h, "a"))
	lost := activities.HoldResult{End: activities.LeaseLost, Reason: "it was killed", Signal: "killed", Step: "Update, activity 7", Running: true}
	h.Ends(lost)
	require.Equal(t, lost, end())
	require.Equal(t, "lost: it was killed (during Update, activity 7)", lost.String())
	require.False(t, free(t, h))
	h.Computes("other", activities.DeviceInfo{Fingerprint: "f"})
	require.True(t, free(t, h))
	require.Equal(t, "other", acquire(t, h, "b").Queue)

	h = holder()
	h.Stop()
	require.False(t, free(t, h), "a worker that stops gives no lease")
}

// A session of the SDK's and a lease exclude each other.
func TestOutsideSession(t *testing.T) {
	h := holder()
	end, ok := h.Outside()
	require.True(t, ok)
	require.False(t, free(t, h))
	end()
	require.True(t, free(t, h))
	acquire(t, h, "a")
	_, ok = h.Outside()
	require.False(t, ok)
}

// A holder that the server does not know any more, or that has not heard from it for as long as the run would wait, ends its
// lease by itself: also one that was frozen, and wakes.
func TestLateHolderEndsItsLease(t *testing.T) {
	gone := serviceerror.NewNotFound("workflow execution already completed")
	for name, c := range map[string]struct {
		beats   []error
		silence time.Duration
		want    string
	}{
		"timed out":     {[]error{nil, gone}, time.Hour, "the run has this lease no more"},
		"cancelled":     {[]error{nil, temporal.NewCanceledError()}, time.Hour, "canceled"},
		"server away":   {[]error{errors.New("unavailable"), errors.New("unavailable")}, time.Nanosecond, "the server has not answered"},
		"server's nap":  {[]error{errors.New("unavailable"), nil, gone}, time.Hour, "the run has this lease no more"},
		"frozen, wakes": {[]error{gone}, time.Nanosecond, "the run has this lease no more"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			h := New("w", "mine", func(context.Context, []byte, ...any) error {
				n++
				return c.beats[min(n, len(c.beats))-1]
			})
			ticks := make(chan time.Time, len(c.beats))
			for range c.beats {
				ticks <- time.Time{}
			}
			lost := make(chan error, 1)
			h.beat(t.Context(), nil, c.silence, ticks, lost)
			require.ErrorContains(t, <-lost, c.want)
		})
	}
}
