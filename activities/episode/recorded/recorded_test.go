package recorded

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Which wave and turn follow: a wave begins where the first of its rows branches, and none begins where no row does.
func TestNext(t *testing.T) {
	s := store.NewMemory()
	forks := func(name string, turns ...int32) *store.Ref {
		var rows []episode.ForkRow
		for i, turn := range turns {
			rows = append(rows, episode.ForkRow{Row: int32(i), Turn: turn})
		}
		ref, err := tables.Put(t.Context(), s, "run", name, rows)
		require.NoError(t, err)
		return &ref
	}
	plain := store.TurnRefs{}
	for _, c := range []struct {
		refs       []store.TurnRefs
		wave, turn int
	}{
		{nil, 0, 1},
		{[]store.TurnRefs{plain, plain}, 0, 3},
		{[]store.TurnRefs{plain, plain, {Forks: forks("first", 2, 1)}}, 1, 2},
		{[]store.TurnRefs{plain, plain, {Forks: forks("second", 2, 1)}, plain}, 1, 3},
		{[]store.TurnRefs{plain, {Forks: forks("third", 1)}, {Forks: forks("fourth", 0)}}, 2, 1},
		{[]store.TurnRefs{plain, {Forks: forks("none")}}, 0, 3},
	} {
		wave, turn, err := Next(t.Context(), s, c.refs)
		require.NoError(t, err)
		require.Equal(t, []int{c.wave, c.turn}, []int{wave, turn})
	}
	_, _, err := Next(t.Context(), s, []store.TurnRefs{{Forks: &store.Ref{Key: "gone"}}})
	require.Error(t, err)
}
