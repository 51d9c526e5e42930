package episodes

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// steps are what the turns of a rollout led to: round by round, turn by turn; a table
// that could not be read is nil.
type steps struct {
	rounds [][][]episode.StepRow
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
	out.rounds, out.rows = make([][][]episode.StepRow, count), rows/count
	for _, of := range episode.Rounds(turns) {
		if of[0].Round >= count || !searched(of, of[0].Round) {
			continue
		}
		followed, err := recorded.Turns(ctx, r.store, of)
		if err != nil {
			followed = make([]episode.Turn, len(of))
		} else if n := len(followed[0].Step); n != out.rows {
			followed, err = make([]episode.Turn, len(of)), fmt.Errorf("%d rows are kept, %d trajectories: %w", n, out.rows, store.ErrInvalid)
		}
		if err := lacks(of[0].Step, "what the turns of a search led to, and so their boards", err); err != nil {
			return out, err
		}
		for _, turn := range followed {
			out.rounds[of[0].Round] = append(out.rounds[of[0].Round], turn.Step)
		}
	}
	for _, t := range turns {
		if t.Round >= count || t.Round < 0 || searched(turns, t.Round) {
			continue
		}
		n := len(out.rounds[t.Round]) + 1
		table, err := tables.Get[episode.StepRow](ctx, r.store, t.Step)
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

// searched reports whether a search chose in a round.
func searched(turns []store.TurnRefs, round int) bool {
	return slices.ContainsFunc(turns, func(t store.TurnRefs) bool { return t.Round == round && (t.Choices != nil || t.Forks != nil) })
}

// of are a row's, a turn each; nil if a table could not be read.
func (s steps) of(row int) []*episode.StepRow {
	if s.rows == 0 {
		return nil
	}
	tables := s.rounds[row/s.rows]
	out := make([]*episode.StepRow, len(tables))
	for k, table := range tables {
		if table != nil {
			out[k] = &table[row%s.rows]
		}
	}
	return out
}
