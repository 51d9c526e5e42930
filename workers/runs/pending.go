package runs

import (
	"cmp"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/human"
)

// Pending is an activity of a workflow that has failed and is tried again.
type Pending struct {
	// ID is the activity's id, and Activity its type.
	ID       string `json:"id"`
	Activity string `json:"activity"`
	// Attempt counts from 1: the attempt that runs or comes next.
	Attempt int32 `json:"attempt"`
	// Error is why the last attempt failed.
	Error string `json:"error"`
}

// String says it in a line.
func (p Pending) String() string {
	return fmt.Sprintf("%s is tried again (attempt %d): %s", p.Activity, p.Attempt, p.Error)
}

// Retried are the pending activities that are tried again, the one with the most attempts first. by decodes what a codec
// has encoded.
func Retried(pending []*workflowpb.PendingActivityInfo, by converter.DataConverter) []Pending {
	var out []Pending
	for _, a := range pending {
		kind := a.GetActivityType().GetName()
		if a.GetAttempt() < 2 || a.GetLastFailure() == nil || steps.Holds(kind) {
			continue
		}
		converter.DecodeCommonFailureAttributes(by, a.GetLastFailure())
		out = append(out, Pending{ID: a.GetActivityId(), Activity: kind, Attempt: a.GetAttempt(), Error: reasonOf(a)})
	}
	slices.SortStableFunc(out, func(a, b Pending) int { return cmp.Compare(b.Attempt, a.Attempt) })
	return out
}

// reasonOf is why the last attempt of an activity failed.
func reasonOf(a *workflowpb.PendingActivityInfo) string {
	f := a.GetLastFailure()
	if timeout := f.GetTimeoutFailureInfo(); timeout != nil {
		switch timeout.GetTimeoutType() {
		case enumspb.TIMEOUT_TYPE_START_TO_CLOSE:
			return "it took longer than its time-out; if it does so again although the bucket answers, the spec's limits.activity_seconds " +
				"is too small for this device"
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			return "its worker was silent"
		}
	}
	text := human.Visible(f.GetMessage())
	if kind := f.GetApplicationFailureInfo().GetType(); kind != "" {
		text = kind + ": " + text
	}
	return text
}
