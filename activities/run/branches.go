package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/search"
)

// Unplayed drops the rows that no wave has played: branches that no trajectory needed.
func Unplayed(rows []episode.TrajectoryRow) {
	for i := range rows {
		if rows[i].Turns() == 0 {
			rows[i].Dropped = true
		}
	}
}

// Roots are the trajectories from the root, of whole groups.
func Roots(t search.Trees, rows []episode.TrajectoryRow) []episode.TrajectoryRow {
	var out []episode.TrajectoryRow
	for _, r := range rows {
		if int(r.Member) < t.Trees {
			out = append(out, r)
		}
	}
	return out
}

// WeighBranches scales the advantages of a batch's rows so that the mean over all its tokens is the
// mean over those of trajectories from the root and, weight times, that over those of branches
// (loss.BranchWeights). The batch is updated in one step.
func WeighBranches(t search.Trees, of []batch.Row, weight float64) error {
	mask, branch, tokens := make([][]bool, len(of)), make([]bool, len(of)), 0.0
	for i, r := range of {
		mask[i], branch[i] = r.Mask, int(r.Row)%t.Leaves() >= t.Trees
		for _, in := range r.Mask {
			if in {
				tokens++
			}
		}
	}
	weights, err := loss.BranchWeights(mask, branch, weight)
	if err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	for i, r := range of {
		advantages := r.Columns[batch.Advantages]
		for n, w := range weights[i] {
			if r.Mask[n] {
				advantages[n] = float32(float64(advantages[n]) * float64(w*tokens))
			}
		}
	}
	return nil
}

// Memory is what the branches of a search achieved before; nil if it does not remember.
func Memory(ctx context.Context, s store.Store, m search.Method, from activities.Tables) ([]search.Branched, error) {
	if m.Memory == "" {
		return nil, nil
	}
	return ReadTable[search.Branched](ctx, s, from, activities.MemoryTable(m))
}

// Remember is Memory after a rollout of whole groups, with the metrics of the rollout's own.
func Remember(t *Task, before []search.Branched, rows []episode.TrajectoryRow,
	branches []episode.BranchRow) ([]search.Branched, activities.Metrics) {
	if t.Method.Remember == nil {
		return nil, nil
	}
	out, figures := t.Method.Remember(t.Trees, before, rows, branches)
	metrics := activities.Metrics{}
	for name, figure := range figures {
		metrics[name] = canon.Float(figure)
	}
	return out, metrics
}
