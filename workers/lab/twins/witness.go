package twins

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// lost is an activity of a history of which a worker lost an attempt.
type lost struct {
	activity string
	// scheduled and over bound the time of the loss.
	scheduled, over time.Time
	// pid is the process of the last attempt, attempt its number, from 1.
	pid     int
	attempt int32
	// mark is the event that shows the loss.
	mark string
	// taken says that a kill has it for its witness.
	taken bool
}

// lostIn reads the activities that lost an attempt from the history of a run and of those that it
// continued as, beginning with the execution first.
func lostIn(ctx context.Context, c client.Client, run, first string) ([]*lost, error) {
	var out []*lost
	for next := first; next != ""; {
		execution := next
		next = ""
		scheduled := map[int64]*lost{}
		for at := c.GetWorkflowHistory(ctx, run, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); at.HasNext(); {
			e, err := at.Next()
			if err != nil {
				return nil, fmt.Errorf("history of run %s: %w", run, err)
			}
			if a := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
				next = a.NewExecutionRunId
			}
			if l := read(e, scheduled); l != nil {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// read reads an event into the activities under way, and returns the one that it shows to be lost.
func read(e *historypb.HistoryEvent, under map[int64]*lost) *lost {
	at := e.EventTime.AsTime()
	shows := func(scheduled int64) *lost {
		l := under[scheduled]
		if l == nil {
			return nil
		}
		known := l.mark != ""
		l.mark = fmt.Sprintf("event %d, %s", e.EventId, e.EventType)
		if known {
			return nil // its end says more than the request to end it
		}
		l.over = at
		return l
	}
	switch {
	case e.GetActivityTaskScheduledEventAttributes() != nil:
		under[e.EventId] = &lost{activity: e.GetActivityTaskScheduledEventAttributes().ActivityType.GetName(), scheduled: at}
	case e.GetActivityTaskStartedEventAttributes() != nil:
		a := e.GetActivityTaskStartedEventAttributes()
		l := under[a.ScheduledEventId]
		if l == nil {
			return nil
		}
		number, _, _ := strings.Cut(a.Identity, "@") // an SDK client's identity is pid@host@…
		l.pid, _ = strconv.Atoi(number)
		l.attempt = a.Attempt
		if a.Attempt > 1 {
			return shows(a.ScheduledEventId)
		}
	case e.GetActivityTaskTimedOutEventAttributes() != nil:
		return shows(e.GetActivityTaskTimedOutEventAttributes().ScheduledEventId)
	case e.GetActivityTaskCanceledEventAttributes() != nil:
		return shows(e.GetActivityTaskCanceledEventAttributes().ScheduledEventId)
	case e.GetActivityTaskCancelRequestedEventAttributes() != nil:
		return shows(e.GetActivityTaskCancelRequestedEventAttributes().ScheduledEventId)
	}
	return nil
}

// errNoWitness says that a kill left no mark in the history.
var errNoWitness = errors.New("the history shows no lost activity for a kill")

// testify gives each death its witness: an activity of its name that was scheduled before the
// process died and lost after. The last attempt of an activity that was not tried again is the
// killed process's own.
func testify(deaths []Death, in []*lost) error {
	for n := range deaths {
		d := &deaths[n]
		d.Witness = ""
		for _, l := range in {
			if l.taken || l.activity != d.Activity || l.scheduled.After(d.Died) || l.over.Before(d.Died.Add(-time.Second)) {
				continue
			}
			if l.attempt == 1 && l.pid != d.PID {
				continue
			}
			l.taken, d.Witness = true, l.mark
			break
		}
		if d.Witness == "" {
			return fmt.Errorf("%w: kill %d, in %s of iteration %d", errNoWitness, n+1, d.Activity, d.Iteration)
		}
	}
	return nil
}
