package device

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/iteration"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// What an iteration makes does not depend on the pieces it was made in: not the tables,
// not the batch, not the state, not a figure. With a window of contexts the rows of a
// trajectory are in several pieces of Score.
func TestPieces(t *testing.T) {
	t.Parallel()
	edits := []string{
		"rollout.pass_rows=2", "rollout.context_turns=1", `credit.algorithm="gae"`, `update.kl_in="loss"`,
		"update.epochs=2", "diagnostics.every=1", "diagnostics.samples=3", "evaluation.every=1", "evaluation.instances=5",
	}
	whole := fresh(t, edits...)
	want, calls := whole.counted(t)
	require.Equal(t, map[string]int{"Generate": 6, "Score": 1, "Diagnose": 1, "Update": 1}, calls)
	objects := whole.objects(t)

	// Sampling in chunks of tokens has other programs, and the same bits.
	cut := fresh(t, append(edits, "limits.generate_rows=4", "limits.score_rows=4", "limits.update_rows=8", "rollout.chunk_tokens=3")...)
	got, calls := cut.counted(t)
	require.Equal(t, 12, calls["Generate"], "2 turns of 8 rows in a rollout, of 5 in each of two evaluations")
	require.Greater(t, calls["Score"], 2)
	require.Greater(t, calls["Diagnose"], 2)
	require.Greater(t, calls["Update"], 2)
	require.NotEqual(t, want.Programs, got.Programs)
	got.Run.Spec, got.Programs = want.Run.Spec, want.Programs
	require.Equal(t, want, got)
	pieces := 0
	for key, digest := range cut.objects(t) {
		switch {
		case strings.Contains(key, ".piece-"):
			pieces++
		case !strings.HasSuffix(key, "spec.json"):
			require.Equal(t, objects[key], digest, key)
		}
	}
	require.Equal(t, calls["Generate"]/2+calls["Score"]+calls["Diagnose"]-2, pieces, "all but the last of each step leave a table")
}

// counted does an iteration and counts the steps that can be in pieces. Each runs twice,
// as Temporal may, and writes the same.
func (r *testRun) counted(t *testing.T) (activities.CommitInput, map[string]int) {
	t.Helper()
	calls := map[string]int{}
	it := iteration.New(r.iteration().start(r.Device.Engine.Info()), iteration.Begin(r.Settings, nil))
	in, err := it.ToCommit(func(c iteration.Call) (any, error) {
		for _, b := range append(r.Host.Steps(), r.Device.Steps()...) {
			if b.Name != c.Name {
				continue
			}
			out, err := b.Call(t.Context(), c.Input)
			switch c.Input.(type) {
			case activities.GenerateInput, activities.ScoreInput, activities.DiagnoseInput, activities.UpdateInput:
				calls[c.Name]++
				require.NoError(t, err)
				before := r.objects(t)
				out, err = b.Call(t.Context(), c.Input)
				require.Equal(t, before, r.objects(t))
			}
			return out, err
		}
		return nil, fmt.Errorf("nothing does %s", c.Name)
	})
	require.NoError(t, err)
	in.Timings = nil
	return in, calls
}

// Tables of pieces that are not those of the step are refused.
func TestPiecesThatDoNotFit(t *testing.T) {
	s := store.NewMemory()
	put := func(rows any) (ref store.Ref) {
		var err error
		switch rows := rows.(type) {
		case []episode.GenerateRow:
			ref, err = tables.Put(t.Context(), s, "runs/r", "piece", rows)
		case []episode.ScoreRow:
			ref, err = tables.Put(t.Context(), s, "runs/r", "piece", rows)
		case []episode.PairRow:
			ref, err = tables.Put(t.Context(), s, "runs/r", "piece", rows)
		}
		require.NoError(t, err)
		return ref
	}
	turn := func(numbers ...int32) (rows []episode.GenerateRow) {
		for _, n := range numbers {
			rows = append(rows, episode.GenerateRow{Row: n, PromptIDs: []int32{n}})
		}
		return rows
	}
	other := turn(1)
	other[0].PromptIDs = []int32{7}
	first := put(turn(0))
	require.NoError(t, sampledBefore(t.Context(), s, []store.Ref{first, put(turn(1))}, turn(0, 1)))
	for _, pieces := range [][]store.Ref{{first}, {first, first}, {put(turn(1)), first}, {first, put(other)}, {first, put(turn(1, 2))}} {
		require.ErrorIs(t, sampledBefore(t.Context(), s, pieces, turn(0, 1)), store.ErrInvalid)
	}

	scores := func(numbers ...int32) (rows []episode.ScoreRow) {
		for _, n := range numbers {
			rows = append(rows, episode.ScoreRow{Row: n})
		}
		return rows
	}
	require.NoError(t, scoredBefore(t.Context(), s, []store.Ref{put(scores(3, 5)), put(scores(3, 5))}, scores(3, 5), spec.Credit{}))
	for _, piece := range [][]episode.ScoreRow{scores(3), scores(3, 4), scores(3, 5, 7)} {
		require.ErrorIs(t, scoredBefore(t.Context(), s, []store.Ref{put(piece)}, scores(3, 5), spec.Credit{}), store.ErrInvalid)
	}

	pairs := []pair{{PairRow: episode.PairRow{Prompt: 0}}, {PairRow: episode.PairRow{Prompt: 1}}}
	got, err := pairsBefore(t.Context(), s, []store.Ref{put([]episode.PairRow{{LogProb: math.Inf(-1)}}), put([]episode.PairRow{{Prompt: 1, LogProb: 2}})}, pairs)
	require.NoError(t, err)
	require.Len(t, got, 2)
	for _, piece := range [][]episode.PairRow{{{}}, {{}, {Reasoning: 1}}, {{}, {Prompt: 1}, {Prompt: 2}}} {
		_, err := pairsBefore(t.Context(), s, []store.Ref{put(piece)}, pairs)
		require.ErrorIs(t, err, store.ErrInvalid)
	}

	_, err = pieceOf(8, 4, 1)
	require.NoError(t, err)
	for _, done := range [][3]int{{8, 4, 2}, {8, 0, 1}, {0, 0, 1}} {
		_, err := pieceOf(done[0], done[1], done[2])
		require.ErrorIs(t, err, store.ErrInvalid)
	}
}
