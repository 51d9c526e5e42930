package twins

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// at is a time in seconds after the beginning of a history.
func at(seconds int) time.Time { return time.Unix(int64(1_000+seconds), 0).UTC() }

// scheduled, started and timedOut are events of an activity.
func scheduled(id int64, seconds int, activity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(at(seconds)), EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &commonpb.ActivityType{Name: activity}}}}
}

func started(id, of int64, seconds int, pid string, attempt int32) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(at(seconds)), EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
		Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{
			ScheduledEventId: of, Identity: pid + "@host@", Attempt: attempt}}}
}

func timedOut(id, of int64, seconds int) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(at(seconds)), EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
		Attributes: &historypb.HistoryEvent_ActivityTaskTimedOutEventAttributes{ActivityTaskTimedOutEventAttributes: &historypb.ActivityTaskTimedOutEventAttributes{
			ScheduledEventId: of}}}
}

func lostOf(events ...*historypb.HistoryEvent) (out []*lost) {
	under := map[int64]*lost{}
	for _, e := range events {
		if l := read(e, under); l != nil {
			out = append(out, l)
		}
	}
	return out
}

// A death has the lost activity of its name and time for its witness, each another one; a death
// without one is an error.
func TestWitness(t *testing.T) {
	events := []*historypb.HistoryEvent{
		scheduled(5, 0, "Update"), started(6, 5, 1, "11", 1), timedOut(7, 5, 8), // lost by 11
		scheduled(9, 10, "Generate"), started(10, 9, 20, "13", 2), // lost by another, tried again by 13
		scheduled(12, 30, "Update"), started(13, 12, 31, "14", 1), // not lost
	}
	deaths := []Death{
		{Kill: Kill{Activity: "Update"}, PID: 11, Died: at(3)},
		{Kill: Kill{Activity: "Generate"}, PID: 12, Died: at(15)},
	}
	require.NoError(t, testify(deaths, lostOf(events...)))
	require.Equal(t, "event 7, ActivityTaskTimedOut", deaths[0].Witness)
	require.Equal(t, "event 10, ActivityTaskStarted", deaths[1].Witness)

	for name, d := range map[string]Death{
		"another activity":     {Kill: Kill{Activity: "Commit"}, PID: 11, Died: at(3)},
		"another process":      {Kill: Kill{Activity: "Update"}, PID: 14, Died: at(3)},
		"before it began":      {Kill: Kill{Activity: "Generate"}, PID: 12, Died: at(9)},
		"after it was noticed": {Kill: Kill{Activity: "Update"}, PID: 11, Died: at(12)},
	} {
		require.ErrorIs(t, testify([]Death{d}, lostOf(events...)), errNoWitness, name)
	}
	twice := []Death{deaths[0], deaths[0]}
	require.ErrorIs(t, testify(twice, lostOf(events...)), errNoWitness, "one mark is no witness of two deaths")
}
