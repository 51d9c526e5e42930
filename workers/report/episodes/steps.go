package episodes

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// steps are what the turns of a rollout led to: round by round, turn by turn; a table
// that could not be read is nil.
type steps struct {
	rounds [][][]run.StepRow
	rows   int // of a round
}

// steps reads the step tables of a rollout of so many rows; lacks receives the tables
// that cannot be read.
func (r *Reader) steps(ctx context.Context, turns []store.TurnRefs, rows int, lacks func(store.Ref, string, error) error) (steps, error) {
	var out steps
	count := 1
	for _, t := range turns {
		count = max(count, t.Round+1)
	}
	if count > len(turns)+1 || rows%count != 0 {
		count = 1 // not written by us: each table says what does not fit
	}
	out.rounds, out.rows = make([][][]run.StepRow, count), rows/count
	for _, t := range turns {
		if t.Round >= count || t.Round < 0 {
			continue
		}
		n := len(out.rounds[t.Round]) + 1
		table, err := tables.Get[run.StepRow](ctx, r.store, t.Step)
		if err == nil && len(table) != out.rows {
			table, err = nil, fmt.Errorf("%d rows of turn %d, %d trajectories: %w", len(table), n, out.rows, store.ErrInvalid)
		}
		if err := lacks(t.Step, fmt.Sprintf("what turn %d led to, and so its boards", n), err); err != nil {
			return out, err
		}
		out.rounds[t.Round] = append(out.rounds[t.Round], table)
	}
	return out, nil
}

// of are a row's, a turn each; nil if a table could not be read.
func (s steps) of(row int) []*run.StepRow {
	if s.rows == 0 {
		return nil
	}
	tables := s.rounds[row/s.rows]
	out := make([]*run.StepRow, len(tables))
	for k, table := range tables {
		if table != nil {
			out[k] = &table[row%s.rows]
		}
	}
	return out
}
