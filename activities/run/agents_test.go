package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Who acted is the role of the state in which a turn began, of the environment that the row played. A dropped row
// has no turns.
func TestAgentsOf(t *testing.T) {
	methodstest.Needs(t, "dr_mas", "grpo")
	team, err := envs.New("lake_for_two", nil)
	require.NoError(t, err)
	alone, err := envs.New("frozenlake", nil)
	require.NoError(t, err)
	rc := &Context{Training: &Task{Parts: envs.Mixture{{Label: "team", Environment: team}, {Label: "alone", Environment: alone}}}}
	row := func(at int32, label string, roles ...string) episode.TrajectoryRow {
		r := episode.TrajectoryRow{Row: at, Environment: label, PromptLengths: make([]int32, len(roles)-1)}
		for _, role := range roles {
			r.StateKeys = append(r.StateKeys, role+"\n\nlake")
		}
		return r
	}
	rows := []episode.TrajectoryRow{row(8, "team", "reader", "walker", "walker"), row(9, "team", "reader"), row(10, "team", "walker", "reader", "reader", "walker")}
	got, err := AgentsOf(rc, spec.Credit{Algorithm: "dr_mas"}, rows)
	require.NoError(t, err)
	require.Equal(t, []AgentRow{{8, 0, "reader"}, {8, 1, "walker"}, {10, 0, "walker"}, {10, 1, "reader"}, {10, 2, "reader"}}, got)

	got, err = AgentsOf(rc, spec.Credit{Algorithm: "grpo"}, rows)
	require.NoError(t, err)
	require.Nil(t, got, "it does not read them")
	got, err = AgentsOf(rc, spec.Credit{Algorithm: "dr_mas"}, nil)
	require.NoError(t, err)
	require.NotNil(t, got, "an empty table is a table")
	_, err = AgentsOf(rc, spec.Credit{Algorithm: "dr_mas"}, append(rows, row(11, "alone", "x", "y")))
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "agents of row 11: environment alone has no roles")
}

// The agents of a row are found by its number, whatever rows are left and wherever it stands.
func TestByAgents(t *testing.T) {
	agents := []AgentRow{{4, 0, "a"}, {4, 1, "b"}, {5, 0, "b"}, {6, 0, "a"}, {6, 1, "c"}, {6, 2, "a"}}
	var l CreditInput
	l.ByAgents([]episode.TrajectoryRow{{Row: 6}, {Row: 4}}, agents)
	require.Equal(t, [][]string{{"a", "c", "a"}, {"a", "b"}}, l.Agents)
	l = CreditInput{}
	l.ByAgents([]episode.TrajectoryRow{{Row: 6}}, nil)
	require.Nil(t, l.Agents)
}

// The figures of each agent are over its own turns: how many a trajectory has, their advantages at their first
// token, and the mean amplification over the groups in which returns vary.
func TestAgentMetrics(t *testing.T) {
	l := CreditInput{Input: credit.Input{
		Returns: []float64{1, 3, 5, 5}, Rewards: [][]float64{{0, 1}, {3}, {5, 0, 0}, {5}}, Groups: []int{7, 7, 9, 9},
		Agents: [][]string{{"reader", "walker"}, {"walker"}, {"reader", "walker", "walker"}, {"reader"}},
		Turns:  [][]credit.Span{{{From: 1, To: 3}, {From: 4, To: 5}}, {{From: 0, To: 1}}, {{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 3}}, {{From: 2, To: 3}}},
	}}
	advantages := [][]float64{{9, 2, 3, 9, -1}, {4}, {0, 6, 7}, {9, 9, 1}}
	m := activities.Metrics{}
	require.NoError(t, l.agentMetrics(advantages, m))
	for name, want := range map[string]float64{
		"agents/reader/turns": 0.75, "agents/walker/turns": 1,
		// reader: 2, 0, 1; walker: −1, 4, 6, 7
		"agents/reader/advantage_mean": 1, "agents/reader/advantage_std": 1,
		"agents/walker/advantage_mean": 4, "agents/walker/advantage_std": 3.559026084010437,
		// Group 7 has the returns 1, 1 and 3: mean 5/3, variance 8/9. The reader's is 1, the walker's are 1 and 3.
		"agents/reader/amplification": 0.5, "agents/walker/amplification": 1.25,
	} {
		require.InDelta(t, want, float64(m[name]), 1e-12, name)
	}
	require.Len(t, m, 8)

	l.Groups = []int{7, 8, 9, 10} // each by itself
	l.Returns = []float64{1, 1, 1, 1}
	m = activities.Metrics{}
	require.NoError(t, l.agentMetrics(advantages, m))
	require.NotContains(t, m, "agents/reader/amplification", "no group varies")
	l.Agents = nil
	m = activities.Metrics{}
	require.NoError(t, l.agentMetrics(advantages, m))
	require.Empty(t, m)
	l.Agents = [][]string{{"reader"}}
	require.ErrorIs(t, l.agentMetrics(advantages, m), credit.ErrInput)
}
