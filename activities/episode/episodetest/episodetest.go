// Package episodetest makes the recorded turns that tests read.
package episodetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Turn is a turn of groups of so many slots, a row for each reward. A row's one sampled id is
// 100·turn + row, and done ends it. A row that is not alive has neither id nor reward. alive and done are
// [rows]; nil says that all rows are alive, and that none ends.
func Turn(turn, slots int, rewards []float64, alive, done []bool) episode.Turn {
	var out episode.Turn
	for i, r := range rewards {
		g := episode.GenerateRow{Row: int32(i), Group: int32(i / slots), Member: int32(i % slots), Alive: alive == nil || alive[i]}
		st := episode.StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: !g.Alive || done != nil && done[i]}
		if g.Alive {
			g.SampledIDs, st.Reward = []int32{int32(100*turn + i)}, r
		}
		out.Generate, out.Step = append(out.Generate, g), append(out.Step, st)
	}
	return out
}

// Put stores a table.
func Put[T any](t testing.TB, s store.Store, rows []T) store.Ref {
	t.Helper()
	ref, err := tables.Put(t.Context(), s, "runs/r", "table", rows)
	require.NoError(t, err)
	return ref
}

// PutTurn stores the tables of a turn of a round.
func PutTurn(t testing.TB, s store.Store, round int, turn episode.Turn) store.TurnRefs {
	t.Helper()
	return store.TurnRefs{Round: round, Generate: Put(t, s, turn.Generate), Step: Put(t, s, turn.Step)}
}

// Sampled are the ids that a row sampled, turn by turn, as far as it is alive.
func Sampled(turns []episode.Turn, row int) (ids []int32) {
	for _, turn := range turns {
		if turn.Generate[row].Alive {
			ids = append(ids, turn.Generate[row].SampledIDs...)
		}
	}
	return ids
}
