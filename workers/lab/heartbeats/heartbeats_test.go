package heartbeats

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

func TestOptions(t *testing.T) {
	good := Options{TimeOuts: []time.Duration{time.Second, 3 * time.Second}, Minutes: 1, Loads: []int{0, 10}, Restarts: 1}
	require.NoError(t, good.Check())
	require.NoError(t, Options{TimeOuts: good.TimeOuts}.Check(), "phases can be left out")
	for name, c := range map[string]struct {
		edit func(*Options)
		want string
	}{
		"none":             {func(o *Options) { o.TimeOuts = nil }, "--timeouts names none"},
		"not ascending":    {func(o *Options) { o.TimeOuts = []time.Duration{3 * time.Second, time.Second} }, "ascending"},
		"twice":            {func(o *Options) { o.TimeOuts = []time.Duration{time.Second, time.Second} }, "each once"},
		"under a second":   {func(o *Options) { o.TimeOuts = []time.Duration{500 * time.Millisecond} }, "--timeouts has 500ms"},
		"negative minutes": {func(o *Options) { o.Minutes = -1 }, "--minutes is -1"},
		"odd minutes":      {func(o *Options) { o.Minutes = math.NaN() }, "--minutes is NaN"},
		"negative load":    {func(o *Options) { o.Loads = []int{-1} }, "--load has -1"},
		"restarts":         {func(o *Options) { o.Restarts = -1 }, "--restarts is -1"},
	} {
		o := good
		c.edit(&o)
		require.ErrorContains(t, o.Check(), c.want, name)
	}
}

// leases are leases that end as said, a second after they began, and half a second before the next.
func leases(ends ...End) (held []Held) {
	for i, end := range ends {
		h := Held{From: moment(1.5 * float64(i)), End: end, Reason: "so"}
		if end != "" {
			h.Until = h.From.Add(time.Second)
		}
		held = append(held, h)
	}
	return held
}

func moment(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestLosses(t *testing.T) {
	held := leases(Silent, ByHolder, activities.LeaseRefused, Silent, "")
	all := lossesIn(held, moment(0), moment(100))
	require.Equal(t, Losses{
		Silent: 2, ByHolder: 1, Other: 1, Reasons: []string{"ended by its holder: so", "refused: so"}, Again: []float64{0.5, 0.5, 0.5, 0.5},
	}, all)
	require.Equal(t, 4, all.All())
	require.Equal(t, Losses{Silent: 1, Again: []float64{0.5}}, lossesIn(held, moment(4.1), moment(5.6)), "what ended before or after does not count")
	require.Zero(t, lossesIn(nil, moment(0), moment(1)))

	sum := Losses{Reasons: []string{"1", "2", "3", "4"}}
	sum.add(all)
	sum.add(all)
	require.Equal(t, 8, sum.All())
	require.Len(t, sum.Reasons, mostReasons)
	require.Len(t, sum.Again, 8)

	require.Equal(t, &held[1], at(held, moment(2)))
	require.Nil(t, at(held, moment(2.7)), "between two leases")
	require.Equal(t, &held[4], at(held, moment(99)), "one that lasts")
}

func TestSmallest(t *testing.T) {
	lost, none := Losses{Silent: 1}, Losses{}
	f := Figures{
		Loads: []Load{{Processes: 0}, {Processes: 10}, {Processes: 30}},
		TimeOuts: []TimeOut{
			{Seconds: 1, Loads: []Losses{lost, none, none}},
			{Seconds: 2, Loads: []Losses{none, none, lost}},
			{Seconds: 3, Loads: []Losses{none, none, none}},
		},
	}
	n, ok := f.Smallest(10)
	require.True(t, ok)
	require.Equal(t, 1, n, "one that loses at a smaller load does not do")
	n, ok = f.Smallest(30)
	require.True(t, ok)
	require.Equal(t, 2, n)
	_, ok = f.Smallest(20)
	require.False(t, ok, "not measured")
	f.TimeOuts = f.TimeOuts[:1]
	_, ok = f.Smallest(10)
	require.False(t, ok, "each loses")
}

// A lease that ends is noted with its reason, and another is asked for, until the workflow is told to stop. Then it gives back the last.
func TestWatchLease(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	name := func(r steps.Routing) activity.RegisterOptions { return activity.RegisterOptions{Name: r.Name} }
	env.RegisterActivityWithOptions(func(context.Context) (activities.DeviceInfo, error) {
		return activities.DeviceInfo{Fingerprint: "f"}, nil
	}, name(steps.Describe.Routing))
	acquired := 0
	env.RegisterActivityWithOptions(func(ctx context.Context, in activities.AcquireInput) (activities.Lease, error) {
		require.Equal(t, activities.LeaseQueue("f"), activity.GetInfo(ctx).TaskQueue)
		require.NotEmpty(t, in.Run)
		acquired++
		return activities.Lease{ID: strconv.Itoa(acquired), Holder: "holder"}, nil
	}, name(steps.Acquire.Routing))
	released := make(chan string, 1)
	env.RegisterActivityWithOptions(func(ctx context.Context, in activities.HoldInput) (activities.HoldResult, error) {
		info := activity.GetInfo(ctx)
		require.Equal(t, "holder", info.TaskQueue)
		require.Equal(t, 3*time.Second, info.HeartbeatTimeout)
		switch in.Lease {
		case "1":
			return activities.HoldResult{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil)
		case "2":
			return activities.HoldResult{}, temporal.NewApplicationError("the server has not answered", "")
		case "3":
			return activities.HoldResult{End: activities.LeaseRefused, Reason: "late"}, nil
		}
		env.SignalWorkflow(stopSignal, nil)
		require.Equal(t, in.Lease, <-released)
		return activities.HoldResult{End: activities.LeaseGivenBack}, nil
	}, name(steps.Hold.Routing))
	env.RegisterActivityWithOptions(func(_ context.Context, in activities.HoldInput) (struct{}, error) {
		released <- in.Lease
		return struct{}{}, nil
	}, name(steps.Release.Routing))
	env.ExecuteWorkflow(watchLease, 3*time.Second, []Held(nil))
	require.NoError(t, env.GetWorkflowError())
	var held, asked []Held
	require.NoError(t, env.GetWorkflowResult(&held))
	answer, err := env.QueryWorkflow(heldQuery)
	require.NoError(t, err)
	require.NoError(t, answer.Get(&asked))
	require.Equal(t, held, asked)
	ends := []End{}
	for _, h := range held {
		require.False(t, h.Until.Before(h.From))
		ends = append(ends, h.End)
	}
	require.Equal(t, []End{Silent, ByHolder, activities.LeaseRefused, activities.LeaseGivenBack}, ends)
	require.Contains(t, held[1].Reason, "the server has not answered")
}

// A load takes processors until it is ended, and leaves no process.
func TestBusy(t *testing.T) {
	b, err := beginBusy(2)
	require.NoError(t, err)
	for _, r := range b.running {
		require.DirExists(t, "/proc/"+strconv.Itoa(r.pid))
	}
	was := b.running
	b.end()
	for _, r := range was {
		require.NoDirExists(t, "/proc/"+strconv.Itoa(r.pid))
	}
	b.end() // nothing is left to end

	t.Setenv("PATH", t.TempDir())
	_, err = beginBusy(1)
	require.ErrorContains(t, err, "start a busy process")
}
