package envs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// winding is an episode of four turns in the corridor: the reply of each, its actions,
// and the environment's answer.
var winding = []struct {
	said, at string // at is the state before the turn
	actions  []string
	reward   string // of the turn, as a prompt writes it
	left     int    // actions left before the turn
}{
	{" a </think><answer> Right </answer>", "P___", []string{"Right"}, "-0.1", 4},
	{" b </think><answer> Left || Left </answer>", "_P__", []string{"Left", "Left"}, "-0.2", 3},
	{" c </think><answer> Up </answer>", "P___", nil, "0", 1},
	{" d </think><answer> Right </answer>", "P___", []string{"Right"}, "-0.1", 1},
}

// A context of so many turns shows exactly those: under their own numbers, with the
// rewards and the actions left of the whole episode, what was sampled as it was
// recorded, and not one turn more.
func TestContextShowsItsWindow(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := corridor{}
	instance, chance := draw.Address{}, draw.Address{Member: 1}
	user := func(p envs.Protocol, turn int, begins bool) string {
		if begins {
			return strings.Replace(p.First(env, env.Reset(instance, chance))[1].Content,
				"Turn 1:\nP___\nActions left: 4", fmt.Sprintf("Turn %d:\n%s\nActions left: %d", turn+1, winding[turn].at, winding[turn].left), 1)
		}
		return fmt.Sprintf("Reward: %s\nTurn %d:\n%s\nActions left: %d\n%s", winding[turn-1].reward, turn+1, winding[turn].at, winding[turn].left,
			"Reply: <think> your thoughts </think><answer> your action </answer>")
	}
	var recorded []envs.Recorded
	for _, w := range winding {
		sampled := tok.EncodePlain(w.said)
		if len(recorded) != 1 { // the length limit cut the second
			sampled = append(sampled, starter.EndID)
		}
		recorded = append(recorded, envs.Recorded{Actions: w.actions, Sampled: sampled})
	}
	for window := 1; window <= len(winding)+1; window++ {
		p := think
		p.ContextTurns = window
		for turn := 1; turn <= len(winding); turn++ { // counted from 1
			t.Run(fmt.Sprintf("%d turns at turn %d", window, turn), func(t *testing.T) {
				require.Equal(t, turn > window, p.Restarts(turn))
				first := max(turn-window, 0) // counted from 0
				var messages []chat.Message
				messages = append(messages, chat.Message{Role: "system", Content: envs.SystemMessage})
				for shown := first; shown < turn; shown++ {
					messages = append(messages, chat.Message{Role: "user", Content: user(p, shown, shown == first)})
					if shown < turn-1 {
						messages = append(messages, chat.Message{Role: "assistant", Content: p.Opening() + winding[shown].said})
					}
				}
				ids, err := p.WindowIDs(tok, env, instance, chance, recorded[:turn-1])
				require.NoError(t, err)
				require.Equal(t, render(messages, p), tok.Decode(ids))
				require.Equal(t, min(turn, window), strings.Count(tok.Decode(ids), "\nTurn "), "so many turns are shown")
				// The sampled ids are as they were recorded, in order.
				rest := ids
				for shown := first; shown < turn-1; shown++ {
					at := indexOf(rest, recorded[shown].Sampled)
					require.GreaterOrEqual(t, at, 0, "what turn %d said", shown+1)
					rest = rest[at+len(recorded[shown].Sampled):]
				}
			})
		}
	}

	// Without a window nothing restarts, and the window of all turns is the context
	// that grows.
	for turn := 1; turn < 10; turn++ {
		require.False(t, think.Restarts(turn))
	}
	grown, err := think.PromptIDs(tok, env, env.Reset(instance, chance))
	require.NoError(t, err)
	for turn := 1; turn < len(winding); turn++ {
		actions := make([][]string, turn)
		for i := range actions {
			actions[i] = recorded[i].Actions
		}
		episode, played, err := envs.Replay(env, instance, chance, actions)
		require.NoError(t, err)
		next := envs.NextTurn{Number: turn + 1, Reward: played[turn-1].Reward, ActionsLeft: played[turn-1].ActionsLeft}
		more, err := think.ContinueIDs(tok, env, episode, next, recorded[turn-1].Sampled)
		require.NoError(t, err)
		grown = append(append(grown, recorded[turn-1].Sampled...), more...)
		p := think
		p.ContextTurns = turn + 1
		ids, err := p.WindowIDs(tok, env, instance, chance, recorded[:turn])
		require.NoError(t, err)
		require.Equal(t, grown, ids)
	}

	// Actions that do not fit the episode are refused, also those outside the window.
	p := think
	p.ContextTurns = 1
	bad := append([]envs.Recorded{{Actions: []string{"Up"}}}, recorded[1:]...)
	_, err = p.WindowIDs(tok, env, instance, chance, bad)
	require.ErrorIs(t, err, envs.ErrReplay)
}

