package workflows

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// What validate says of a run's actions is what the history of such a run has.
func TestActionsAreThoseOfHistory(t *testing.T) {
	const history = "whole.json.gz"
	names, upserted := map[int64]string{}, 0
	scheduled := 0
	var plan activities.Plan
	var counted []int // of each iteration
	before := []string{steps.Resolve.Name, steps.Describe.Name, steps.WarmStart.Name, steps.Restore.Name}
	for _, e := range readHistory(t, history).Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			names[e.EventId] = a.ActivityType.Name
			if !slices.Contains(before, a.ActivityType.Name) && !steps.Holds(a.ActivityType.Name) {
				scheduled++
			}
			// What is scheduled beside a commit is the next iteration's.
			if a.ActivityType.Name == steps.Commit.Name {
				counted, scheduled = append(counted, scheduled), 0
			}
		}
		// That of a change's id is the SDK's own, once a history.
		fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
		if fields != nil && fields["TemporalChangeVersion"] == nil && len(counted) > 0 {
			upserted++
			counted[len(counted)-1]++
		}
		a := e.GetActivityTaskCompletedEventAttributes()
		if names[a.GetScheduledEventId()] == steps.Resolve.Name {
			var out activities.ResolveResult
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(a.Result, &out))
			plan = out.Plan
		}
	}
	actions, err := Actions(plan, spec.Pieces{})
	require.NoError(t, err)
	var said []int
	for n := range plan.Iterations {
		count := int(actions.Iteration)
		if plan.Snapshot.Due(n+1, plan.Iterations) {
			count += actions.Snapshot
		}
		if plan.EvaluationDue(n+1, plan.Iterations) {
			count += actions.Evaluation
		}
		if n == 0 {
			count += actions.Evaluation // the baseline
		}
		said = append(said, count)
	}
	require.Equal(t, counted, said)
	require.Equal(t, plan.Iterations, upserted)
	require.Positive(t, actions.Snapshot)
	require.Positive(t, actions.Evaluation)
}
