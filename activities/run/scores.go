package run

import (
	"context"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// PutScores writes a table of scores with the columns that credit reads.
func PutScores(ctx context.Context, s store.Store, dir, name string, rows []episode.ScoreRow, c spec.Credit) (store.Ref, error) {
	if !c.ReadsSumSquares() {
		return tables.Put(ctx, s, dir, name, rows)
	}
	squared := make([]episode.SquaredScoreRow, len(rows))
	for i, r := range rows {
		squared[i] = episode.SquaredScoreRow{ScoreRow: r, SumSquares: r.SumSquares}
	}
	return tables.Put(ctx, s, dir, name, squared)
}

// ReadScores reads a table that PutScores wrote for the same credit; nil for a nil ref. what names it in errors, of
// which one says with kind ErrInvalid that it is another table.
func ReadScores(ctx context.Context, s store.Store, ref *store.Ref, what string, c spec.Credit) ([]episode.ScoreRow, error) {
	if !c.ReadsSumSquares() {
		return SideTable[episode.ScoreRow](ctx, s, ref, what)
	}
	squared, err := SideTable[episode.SquaredScoreRow](ctx, s, ref, what)
	if err != nil || squared == nil {
		return nil, err
	}
	rows := make([]episode.ScoreRow, len(squared))
	for i, r := range squared {
		rows[i] = r.ScoreRow
		rows[i].SumSquares = r.SumSquares
	}
	return rows, nil
}