// indexOf finds ids in others, −1 if they are not.
func indexOf(ids, part []int32) int {
	for i := 0; i+len(part) <= len(ids); i++ {
		same := true
		for j := range part {
			same = same && ids[i+j] == part[j]
		}
		if same {
			return i
		}
	}
	return -1
}

// The widths of windowed contexts hold the longest context that a turn can have, and
// are not much wider: they grow up to the window and no further, except for the numbers
// of the turns.
func TestWidthsOfWindows(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := corridor{}
	const turns, sample = 4, 40
	full, err := envs.MaxPromptTokens(env, tok, think, turns, sample)
	require.NoError(t, err)
	for window := 1; window <= turns+1; window++ {
		p := think
		p.ContextTurns = window
		widths, err := envs.MaxPromptTokens(env, tok, p, turns, sample)
		require.NoError(t, err)
		require.Len(t, widths, turns)
		for turn := 1; turn <= turns; turn++ {
			if turn <= window {
				require.Equal(t, full[turn-1], widths[turn-1], "nothing is left out yet")
			}
			recorded := make([]envs.Recorded, turn-1)
			for i := range recorded {
				recorded[i] = envs.Recorded{Actions: winding[i].actions, Sampled: make([]int32, sample)} // cut by the limit
			}
			ids, err := p.WindowIDs(tok, env, draw.Address{Group: 1}, draw.Address{}, nil)
			require.NoError(t, err)
			if turn > 1 {
				ids, err = p.WindowIDs(tok, env, draw.Address{}, draw.Address{}, recorded)
				require.NoError(t, err)
			}
			require.LessOrEqual(t, len(ids), widths[turn-1], "window %d, turn %d", window, turn)
			require.Less(t, widths[turn-1]-len(ids), 3*envs.PromptMultiple, "window %d, turn %d", window, turn)
			require.Zero(t, widths[turn-1]%envs.PromptMultiple)
			if turn > 1 {
				require.GreaterOrEqual(t, widths[turn-1], widths[turn-2], "widths do not fall")
			}
		}
	}
}

// A context of one turn alone has no rewards in it, so it is exactly as wide as the
// longest prompt so far. A turn's number has more digits from 10 on. The hint moves the
// length over all remainders of the multiple.
func TestWidthsOfSingleTurns(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := corridor{}
	const turns, sample = 12, 40
	grew := 0
	for hint := 1; hint < 1e16; hint *= 10 {
		p := think
		p.ContextTurns, p.LengthHint = 1, hint
		widths, err := envs.MaxPromptTokens(env, tok, p, turns, sample)
		require.NoError(t, err)
		longest := 0
		for turn := 1; turn <= turns; turn++ {
			for group := range int64(2) {
				// Turns without an action leave as many as there are.
				ids, err := p.WindowIDs(tok, env, draw.Address{Group: group}, draw.Address{}, make([]envs.Recorded, turn-1))
				require.NoError(t, err)
				longest = max(longest, len(ids))
			}
			want := (longest + envs.PromptMultiple - 1) / envs.PromptMultiple * envs.PromptMultiple
			require.Equal(t, want, widths[turn-1], "hint %d, turn %d", hint, turn)
		}
		if widths[turns-1] > widths[0] {
			grew++
		}
	}
	require.Positive(t, grew, "no length is at the edge of the multiple")
}
