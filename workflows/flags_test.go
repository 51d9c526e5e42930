package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
)

// A run keeps the flags of the worker that resolved it, whatever those of the workers that
// decide later are.
func TestRunKeepsItsFlags(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, flags: &activities.Flags{ContinueAfter: 1, SessionHeartbeat: 7 * time.Second}}
	p := newPlay(t, s)
	p.w.ContinueAfter = 2
	p.train(nil)
	c := carried(t, p)
	require.Equal(t, 1, c.Next)
	require.Equal(t, s.flags, c.Flags)

	again := &stage{plan: testPlan()}
	q := newPlay(t, again) // a worker that leaves it to the server
	q.train(c)
	require.Equal(t, 2, carried(t, q).Next)

	c.Flags = nil // a run from before keeps to the worker's
	q = newPlay(t, &stage{plan: testPlan()})
	q.train(c)
	require.Equal(t, 3, q.result().Iterations)

	w := (&Workflows{ContinueAfter: 4}).with(s.flags)
	require.Equal(t, &Workflows{ContinueAfter: 1, SessionHeartbeat: 7 * time.Second}, w)
}

func TestHeartbeatByModelSize(t *testing.T) {
	for _, c := range []struct {
		flag       time.Duration
		parameters int64
		want       time.Duration
	}{
		{5 * time.Second, 900_000, 5 * time.Second},
		{5 * time.Second, 100_000_000, 5 * time.Second},
		{5 * time.Second, 149_999_999, 5 * time.Second},
		{5 * time.Second, 150_000_000, 6 * time.Second},
		{5 * time.Second, 494_000_000, 12 * time.Second},
		{20 * time.Second, 494_000_000, 27 * time.Second},
		{20 * time.Second, 1_540_000_000, 30 * time.Second},
		{45 * time.Second, 1_540_000_000, 45 * time.Second},
	} {
		f := activities.Flags{ContinueAfter: 3, SessionHeartbeat: c.flag}.ForModel(c.parameters)
		require.Equal(t, activities.Flags{ContinueAfter: 3, SessionHeartbeat: c.want, LeaseHeartbeat: c.flag}, f, "%v", c)
		f = activities.Flags{SessionHeartbeat: c.flag, LeaseHeartbeat: time.Second}.ForModel(c.parameters)
		require.Equal(t, activities.Flags{SessionHeartbeat: c.want, LeaseHeartbeat: time.Second}, f, "%v", c)
	}
}

// A run's own flags replace those of the worker, and nothing else.
func TestRunsFlagsKeepTheRest(t *testing.T) {
	w := &Workflows{SessionHeartbeat: time.Second, ContinueAfter: 1, Converter: converter.GetDefaultDataConverter()}
	require.Same(t, w, w.with(nil))
	want := &Workflows{SessionHeartbeat: time.Minute, ContinueAfter: 7, Converter: w.Converter}
	require.Equal(t, want, w.with(&activities.Flags{SessionHeartbeat: time.Minute, ContinueAfter: 7}))
}
