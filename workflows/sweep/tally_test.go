package sweep

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// However its rows have changed, a tally says what a new one says of the same rows, and it
// computes only the settings whose rows have changed.
func TestTally(t *testing.T) {
	d := Definition{Metrics: []string{"success/mean", "none"}}
	draw := rand.New(rand.NewPCG(1, 2))
	const settings, seeds = 20, 5
	rows := make([]Row, settings*seeds)
	values := make([][]Value, len(rows))
	for i := range rows {
		rows[i] = Row{Setting: fmt.Sprint(i % settings), State: Pending}
	}
	tally := d.NewTally()
	for step := range 500 {
		i := draw.IntN(len(rows))
		rows[i].State = []State{Running, Done, Done, Dropped, Failed}[draw.IntN(5)]
		values[i] = []Value{{Last: canon.Float(draw.IntN(4)), At: draw.IntN(3) - 1}, NoValue()}
		rows[i].Metrics = d.Named(values[i])
		for i, r := range rows {
			tally.Set(i, r.Setting, r.State, values[i])
		}
		before := tally.computed
		require.Equal(t, fmt.Sprint(d.Settings(rows)), fmt.Sprint(tally.Settings())) // with NaN
		if step > 0 {
			require.LessOrEqual(t, tally.computed-before, 1)
		}
	}
	require.Less(t, tally.computed, settings+500)
}

// The settings come in the order of their first rows that are not dropped.
func TestTallyOrder(t *testing.T) {
	tally := Definition{}.NewTally()
	names := func() (out []string) {
		for _, s := range tally.Settings() {
			out = append(out, s.Setting)
		}
		return out
	}
	for i, setting := range []string{"a", "b", "a", "c"} {
		tally.Set(i, setting, Pending, nil)
	}
	require.Equal(t, []string{"a", "b", "c"}, names())
	tally.Set(0, "a", Dropped, nil)
	require.Equal(t, []string{"b", "a", "c"}, names())
	tally.Set(1, "b", Dropped, nil)
	require.Equal(t, []string{"a", "c"}, names())
}
