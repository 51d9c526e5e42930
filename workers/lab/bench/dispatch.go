package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// Dispatch is what Temporal takes around one activity, in median seconds.
type Dispatch struct {
	// Name is the activity's.
	Name string `json:"name"`
	// Begin is from its scheduling until a worker begins it; Next is from its end until the workflow
	// schedules what follows. Both are 0 for an activity that the device does not wait for.
	Begin float64 `json:"begin_seconds"`
	Next  float64 `json:"next_seconds"`
	// Beside says that it runs beside another one.
	Beside bool `json:"beside,omitempty"`
}

// dispatches are the dispatches of a run's activities, by their names.
type dispatches map[string]*samples

// samples are one activity's.
type samples struct {
	begin, next []float64
	beside      int // how often it ran beside another one
}

// read adds those of a run's last history.
func (d dispatches) read(ctx context.Context, c client.Client, runID string) error {
	events, err := readHistory(ctx, c, runID)
	if err == nil {
		d.add(events)
	}
	return err
}

// readHistory reads a run's last history.
func readHistory(ctx context.Context, c client.Client, runID string) (events []*history.HistoryEvent, err error) {
	for at := c.GetWorkflowHistory(ctx, runID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); at.HasNext(); {
		e, err := at.Next()
		if err != nil {
			return nil, fmt.Errorf("history of run %s: %w", runID, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// taken is an activity's: from its scheduling over its beginning to its end.
type taken struct {
	name                     string
	scheduled, started, done time.Time
}

// takenIn are the activities of a history that ended, in the order of their scheduling, without
// those that hold the device.
func takenIn(events []*history.HistoryEvent) []*taken {
	byID := map[int64]*taken{}
	var spans []*taken
	for _, e := range events {
		at := e.GetEventTime().AsTime()
		switch e.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			s := &taken{name: e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(), scheduled: at}
			byID[e.GetEventId()], spans = s, append(spans, s)
		case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			byID[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()].started = at
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			byID[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()].done = at
		}
	}
	return slices.DeleteFunc(spans, func(s *taken) bool { return s.done.IsZero() || steps.Holds(s.name) })
}

// add adds those of a history. The first activity and what follows the last one are not counted.
func (d dispatches) add(events []*history.HistoryEvent) {
	spans := takenIn(events)
	for i, s := range spans {
		if i == 0 || i == len(spans)-1 {
			continue
		}
		of := d[s.name]
		if of == nil {
			of = &samples{}
			d[s.name] = of
		}
		if s.name == steps.Commit.Name && spans[i+1].scheduled.Before(s.done) {
			of.beside++
			continue
		}
		of.begin = append(of.begin, s.started.Sub(s.scheduled).Seconds())
		if next := spans[i+1]; !next.scheduled.Before(s.done) {
			of.next = append(of.next, next.scheduled.Sub(s.done).Seconds())
		}
	}
}

// medians are the medians, in the order of an iteration.
func (d dispatches) medians() []Dispatch {
	var out []Dispatch
	for _, name := range stepOrder {
		for activity, of := range d {
			if strings.ToLower(activity) != name {
				continue
			}
			one := Dispatch{Name: name, Beside: of.beside > len(of.begin)}
			if !one.Beside {
				one.Begin, one.Next = medians.Of(of.begin), medians.Of(of.next)
			}
			out = append(out, one)
		}
	}
	return out
}
