package run

import (
	"context"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// PutScores writes a table of scores with the columns that credit reads. No algorithm reads both sums of squares and a teacher.
func PutScores(ctx context.Context, s store.Store, dir, name string, rows []episode.ScoreRow, c spec.Credit) (store.Ref, error) {
	switch {
	case c.ReadsSumSquares():
		return tables.Put(ctx, s, dir, name, mapped(rows, func(r episode.ScoreRow) episode.SquaredScoreRow {
			return episode.SquaredScoreRow{ScoreRow: r, SumSquares: r.SumSquares}
		}))
	case c.ReadsTeacher():
		return tables.Put(ctx, s, dir, name, mapped(rows, func(r episode.ScoreRow) episode.TeacherScoreRow {
			return episode.TeacherScoreRow{ScoreRow: r, TeacherLogProbs: r.TeacherLogProbs, Shown: r.Shown}
		}))
	}
	return tables.Put(ctx, s, dir, name, rows)
}

// ReadScores reads a table that PutScores wrote for the same credit; nil for a nil ref. what names it in errors, of
// which one says with kind ErrInvalid that it is another table.
func ReadScores(ctx context.Context, s store.Store, ref *store.Ref, what string, c spec.Credit) ([]episode.ScoreRow, error) {
	switch {
	case c.ReadsSumSquares():
		rows, err := SideTable[episode.SquaredScoreRow](ctx, s, ref, what)
		return mapped(rows, func(r episode.SquaredScoreRow) episode.ScoreRow {
			r.ScoreRow.SumSquares = r.SumSquares
			return r.ScoreRow
		}), err
	case c.ReadsTeacher():
		rows, err := SideTable[episode.TeacherScoreRow](ctx, s, ref, what)
		return mapped(rows, func(r episode.TeacherScoreRow) episode.ScoreRow {
			r.ScoreRow.TeacherLogProbs, r.ScoreRow.Shown = r.TeacherLogProbs, r.Shown
			return r.ScoreRow
		}), err
	}
	return SideTable[episode.ScoreRow](ctx, s, ref, what)
}

// mapped is f of each row; nil for nil.
func mapped[A, B any](rows []A, f func(A) B) []B {
	if rows == nil {
		return nil
	}
	out := make([]B, len(rows))
	for i, r := range rows {
		out[i] = f(r)
	}
	return out
}
