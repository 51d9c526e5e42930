package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods"
)

// StateValueRow is what trajectories from an initial state have returned so far, or those of a role.
type StateValueRow struct {
	StateKey string  `parquet:"state_key"`
	Count    int64   `parquet:"count"`
	Value    float64 `parquet:"value"`
}

// ObserveStates returns the values of initial states before the iteration, or of what else the algorithm observes, and adds
// the table of the values after it to after, unless they are the same. It uses the returns of all trajectories that were
// played, selected or not, without the penalty for the distance from the reference, which only selected ones have. agents
// are AgentsOf those trajectories. It does nothing for an algorithm that does not read them.
func ObserveStates(ctx context.Context, s store.Store, in activities.CreditInput, dir string,
	all []episode.TrajectoryRow, agents []AgentRow, after activities.Tables) (past []credit.StateValue, err error) {
	c := in.Settings.Credit
	if !c.ObservesStates() {
		return nil, nil
	}
	before, err := ReadTable[StateValueRow](ctx, s, in.Tables, activities.StatesTable)
	if err != nil {
		return nil, err
	}
	for _, r := range before {
		past = append(past, credit.StateValue{Key: r.StateKey, Count: int(r.Count), Value: r.Value})
	}
	if in.Rollout != nil && in.Rollout.Update > 0 {
		return past, nil // the rollout has been seen
	}
	var played []episode.TrajectoryRow
	var returns []float64
	var keys []string
	for _, r := range all {
		if r.Turns() == 0 {
			continue // dropped
		}
		played, returns, keys = append(played, r), append(returns, r.Return()), append(keys, r.StateKeys[0])
	}
	var now []credit.StateValue
	if algorithm, _ := methods.Find(c.Algorithm); algorithm.Observe != nil {
		now, err = algorithm.Observe(past, returns, agentsBy(played, agents), credit.Options(c))
	} else {
		now, err = credit.Observe(past, returns, keys, c.BaselineRate)
	}
	if err != nil {
		return nil, fmt.Errorf("values of states: %w: %w", err, store.ErrInvalid)
	}
	var rows []StateValueRow
	for _, v := range now {
		rows = append(rows, StateValueRow{StateKey: v.Key, Count: int64(v.Count), Value: v.Value})
	}
	return past, PutTable(ctx, s, dir, after, activities.StatesTable, rows)
}
