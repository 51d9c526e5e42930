package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/credit"
)

// StateValueRow is what trajectories from an initial state have returned so far.
type StateValueRow struct {
	StateKey string  `parquet:"state_key"`
	Count    int64   `parquet:"count"`
	Value    float64 `parquet:"value"`
}

// ObserveStates returns the values of initial states before the iteration and stores the
// values after it. It uses the returns of all trajectories that were played, selected or not, without the
// penalty for the distance from the reference, which only selected ones have. It does
// nothing for an algorithm that does not read them.
func ObserveStates(ctx context.Context, s store.Store, in activities.CreditInput, dir string, all []episode.TrajectoryRow) (past []credit.StateValue, ref *store.Ref, err error) {
	c := in.Settings.Credit
	if !c.ObservesStates() {
		return nil, nil, nil
	}
	before, err := SideTable[StateValueRow](ctx, s, in.States, "values of states")
	if err != nil {
		return nil, nil, err
	}
	for _, r := range before {
		past = append(past, credit.StateValue{Key: r.StateKey, Count: int(r.Count), Value: r.Value})
	}
	if in.Rollout != nil && in.Rollout.Update > 0 {
		return past, in.States, nil // the rollout has been seen
	}
	var returns []float64
	var keys []string
	for _, r := range all {
		if r.Turns() == 0 {
			continue // dropped
		}
		returns, keys = append(returns, r.Return()), append(keys, r.StateKeys[0])
	}
	now, err := credit.Observe(past, returns, keys, c.BaselineRate)
	if err != nil {
		return nil, nil, fmt.Errorf("values of states: %w: %w", err, store.ErrInvalid)
	}
	var rows []StateValueRow
	for _, v := range now {
		rows = append(rows, StateValueRow{StateKey: v.Key, Count: int64(v.Count), Value: v.Value})
	}
	put, err := tables.Put(ctx, s, dir, "states", rows)
	return past, &put, err
}
