package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A table of scores has sums of squares only where credit reads them: that of another run is as it was before they were.
func TestScoresOfCredit(t *testing.T) {
	methodstest.Needs(t, "grpo", "optimal_token_baseline")
	s, grpo, otb := store.NewMemory(), spec.Credit{Algorithm: "grpo"}, spec.Credit{Algorithm: "optimal_token_baseline"}
	rows := scoresOf(learnt(), 2)
	read := func(ref store.Ref, c spec.Credit) []episode.ScoreRow {
		got, err := ReadScores(t.Context(), s, &ref, "scores", c)
		require.NoError(t, err)
		return got
	}
	squared, err := PutScores(t.Context(), s, "runs/r", "scores", rows, otb)
	require.NoError(t, err)
	require.Equal(t, rows, read(squared, otb))

	plain, err := PutScores(t.Context(), s, "runs/r", "scores", rows, grpo)
	require.NoError(t, err)
	before, err := tables.Put(t.Context(), s, "runs/r", "scores", rows)
	require.NoError(t, err)
	require.Equal(t, before, plain)
	for i := range rows {
		rows[i].SumSquares = nil
	}
	require.Equal(t, rows, read(plain, grpo))

	for _, other := range []struct {
		of store.Ref
		by spec.Credit
	}{{plain, otb}, {squared, grpo}} {
		_, err := ReadScores(t.Context(), s, &other.of, "scores", other.by)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "scores: ")
	}
	for _, c := range []spec.Credit{grpo, otb} {
		none, err := ReadScores(t.Context(), s, nil, "scores", c)
		require.NoError(t, err)
		require.Nil(t, none)
	}
}
