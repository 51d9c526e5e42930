package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// timeline is a workflow's history, an event a line with the seconds since its
// beginning: what a failing test shows.
func (l *lane) timeline(ctx context.Context, id, run string) string {
	var b strings.Builder
	var began time.Time
	events := l.client.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return b.String() + err.Error()
		}
		if began.IsZero() {
			began = e.EventTime.AsTime()
		}
		what := ""
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			what = a.ActivityType.Name
		}
		if f := e.GetActivityTaskFailedEventAttributes(); f != nil {
			what = f.Failure.Message
		}
		if f := e.GetActivityTaskTimedOutEventAttributes(); f != nil {
			what = f.Failure.String()
		}
		if f := e.GetActivityTaskStartedEventAttributes(); f != nil {
			what = fmt.Sprintf("attempt %d %s", f.Attempt, f.LastFailure.GetMessage())
		}
		if f := e.GetWorkflowTaskTimedOutEventAttributes(); f != nil {
			what = f.TimeoutType.String()
		}
		fmt.Fprintf(&b, "%7.2f %3d %s %s\n", e.EventTime.AsTime().Sub(began).Seconds(), e.EventId, e.EventType, what)
	}
	return b.String()
}
