package runs

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/activities/steps"
)

// The line is those who wait for a lease, by how long they do; who has been given one stands in it no more.
func TestLine(t *testing.T) {
	asks := func(state enumspb.PendingActivityState, minute int) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			ActivityType: &commonpb.ActivityType{Name: steps.Acquire.Name}, State: state,
			ScheduledTime: timestamppb.New(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)),
		}
	}
	s := &open{pending: map[string]*workflowpb.PendingActivityInfo{
		"second": asks(enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 8), "first": asks(enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 5),
		"third": asks(enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 9), "has": asks(enumspb.PENDING_ACTIVITY_STATE_STARTED, 1), "steps": nil,
	}}
	for _, id := range []string{"third", "has", "first", "steps", "ended", "second"} {
		s.runs = append(s.runs, execution(t, id, "Train", running, 1, nil))
	}
	require.Equal(t, []string{"first", "second", "third"}, Line(t.Context(), s, "n", "f"))
	s.fails = errors.New("unavailable")
	require.Empty(t, Line(t.Context(), s, "n", "f"))
}
