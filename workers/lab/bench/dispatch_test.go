package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// made is a history in milliseconds: an activity is scheduled, begins and ends.
type made struct {
	events []*history.HistoryEvent
}

func (m *made) activity(name string, scheduled, started, done int) {
	at := func(ms int) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(int64(ms))) }
	id := int64(len(m.events) + 1)
	m.events = append(m.events,
		&history.HistoryEvent{EventId: id, EventTime: at(scheduled), EventType: enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
			Attributes: &history.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &history.ActivityTaskScheduledEventAttributes{ActivityType: &common.ActivityType{Name: name}}}},
		&history.HistoryEvent{EventId: id + 1, EventTime: at(started), EventType: enums.EVENT_TYPE_ACTIVITY_TASK_STARTED,
			Attributes: &history.HistoryEvent_ActivityTaskStartedEventAttributes{
				ActivityTaskStartedEventAttributes: &history.ActivityTaskStartedEventAttributes{ScheduledEventId: id}}},
		&history.HistoryEvent{EventId: id + 2, EventTime: at(done), EventType: enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
			Attributes: &history.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &history.ActivityTaskCompletedEventAttributes{ScheduledEventId: id}}},
	)
}

func TestDispatches(t *testing.T) {
	var m made
	m.activity("Resolve", 0, 1, 2)
	m.activity("internalSessionCreationActivity", 3, 4, 900)
	m.activity("Generate", 10, 12, 100)
	m.activity("Step", 107, 110, 120)
	m.activity("Update", 125, 126, 200)
	m.activity("Commit", 210, 211, 230) // the samples of the next iteration run beside it
	m.activity("Generate", 210, 214, 300)
	m.activity("Step", 305, 306, 310)
	m.activity("Report", 320, 321, 330)
	d := dispatches{}
	d.add(m.events)
	got := d.medians()
	require.Equal(t, []Dispatch{
		{Name: "generate", Begin: 0.003, Next: 0.006}, {Name: "step", Begin: 0.002, Next: 0.0075}, {Name: "update", Begin: 0.001, Next: 0.010}, {Name: "commit", Beside: true},
	}, rounded(got))

	var b strings.Builder
	printDispatches(&b, Tax{Dispatches: got, Steps: []Step{{Name: "update", Durable: 0.2, Direct: 0.19, More: 0.01}}})
	require.Regexp(t, `update +\+10\.0 +1\.0 +10\.0`, b.String())
	require.Regexp(t, `commit +beside the next generate`, b.String())
}

// rounded are dispatches to a tenth of a millisecond.
func rounded(all []Dispatch) []Dispatch {
	for i, d := range all {
		all[i].Begin, all[i].Next = float64(int(d.Begin*1e4+0.5))/1e4, float64(int(d.Next*1e4+0.5))/1e4
	}
	return all
}

func TestRollouts(t *testing.T) {
	var m made
	m.activity("Publish", 0, 1, 10)
	m.activity("Block", 11, 12, 100)
	m.activity("Block", 11, 13, 90)
	m.events[len(m.events)-3].GetActivityTaskScheduledEventAttributes().RetryPolicy = &common.RetryPolicy{MaximumAttempts: 1}
	m.activity("Generate", 110, 111, 115)
	m.activity("Step", 116, 117, 118)
	m.activity("Select", 120, 121, 122)
	m.activity("Generate", 200, 201, 250)
	m.activity("Select", 300, 301, 302)
	seconds, blocks, elsewhere := rollouts(m.events)
	require.Equal(t, []float64{0.12, 0.1}, seconds)
	require.Equal(t, 2, blocks)
	require.Equal(t, 1, elsewhere)

	m = made{}
	for n, at := range []int{100, 400, 900} {
		m.activity("Update", at-90, at-80, at-50)
		m.activity("Commit", at-20-n, at-10, at)
	}
	require.Equal(t, []float64{0.3, 0.5}, commits(m.events))
	require.Empty(t, commits(nil))

	var b strings.Builder
	printHelped(&b, Helped{
		Rows: 256, Turns: 5, Rollouts: 9, One: 2, Two: 1.25, Ratio: 0.625, ProcessorRatio: 1.05, Blocks: 40, Elsewhere: 18, Iteration: 2, Lagging: 1.5, LagRatio: 0.75,
	})
	require.Contains(t, b.String(), "an iteration by two workers 2.000, with a lag, whose rollouts are made beside updates, 1.500: ratio 0.75")
	require.Contains(t, b.String(), "two workers  1.250, 18 of 40 blocks on the second")
	require.Contains(t, b.String(), "ratio 0.62 (goal: at most 0.7); processor time of both over one's, with the updates: 1.05 (goal: at most 1.1)")
}
