package run

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	// newestPivots is how many pivots a fit learns from (DEEP-GRPO's buffer).
	newestPivots = 10_000
	// savedAbove is the sum of rewards that a trajectory must exceed to have succeeded (DEEP-GRPO).
	savedAbove = 0
)

// PivotRow is a pivot from which branches were sampled.
type PivotRow struct {
	// Position is where it was in its trajectory, from 0 to 1: the end.
	Position float64 `parquet:"position"`
	// Saved says that one of its branches succeeded where the trajectory failed.
	Saved bool `parquet:"saved"`
}

// PivotForks draws where the branches of the failed trajectories of a rollout begin: all those of a
// trajectory at one of its turns, but the last one, which is as likely as a fit to the pivots before says (DEEP-GRPO,
// arXiv 2602.14169). turns are those of the trajectories from the root. address is that of a group; a
// trajectory draws by its member. A trajectory that succeeded, or has one turn, has no branches.
func PivotForks(t spec.Trees, turns []episode.Turn, before []PivotRow, address func(group int) draw.Address) ([]episode.ForkRow, error) {
	rows, size := len(turns[0].Generate), t.Leaves()
	if rows%size != 0 {
		return nil, fmt.Errorf("pivots of %d rows in groups of %d: %w", rows, size, store.ErrInvalid)
	}
	positions, saved := make([]float64, len(before)), make([]bool, len(before))
	for i, p := range before {
		positions[i], saved[i] = p.Position, p.Saved
	}
	fit, err := search.FitRecovery(positions, saved)
	if err != nil {
		return nil, fmt.Errorf("pivots before: %w: %w", err, store.ErrInvalid)
	}
	out := []episode.ForkRow{}
	for group := range rows / size {
		for tree := range t.Trees {
			parent := group*size + tree
			n, reward := episode.LeafOf(turns, parent).Turns, 0.0
			for _, turn := range turns[:n] {
				reward += turn.Step[parent].Reward
			}
			if n < 2 || search.Saved([]float64{reward}, savedAbove) {
				continue
			}
			chances, err := fit.Pivots(n, n-1, t.Gamma)
			if err != nil {
				return nil, fmt.Errorf("pivot of row %d: %w: %w", parent, err, store.ErrInvalid)
			}
			a := address(group)
			a.Member, a.Turn = int64(tree), 1
			u := a.Rand().Float64()
			pivot, err := search.Pick(chances, u)
			if err != nil {
				return nil, err
			}
			for branch := range t.Branches {
				member := t.Trees + tree*t.Branches + branch
				out = append(out, episode.ForkRow{
					Row: int32(group*size + member), Group: int32(group), Member: int32(member),
					Parent: int32(parent), Turn: int32(pivot + 1), Places: int32(n - 1), Draw: u,
				})
			}
		}
	}
	return out, nil
}

// Unplayed drops the rows that no wave has played: branches that no trajectory needed.
func Unplayed(rows []episode.TrajectoryRow) {
	for i := range rows {
		if rows[i].Turns() == 0 {
			rows[i].Dropped = true
		}
	}
}

// Roots are the trajectories from the root, of whole groups.
func Roots(t spec.Trees, rows []episode.TrajectoryRow) []episode.TrajectoryRow {
	var out []episode.TrajectoryRow
	for _, r := range rows {
		if int(r.Member) < t.Trees {
			out = append(out, r)
		}
	}
	return out
}

// Pivots are the newest pivots after a rollout, whose rows are whole groups, and the metrics of the rollout's own.
func Pivots(t spec.Trees, before []PivotRow, rows []episode.TrajectoryRow, branches []episode.BranchRow) ([]PivotRow, activities.Metrics) {
	inherited := map[int32]int{}
	for _, b := range branches {
		if b.Inherited {
			inherited[b.Row]++
		}
	}
	out := append([]PivotRow{}, before...)
	pivots, saved := 0, 0
	for from := 0; from < len(rows); from += t.Leaves() {
		for tree := range t.Trees {
			first := from + t.Trees + tree*t.Branches
			var rewards []float64
			for _, r := range Live(rows[first : first+t.Branches]) {
				rewards = append(rewards, r.Reward())
			}
			if len(rewards) == 0 {
				continue
			}
			p := PivotRow{
				Position: float64(inherited[rows[first].Row]) / float64(rows[from+tree].Turns()),
				Saved:    search.Saved(rewards, savedAbove),
			}
			out, pivots = append(out, p), pivots+1
			if p.Saved {
				saved++
			}
		}
	}
	m := activities.Metrics{"pivots/number": canon.Float(float64(pivots)), "pivots/saved": canon.Float(share(saved, pivots))}
	return out[max(0, len(out)-newestPivots):], m
}

// WeighBranches scales the advantages of a batch's rows so that the mean over all its tokens is the
// mean over those of trajectories from the root and, weight times, that over those of branches
// (loss.BranchWeights). The batch is updated in one step.
func WeighBranches(t spec.Trees, of []batch.Row, weight float64) error {
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
