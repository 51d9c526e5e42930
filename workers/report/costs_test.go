package report

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// spent is a run of branches, whose iterations cost what is given. nil is telemetry of an
// older release, without costs.
func spent(branches ...[][]activities.Cost) *Run {
	r := &Run{}
	for n, costs := range branches {
		b := Branch{Number: n}
		for i, c := range costs {
			it := Iteration{Link: store.Link{Manifest: &store.Manifest{Branch: n, Iteration: i}}, Telemetry: &run.IterationTelemetry{Costs: c}}
			b.Iterations = append(b.Iterations, it)
		}
		r.Branches = append(r.Branches, b)
	}
	return r
}

func TestCosts(t *testing.T) {
	l4 := activities.Cost{Kind: "L4", Held: 100, Useful: 60, Lost: 10, Unpriced: 100}
	h100 := activities.Cost{Kind: "H100", Held: 50, Useful: 40, Lost: 5, Money: 2}

	require.Nil(t, spent([][]activities.Cost{nil, nil}).costs(), "telemetry of an older release")
	require.Nil(t, spent([][]activities.Cost{nil}).trialCost())
	require.Nil(t, (&Run{Branches: []Branch{{Iterations: []Iteration{{}}}}}).costs(), "no telemetry")

	r := spent([][]activities.Cost{nil, {l4}, {l4}}, [][]activities.Cost{{h100, l4}})
	lost := activities.LostSession{Kind: "L4", Step: "Update: iteration 1", Seconds: 10}
	r.Branches[0].Iterations[1].Telemetry.LostSessions = []activities.LostSession{lost}
	costs := r.costs()
	require.Equal(t, []activities.Cost{h100, {Kind: "L4", Held: 300, Useful: 180, Lost: 30, Unpriced: 300}}, costs.Rows, "abandoned branches have cost as much")
	require.Equal(t, []sessionPage{{Branch: 0, Iteration: 1, LostSession: lost}}, costs.Sessions)

	for want, cost := range map[string]*trialCost{
		`{"held": 350, "useful": 220, "recomputed": 0, "lost": 35, "waiting": 0, "money": 2, "partly": true, "runs": 1}`:   r.trialCost(),
		`{"held": 50, "useful": 40, "recomputed": 0, "lost": 5, "waiting": 0, "money": 2, "runs": 1}`:                      spent([][]activities.Cost{{h100}}).trialCost(),
		`{"held": 400, "useful": 260, "recomputed": 0, "lost": 40, "waiting": 0, "money": 4, "partly": true, "runs": 2}`:   r.trialCost().plus(nil).plus(spent([][]activities.Cost{{h100}}).trialCost()),
		`{"held": 100, "useful": 60, "recomputed": 0, "lost": 10, "waiting": 0, "money": null, "partly": true, "runs": 1}`: spent([][]activities.Cost{{l4}}).trialCost(), // no price is not a price of 0
		`{"held": 0, "useful": 0, "recomputed": 0, "lost": 0, "waiting": 3, "money": null, "runs": 1}`:                     spent([][]activities.Cost{{{Waiting: 3}}}).trialCost(),
	} {
		b, err := json.Marshal(cost)
		require.NoError(t, err)
		require.JSONEq(t, want, string(b))
	}
	require.Nil(t, (*trialCost)(nil).plus(nil))
}
