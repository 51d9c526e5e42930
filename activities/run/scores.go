package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// ReadScores reads a scores table, with the teacher's column where rows have one; nil for no reference.
func ReadScores(ctx context.Context, s store.Store, ref *store.Ref, byTeacher bool) ([]episode.ScoreRow, error) {
	if !byTeacher {
		return SideTable[episode.ScoreRow](ctx, s, ref, "scores")
	}
	rows, err := SideTable[episode.TeacherScoreRow](ctx, s, ref, "scores")
	if err != nil || rows == nil {
		return nil, err
	}
	out := make([]episode.ScoreRow, len(rows))
	for i, r := range rows {
		out[i] = r.ScoreRow
		out[i].TeacherLogProbs = r.TeacherLogProbs
	}
	return out, nil
}

// PutScores stores what ReadScores reads.
func PutScores(ctx context.Context, s store.Store, dir, name string, rows []episode.ScoreRow, byTeacher bool) (store.Ref, error) {
	if !byTeacher {
		return tables.Put(ctx, s, dir, name, rows)
	}
	out := make([]episode.TeacherScoreRow, len(rows))
	for i, r := range rows {
		out[i] = episode.TeacherScoreRow{ScoreRow: r, TeacherLogProbs: r.TeacherLogProbs}
	}
	ref, err := tables.Put(ctx, s, dir, name, out)
	if err != nil {
		return store.Ref{}, fmt.Errorf("scores with a teacher's: %w", err)
	}
	return ref, nil
}
