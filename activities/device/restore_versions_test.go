package device

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Whatever version a worker holds, it gets to any other one by the updates that are
// missing, each once: from what it holds where that is on the way, else from the newest
// stored state at or before the goal.
func TestRestoreFromEveryVersion(t *testing.T) {
	t.Parallel()
	const iterations = 4
	for every, stored := range map[int][]int{iterations: {0, iterations}, 2: {0, 2, iterations}} {
		t.Run(fmt.Sprintf("a snapshot every %d", every), func(t *testing.T) {
			t.Parallel()
			r := begun(t, "ways", tinySpec(t, "iterations=4", fmt.Sprintf("snapshot.every=%d", every), "evaluation.every=0"))
			states, heads := []string{r.state}, []*store.Ref{nil}
			for range iterations {
				r.iterate(t)
				states, heads = append(states, r.state), append(heads, r.head)
			}
			at := func(v int) activities.RestoreInput {
				return activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: v, State: states[v]}, Head: heads[v]}
			}
			for from := range states {
				for to := range states {
					where := fmt.Sprintf("from version %d to version %d", from, to)
					require.Equal(t, states[from], r.restore(t, at(from)).State)
					base := 0
					for _, v := range stored {
						if v <= to {
							base = v
						}
					}
					begin := base
					if from >= base && from <= to {
						begin = from
					}
					got := r.restore(t, at(to))
					require.True(t, got.Done, where)
					require.Equal(t, states[to], got.State, where)
					require.Equal(t, states[to], r.Device.Engine.fingerprint, where)
					require.Equal(t, to, got.Reached, where)
					require.Equal(t, base, got.From, where)
					require.Equal(t, from == to, got.Resident, where)
					require.Equal(t, from >= base && from <= to, got.Telemetry.LoadSeconds == 0, "%s: what is held is not read again", where)
					require.Equal(t, to-begin, got.Telemetry.Recomputed, where)
				}
			}

			// With an update that is not committed yet it is one more.
			last := r.commits[iterations-1]
			pending := at(iterations - 1)
			pending.Pending = &activities.PendingUpdate{Batch: *last.Batch, Settings: last.Settings, State: last.StateAfter}
			base := stored[len(stored)-2]
			for from := base; from < iterations; from++ {
				r.restore(t, at(from))
				got := r.restore(t, pending)
				require.True(t, got.Done, from)
				require.Equal(t, last.StateAfter, got.State, from)
				require.Equal(t, last.StateBefore, got.Before, from)
				require.Equal(t, iterations-from, got.Telemetry.Recomputed, from)
			}
		})
	}
}
