package chaos

import (
	"strings"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// deed is a Generate or a Step, as its input names it.
type deed struct {
	kind  string
	suite string // empty in an iteration's rollout
	of    int    // the iteration, or the version that is evaluated
	turn  int
	piece int // of a Generate, from 0
}

// deeds count how often each was begun and completed, by a workflow's history, and which
// were scheduled again when they were done. An attempt that was lost with its session may
// lack in begun: the server writes it down when it ends.
type deeds struct {
	begun, completed map[deed]int
	again            []deed
}

// deeds reads the history of a workflow.
func (l *lane) deeds(id string) deeds {
	l.t.Helper()
	out := deeds{begun: map[deed]int{}, completed: map[deed]int{}}
	scheduled := map[int64]deed{}
	events := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && (a.ActivityType.Name == "Generate" || a.ActivityType.Name == "Step") {
			var in struct {
				Rollout activities.Rollout `json:"rollout"`
				Turn    int                `json:"turn"`
				Pieces  []store.Ref        `json:"pieces"`
			}
			require.NoError(l.t, converter.GetDefaultDataConverter().FromPayloads(a.Input, &in))
			d := deed{kind: a.ActivityType.Name, of: in.Rollout.Iteration, turn: in.Turn, piece: len(in.Pieces)}
			if e := in.Rollout.Evaluation; e != nil {
				d.suite = e.Suite
			}
			scheduled[e.EventId] = d
			if out.completed[d] > 0 {
				out.again = append(out.again, d)
			}
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil && scheduled[a.ScheduledEventId].kind != "" {
			out.begun[scheduled[a.ScheduledEventId]] += int(a.Attempt)
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && scheduled[a.ScheduledEventId].kind != "" {
			out.completed[scheduled[a.ScheduledEventId]]++
		}
	}
	return out
}

// keeps requires that each turn was made once, and that only those were begun
// again in which a worker died, once for each that did.
func (l *lane) keeps(id string, want deeds, struck ...deed) {
	l.t.Helper()
	have := l.madeOnce(id, want)
	if l.hindered() {
		return
	}
	allowed := map[deed]int{}
	for _, d := range struck {
		allowed[d]++
	}
	for d, times := range have.begun {
		require.LessOrEqual(l.t, times, 1+allowed[d], "%+v was begun again", d)
	}
}

// keepsBut is keeps where nobody knows which turns were under way.
func (l *lane) keepsBut(id string, want deeds, kills int) {
	l.t.Helper()
	have, again := l.madeOnce(id, want), 0
	if l.hindered() {
		return
	}
	for _, times := range have.begun {
		again += times - 1
	}
	require.LessOrEqual(l.t, again, kills, "turns that were begun again")
}

func (l *lane) madeOnce(id string, want deeds) deeds {
	l.t.Helper()
	have := l.deeds(id)
	require.Empty(l.t, have.again, "what is done is not decided on again")
	require.Equal(l.t, want.completed, have.completed, "each turn is made once")
	return have
}

// hindered reports whether a living worker could not say in time that it lives: on
// a machine that is too busy it passes for dead, and what it did is begun again.
func (l *lane) hindered() bool {
	for _, p := range l.processes {
		if strings.Contains(p.text(), "eartbeat") {
			l.t.Logf("%s was taken for dead, or nearly: how often turns were begun is not looked at", p.name)
			return true
		}
	}
	return false
}
