package starter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

func mustEnv(t testing.TB, name, options string) envs.Environment {
	t.Helper()
	env, err := envs.New(name, json.RawMessage(options))
	require.NoError(t, err)
	return env
}

// stepsOf are a warm start's first steps.
func stepsOf(t *testing.T, tok *tokenizer.Tokenizer, env envs.Environment, p envs.Protocol, o Options, steps, n int) (rows []Transcript) {
	t.Helper()
	for step := range steps {
		got, err := Transcripts(tok, env, p, o, n, draw.Address{Seed: 5, Purpose: draw.WarmStart, Iteration: int64(step)})
		require.NoError(t, err)
		rows = append(rows, got...)
	}
	return rows
}

// replies are what a row teaches, read as a policy's replies are, [turns].
func replies(tok *tokenizer.Tokenizer, env envs.Environment, p envs.Protocol, row Transcript) (out []envs.Reply) {
	for at := 0; at < len(row.IDs); at++ {
		if end := at; row.Loss[at] {
			for end < len(row.IDs) && row.Loss[end] {
				end++
			}
			reply, _ := p.ReadReply(tok, env, row.IDs[at:end])
			out = append(out, reply)
			at = end
		}
	}
	return out
}

// Demonstrations solve what they are shown in, within turns and actions.
func TestDemonstrationsSolve(t *testing.T) {
	tok := mustTokenizer(t)
	for name, c := range map[string]struct {
		env, options string
		turns        int
	}{
		"lake":                      {"frozenlake", `{"slippery":false}`, 2},
		"lake, an action a turn":    {"frozenlake", `{"slippery":false,"max_actions_per_turn":1}`, 4},
		"rooms":                     {"sokoban", `{"max_actions_per_turn":3}`, 4},
		"rooms of a pool, thinking": {"sokoban", `{"instances":2}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			env := mustEnv(t, c.env, c.options)
			p := envs.Protocol{Think: strings.Contains(name, "thinking")}
			rows := stepsOf(t, tok, env, p, Options{Turns: c.turns, Demonstrations: 1}, 2, 24)
			several, boards := 0, map[string]bool{}
			for _, row := range rows {
				text := tok.Decode(row.IDs)
				require.Equal(t, 1, strings.Count(text, "Turn 1:\n"))
				_, board, _ := strings.Cut(text, "Turn 1:\n")
				board, _, _ = strings.Cut(board, "\nActions left")
				boards[board] = true
				options := map[string]any{"layout": board}
				if c.env == "frozenlake" {
					options = map[string]any{"layout": strings.NewReplacer("P", "S", "_", "F", "O", "H").Replace(board), "slippery": false}
				}
				raw, err := json.Marshal(options)
				require.NoError(t, err)
				episode := mustEnv(t, c.env, string(raw)).Reset(draw.Address{}, draw.Address{})
				turns := replies(tok, env, p, row)
				require.LessOrEqual(t, len(turns), c.turns)
				left := env.MaxActions()
				for _, reply := range turns {
					require.True(t, reply.Formatted)
					require.Zero(t, reply.Surplus)
					require.NotEmpty(t, reply.Actions)
					if len(reply.Actions) > 1 {
						several++
					}
					played := p.Play(episode, reply, left)
					require.Equal(t, len(reply.Actions), played.Effective)
					left = played.ActionsLeft
				}
				require.True(t, episode.Success(), text)
			}
			require.Equal(t, env.MaxActionsPerTurn() > 1, several > 0)
			if strings.Contains(c.options, "instances") {
				require.Len(t, boards, 2)
			} else {
				require.Greater(t, len(boards), 40, "instances of their own, not the cases")
			}
		})
	}
}

// Under chance a turn has one action, the slips come from the row's address, and a
// transcript ends where nothing can succeed any more.
func TestDemonstrationsUnderChance(t *testing.T) {
	tok := mustTokenizer(t)
	env := mustEnv(t, "frozenlake", "")
	l := Options{Turns: 4, Demonstrations: 1}
	rows := stepsOf(t, tok, env, envs.Protocol{}, l, 2, 32)
	require.Equal(t, rows, stepsOf(t, tok, env, envs.Protocol{}, l, 2, 32))
	lengths := map[int]int{}
	for _, row := range rows {
		turns := replies(tok, env, envs.Protocol{}, row)
		lengths[len(turns)]++
		for _, reply := range turns {
			require.Len(t, reply.Actions, 1)
		}
	}
	require.Greater(t, len(lengths), 2, lengths)
}

// The share holds in every step as well as rounding allows, and over all of them.
func TestShareOfDemonstrations(t *testing.T) {
	tok := mustTokenizer(t)
	env := mustEnv(t, "sokoban", `{"max_actions_per_turn":10,"instances":3}`)
	p := envs.Protocol{}
	for _, c := range []struct {
		share  float64
		n      int
		counts []int
	}{
		{0, 8, []int{0, 0, 0}},
		{0.25, 8, []int{2, 2, 2}},
		{0.3, 5, []int{2, 1, 2, 1}},
		{0.1, 4, []int{0, 1, 0, 1, 0}},
		{0.29, 100, []int{29, 29}},
		{1, 3, []int{3, 3}},
	} {
		l := Options{Turns: 1, Demonstrations: c.share}
		at := int64(0)
		for step, want := range c.counts {
			got := l.shown(at+int64(c.n)) - l.shown(at)
			require.Equal(t, int64(want), got, "share %v, step %d", c.share, step)
			at += int64(c.n)
		}
	}
	// Random rows continue through the combinations as if there were no other rows.
	l := Options{Turns: 1, Demonstrations: 0.5}
	seen := map[string]int{}
	for k, row := range stepsOf(t, tok, env, p, l, 4, 6) {
		if l.shown(int64(k)+1) == l.shown(int64(k)) {
			_, board, _ := strings.Cut(tok.Decode(row.IDs), "Turn 1:\n")
			board, _, _ = strings.Cut(board, "Actions left")
			seen[board+replies(tok, env, p, row)[0].Actions[0]]++
		}
	}
	require.Len(t, seen, 12, "three rooms, four actions")
}

// mute is an environment whose episodes know no best play.
type mute struct{ envs.Environment }

func (m mute) Reset(instance, chance draw.Address) envs.Episode {
	return struct{ envs.Episode }{m.Environment.Reset(instance, chance)}
}

func TestLessonsWithoutAdvice(t *testing.T) {
	env, err := envs.New("bandit", nil)
	require.NoError(t, err)
	_, err = Transcripts(mustTokenizer(t), mute{env}, envs.Protocol{}, Options{Turns: 1, Demonstrations: 0.5}, 1, draw.Address{Purpose: draw.WarmStart})
	require.ErrorIs(t, err, ErrNoAdvice)
	require.ErrorContains(t, err, `transcripts of environment "bandit": row 0: no demonstrations: it does not know best play`)
}

// If an environment cannot be demonstrated, the error names it.
func TestLessonsAreRefused(t *testing.T) {
	tok := mustTokenizer(t)
	for _, c := range []struct {
		env, options string
		l            Options
		kind         error
		text         string
	}{
		{"sokoban", `{"layout":"#####\n#X_O#\n#P__#\n#####"}`, Options{Turns: 5, Demonstrations: 1}, ErrNoAdvice, "none of 4000 instances can be solved in 5 turns"},
		{"sokoban", `{"layout":"#######\n#P__XO#\n#######","max_actions_per_turn":1}`, Options{Turns: 2, Demonstrations: 1}, ErrNoAdvice, "can be solved in 2 turns"},
		{"bandit", "", Options{Demonstrations: 0}, nil, "an episode has 0 turns"},
		{"bandit", "", Options{Turns: 1, Demonstrations: -0.1}, nil, "the share of demonstrations is -0.1, must be from 0 to 1"},
		{"bandit", "", Options{Turns: 1, Demonstrations: 1.5}, nil, "the share of demonstrations is 1.5"},
	} {
		env, err := envs.New(c.env, json.RawMessage(c.options))
		require.NoError(t, err)
		_, err = Transcripts(tok, env, envs.Protocol{}, c.l, 1, draw.Address{Purpose: draw.WarmStart})
		require.ErrorContains(t, err, c.text)
		if c.kind != nil {
			require.ErrorIs(t, err, c.kind)
		}
	}
}

// Solve plays the very episode that it is given, as a demonstration of it would be, and says whether that succeeds.
func TestSolve(t *testing.T) {
	env := mustEnv(t, "sokoban", `{"layout":"######\n#PX_O#\n######","max_actions_per_turn":1}`)
	reset := func() envs.Episode { return env.Reset(draw.Address{}, draw.Address{}) }
	actions, success := Solve(env, envs.Protocol{}, reset(), 2)
	require.Equal(t, [][]string{{"Right"}, {"Right"}}, actions)
	require.True(t, success)
	actions, success = Solve(env, envs.Protocol{}, reset(), 1)
	require.Empty(t, actions, "none succeeds in one turn")
	require.False(t, success)

	lakes := mustEnv(t, "frozenlake", "") // slippery
	succeeded, n := 0, 40
	for i := range int64(n) {
		at := draw.Address{Purpose: draw.Instance, Group: i}
		first, won := Solve(lakes, envs.Protocol{}, lakes.Reset(at, at), 4)
		again, same := Solve(lakes, envs.Protocol{}, lakes.Reset(at, at), 4)
		require.Equal(t, first, again)
		require.Equal(t, won, same)
		if won {
			succeeded++
		}
	}
	require.Greater(t, succeeded, 0)
	require.Less(t, succeeded, n, "luck decides")
	_, success = Solve(env, envs.Protocol{}, struct{ envs.Episode }{reset()}, 4)
	require.False(t, success, "best play is not known")
}
