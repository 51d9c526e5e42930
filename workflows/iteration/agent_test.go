package iteration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Calls of agents are taken and answered until all episodes are over; then they are arranged. A look that finds nothing is made
// again, and one that only finds ends asks for no sample.
func TestAgentsConverse(t *testing.T) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Agent = Due{}, nil, true
	it := New(sc.start, sc.state())
	looks := []activities.TakeCallsResult{
		{Playing: 2}, {Table: &store.Ref{Key: "a"}, Calls: 2, Playing: 2}, {Playing: 2}, {Table: &store.Ref{Key: "b"}, Calls: 1, Playing: 1},
		{Table: &store.Ref{Key: "c"}},
	}
	keys := map[string]bool{}
	var names []string
	in, err := it.ToCommit(func(c Call) (any, error) {
		if !it.Rollout.Done {
			require.False(t, keys[c.Key], "each call of a rollout has its own key: %s", c.Key)
			keys[c.Key] = true
			names = append(names, c.Name)
		}
		switch in := c.Input.(type) {
		case activities.TakeCallsInput:
			look := looks[0]
			looks = looks[1:]
			return &look, nil
		case activities.GenerateInput:
			require.Equal(t, []string{"a", "b"}[len(names)/4], in.Calls.Key)
			return &activities.GenerateResult{Table: store.Ref{Key: "of " + in.Calls.Key}}, nil
		case activities.ArrangeInput:
			require.Equal(t, []activities.Taken{
				{Calls: store.Ref{Key: "a"}, Samples: &store.Ref{Key: "of a"}}, {Calls: store.Ref{Key: "b"}, Samples: &store.Ref{Key: "of b"}},
				{Calls: store.Ref{Key: "c"}},
			}, in.Taken)
			return &activities.ArrangeResult{Turns: []store.TurnRefs{{Generate: store.Ref{Key: "g"}, Requests: &store.Ref{Key: "r"}}}}, nil
		}
		return sc.result(c), nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"TakeCalls", "TakeCalls", "Generate", "TakeCalls", "TakeCalls", "Generate", "TakeCalls", "Arrange"}, names)
	require.Equal(t, []store.TurnRefs{{Generate: store.Ref{Key: "g"}, Requests: &store.Ref{Key: "r"}}}, in.Turns)
}
