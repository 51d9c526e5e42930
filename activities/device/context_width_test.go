package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// A context that takes exactly its width fits: the episode continues. With one token less
// it ends, truncated. This holds at every turn, and after a window.
func TestContextThatJustFits(t *testing.T) {
	const say = "Left</answer>"
	all := []string{say, say, say, say}
	for name, edits := range map[string][]string{"whole contexts": nil, "a window": {"rollout.context_turns=1"}} {
		t.Run(name, func(t *testing.T) {
			edits := append([]string{"rollout.turns=3"}, edits...)
			// The widths of the contexts of turns 2 and 3.
			var needed []int
			w := newWalked(t, edits...)
			var turns []store.TurnRefs
			for range 3 {
				refs, _, _, _ := w.turn(turns, all...)
				turns = append(turns, refs)
				_, contexts, _, err := contexts(t.Context(), w.kit, w.store, w.kit.Training, activities.GenerateInput{Policy: activities.Version{Run: w.Run}, Turn: len(turns) + 1, Turns: turns})
				require.NoError(t, err)
				needed = append(needed, len(contexts[0]))
			}
			for turn := 2; turn <= 3; turn++ {
				for _, short := range []int{0, 1} {
					w := newWalked(t, edits...)
					w.kit.Training.Widths[turn-1] = needed[turn-2] - short
					var before []store.TurnRefs
					for len(before) < turn-2 {
						refs, _, _, _ := w.turn(before, all...)
						before = append(before, refs)
					}
					refs, _, rows, got := w.turn(before, all...)
					row := rows[0]
					if short == 0 {
						require.Equal(t, 4, got.Alive, "turn %d", turn)
						require.False(t, row.Done, "turn %d", turn)
						require.False(t, row.ContextFull, "turn %d", turn)
						require.NotEmpty(t, row.NextIDs, "turn %d", turn)
						_, generated, _, _ := w.turn(append(before, refs), all...)
						require.True(t, generated[0].Alive)
						continue
					}
					require.Zero(t, got.Alive, "turn %d", turn)
					require.True(t, row.Done, "turn %d", turn)
					require.True(t, row.ContextFull, "turn %d", turn)
					require.False(t, row.NextRestart, "turn %d", turn)
					require.Empty(t, row.NextIDs, "turn %d", turn)
					require.True(t, episode.Trajectories(mustTurns(t, w, append(before, refs)...), w.kit.Training.Label)[0].Truncated)
				}
			}
		})
	}
}

// The first prompt may take exactly its width; one token more is an error that says
// which setting to raise.
func TestFirstPromptThatJustFits(t *testing.T) {
	w := newWalked(t)
	rows, _, err := firstPrompts(w.kit, w.kit.Training, 0, activities.Rollout{}, run.Answers{})
	require.NoError(t, err)
	w.kit.Training.Widths[0] = len(rows[0].PromptIDs)
	_, _, err = firstPrompts(w.kit, w.kit.Training, 0, activities.Rollout{}, run.Answers{})
	require.NoError(t, err)
	w.kit.Training.Widths[0]--
	_, _, err = firstPrompts(w.kit, w.kit.Training, 0, activities.Rollout{}, run.Answers{})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "prompt_tokens allows")
}
