package chaos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// pieces is a run of several turns in which each Generate, Score, Diagnose, Update and Snapshot
// is made in pieces: an update in four, with two minibatches in each of two epochs.
var pieces = scene{lane: "undisturbed-pieces", preset: "chaos-turns", quick: true, change: map[string]any{
	"rollout.pass_rows": 4, "limits.generate_rows": 8, "limits.score_rows": 4, "limits.update_rows": 4, "limits.snapshot_mib": 1,
	"update.minibatch": 4, "update.epochs": 2, "diagnostics.every": 3, "diagnostics.samples": 4,
}}

// TestChaosPieces kills workers in the middle of a step's pieces: the next worker begins
// the piece that was lost anew, and no other. An update, whose pieces are in the worker's
// memory, it begins anew as a whole; so it does the rebuild of version 1, which has no snapshot.
func TestChaosPieces(t *testing.T) {
	beside(t)
	want := pieces.reference(t)
	last := 0
	for d := range pieces.deeds.completed {
		last = max(last, d.piece)
	}
	require.Equal(t, 1, last, "16 rows in pieces of 8")
	l := newLane(t, sharedStack(t)).withStarterOf(&pieces)
	// A worker that follows the run has no pieces of a Restore to do.
	stop := l.keepWith(workerOptions{flags: []string{"--follow", "0"}}, "Generate@2/inside/2", "Score/written/1", "Diagnose/inside/2",
		"Update/written/2", "Update#1/begin/3", "Restore/begin/3", "Snapshot/inside/2", "Generate@"+secondSuite+":2/written/1")
	l.start(chaosRun, pieces.spec(t))
	l.completes(chaosRun)
	stop()
	l.keeps(chaosRun, pieces.deeds, deed{"Generate", "", 0, 2, 1}, deed{"Generate", secondSuite, turnsIterations, 2, 0})
	l.isAs(chaosRun, want)
	undisturbed := &lane{t: t, stack: sharedStack(t), prefix: pieces.lane}
	undisturbed.store = undisturbed.open(undisturbed.prefix)
	require.Equal(t, undisturbed.pieceTables(), l.pieceTables())
}

// pieceTables are the keys of the tables that pieces left, which no manifest names. A
// key has its table's digest.
func (l *lane) pieceTables() (keys []string) {
	l.t.Helper()
	for o, err := range l.store.List(l.t.Context(), store.RunDir(chaosRun)+"/") {
		require.NoError(l.t, err)
		if strings.Contains(o.Key, ".piece-") {
			keys = append(keys, o.Key)
		}
	}
	for _, kind := range []string{"turn-2.generate", "scores", "diagnosis", secondSuite + "/turn-2.generate"} {
		require.Contains(l.t, strings.Join(keys, " "), kind+".piece-1.")
	}
	return keys
}
