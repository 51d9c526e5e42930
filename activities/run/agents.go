package run

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// AgentRow says whose turn a turn of a trajectory was, in the order of rows and turns.
type AgentRow struct {
	Row  int32 `parquet:"row"`
	Turn int32 `parquet:"turn"` // from 0
	// Agent is the role: one of those that the environment has.
	Agent string `parquet:"agent"`
}

// AgentsOf gives who acted in the turns of trajectories: the environments' roles in the states
// in which the turns began. It is nil for an algorithm that does not read them. An environment
// without roles is a store.ErrInvalid: a checked spec has none.
func AgentsOf(rc *Context, c spec.Credit, rows []episode.TrajectoryRow) ([]AgentRow, error) {
	if !c.ByRole() {
		return nil, nil
	}
	teams := map[string]envs.Teamed{}
	for _, part := range rc.Training.Parts {
		if team, ok := part.Environment.(envs.Teamed); ok {
			teams[part.Label] = team
		}
	}
	out := []AgentRow{}
	for _, r := range rows {
		team := teams[r.Environment]
		if team == nil {
			return nil, fmt.Errorf("agents of row %d: environment %s has no roles: %w", r.Row, r.Environment, store.ErrInvalid)
		}
		for k := range r.Turns() {
			out = append(out, AgentRow{Row: r.Row, Turn: int32(k), Agent: team.Role(r.StateKeys[k])})
		}
	}
	return out, nil
}

// ByAgents adds who acted in the turns of the rows; agents may have other rows too. It does
// nothing if there are none.
func (l *CreditInput) ByAgents(rows []episode.TrajectoryRow, agents []AgentRow) {
	l.Agents = agentsBy(rows, agents)
}

// agentsBy gives who acted in the turns of the rows, [rows][turns]; nil if agents is.
func agentsBy(rows []episode.TrajectoryRow, agents []AgentRow) [][]string {
	if agents == nil {
		return nil
	}
	byRow := map[int32][]string{}
	for _, a := range agents {
		byRow[a.Row] = append(byRow[a.Row], a.Agent)
	}
	var out [][]string
	for _, r := range rows {
		out = append(out, byRow[r.Row])
	}
	return out
}

// agentMetrics describe the turns of each agent: how many a trajectory has, the mean and the
// deviation of their advantages before the weights of the selection, and how much larger the
// second moment of the agent's gradient would be with the group's mean and deviation for all
// (credit.Amplifications), as the mean of the groups.
func (l *CreditInput) agentMetrics(advantages [][]float64, metrics activities.Metrics) error {
	if l.Agents == nil {
		return nil
	}
	factors, err := credit.Amplifications(l.ReturnsOfTurns(), l.Agents, l.Groups)
	if err != nil {
		return err
	}
	var names []string
	ofAgent, amplified := map[string][]float64{}, map[string][]float64{}
	for row, agents := range l.Agents {
		for k, agent := range agents {
			if !slices.Contains(names, agent) {
				names = append(names, agent)
			}
			ofAgent[agent] = append(ofAgent[agent], advantages[row][l.Turns[row][k].From])
		}
	}
	for _, f := range factors {
		amplified[f.Agent] = append(amplified[f.Agent], f.Factor)
	}
	for _, agent := range names {
		prefix := "agents/" + agent + "/"
		mean, deviation := credit.MeanStd(ofAgent[agent])
		metrics[prefix+"turns"] = canon.Float(share(len(ofAgent[agent]), len(l.Agents)))
		metrics[prefix+"advantage_mean"], metrics[prefix+"advantage_std"] = canon.Float(mean), canon.Float(deviation)
		if len(amplified[agent]) > 0 {
			metrics[prefix+"amplification"] = canon.Float(Mean(amplified[agent]))
		}
	}
	return nil
}
