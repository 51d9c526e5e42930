package run

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// OpenRow says whether an episode was still going on when it stopped: a limit of turns, actions or context ended it,
// and its environment did not. Rows are in the order of trajectories.
type OpenRow struct {
	Row  int32 `parquet:"row"`
	Open bool  `parquet:"open"`
}

// OpenOf plays the trajectories of a rollout again to see which are open; rows that are dropped are none. It is nil for
// an algorithm that does not read it. An error is of kind store.ErrInvalid: the actions do not fit their episode.
func OpenOf(
	rc *Context, c spec.Credit, task *Task, branch int, rollout activities.Rollout, rows []episode.TrajectoryRow,
) ([]OpenRow, error) {
	if !c.ReadsOpen() {
		return nil, nil
	}
	out := []OpenRow{}
	for _, r := range episode.Live(rows) {
		a := rc.Address(task, branch, rollout, int(r.Group), int(r.Member))
		last, _, err := envs.Replay(task.Env(int(r.Group)%task.Groups), a.Instance, a.Chance, executed(r))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w: %w", r.Row, err, store.ErrInvalid)
		}
		out = append(out, OpenRow{Row: r.Row, Open: !last.Done()})
	}
	return out, nil
}

// executed are the actions of a trajectory by turns.
func executed(r episode.TrajectoryRow) [][]string {
	out := make([][]string, r.Turns())
	for k := range out {
		out[k] = r.Executes(k)
	}
	return out
}

// ByOpen adds which of the rows are open; open may have other rows too. An error is of kind store.ErrInvalid: a row is
// not there.
func (l *CreditInput) ByOpen(rows []episode.TrajectoryRow, open []OpenRow) error {
	byRow := map[int32]bool{}
	for _, o := range open {
		byRow[o.Row] = o.Open
	}
	for _, r := range rows {
		is, ok := byRow[r.Row]
		if !ok {
			return fmt.Errorf("row %d is not in the table %s: %w", r.Row, activities.OpenTable.Name, store.ErrInvalid)
		}
		l.Open = append(l.Open, is)
	}
	return nil
}
