package lakefortwo

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

func mustNew(t testing.TB, options string) *LakeForTwo {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env.(*LakeForTwo)
}

// instance is the k-th lake that these tests play.
func instance(k int) draw.Address { return draw.Address{Purpose: draw.Instance, Group: int64(k)} }

// A pinned episode: each role sees its own part, and a message has a turn for each word.
func TestRoles(t *testing.T) {
	env := mustNew(t, "")
	e := env.Reset(instance(0), draw.Address{})
	see := func(role, want string) {
		t.Helper()
		require.Equal(t, want, e.Observation())
		require.Equal(t, role, env.Role(e.StateKey()))
	}
	see(Reader, "Reader\n__P\n___\n__G\nSay 1 to 2 of Left, Down, Right, Up")
	require.Len(t, e.Choices(), 4+16)
	require.Equal(t, []string{"Down Down", "Down", "Down"}, e.(envs.Advised).Advice(3))
	require.Empty(t, e.(envs.Advised).Advice(2))
	_, ok := e.Legal("Right Right Right")
	require.False(t, ok, "three words")
	said, ok := e.Legal("up  LEFT")
	require.True(t, ok)
	require.Equal(t, "Up Left", said)
	require.Equal(t, envs.Outcome{Effective: true}, e.Step(said))
	see(Walker, "Walker at (0,2)\nReader says: Up Left\nMove: Left, Down, Right, Up")
	require.Equal(t, []string{"Left", "Down", "Right", "Up"}, e.Choices())
	_, ok = e.Legal("Up Left")
	require.False(t, ok, "the walker makes one move")
	require.Equal(t, envs.Outcome{Effective: true}, e.Step("Up"), "a move against the edge uses the word up")
	see(Walker, "Walker at (0,2)\nReader says: Left\nMove: Left, Down, Right, Up")
	e.Step("Left")
	see(Reader, "Reader\n_P_\n___\n__G\nSay 1 to 2 of Left, Down, Right, Up")
	for _, action := range []string{"Down Right", "Down", "Right", "Down"} {
		require.False(t, e.Done())
		e.Step(action)
	}
	see(Walker, "Walker at (1,2)\nReader says: Down\nMove: Left, Down, Right, Up")
	require.Equal(t, envs.Outcome{Reward: 1, Done: true, Effective: true, Success: true}, e.Step("Down"))
	require.PanicsWithValue(t, `lakefortwo: step "Down" of the reader is not legal (done: true)`, func() { e.Step("Down") })
	require.Equal(t, []string{Reader, Walker}, env.Roles())
	require.Contains(t, mustNew(t, `{"words":1}`).Reset(instance(0), draw.Address{}).Observation(), "\nSay one of Left, Down, Right, Up")
}

// The walker's text does not depend on the map.
func TestWalkerDoesNotSeeTheMap(t *testing.T) {
	env := mustNew(t, "")
	seen := map[string]map[string]bool{} // walker's texts by what they should depend on
	maps := map[string]bool{}
	for k := range 300 {
		e := env.Reset(instance(k), draw.Address{}).(*episode)
		maps[strings.Join(e.Grid(), "\n")] = true
		row, column := e.place()
		e.Step("Left Up")
		key := string(rune('0'+row)) + string(rune('0'+column))
		if seen[key] == nil {
			seen[key] = map[string]bool{}
		}
		seen[key][e.Observation()] = true
	}
	require.Greater(t, len(maps), 200)
	require.Len(t, seen, 9)
	for _, texts := range seen {
		require.Len(t, texts, 1)
	}
}

// Advice solves every lake that the options draw, with as many actions as it says, and random
// play few of them.
func TestAdviceSolvesEveryLake(t *testing.T) {
	for name, options := range map[string]string{
		"as it is":             "",
		"the fewest actions":   `{"max_actions":6}`,
		"one word a message":   `{"words":1,"max_actions":8}`,
		"larger, with holes":   `{"size":5,"words":3,"frozen_probability":0.6,"max_actions":16}`,
		"all holes":            `{"frozen_probability":0,"max_actions":6}`,
		"two by two of a pool": `{"size":2,"max_actions":6,"instances":7,"pool":3}`,
	} {
		t.Run(name, func(t *testing.T) {
			env := mustNew(t, options)
			random, n := 0, 2000
			r := rand.New(rand.NewPCG(1, 2))
			for k := range n {
				e := env.Reset(instance(k), draw.Address{})
				require.Equal(t, 1.0, e.(envs.Advised).BestSuccess(env.MaxActions()))
				require.Equal(t, 1.0, e.(envs.Valued).BestReward(env.MaxActions()))
				plan := e.(envs.Advised).Advice(env.MaxActions())
				require.Zero(t, e.(envs.Advised).BestSuccess(len(plan)-1), "the plan is a shortest one")
				reward := 0.0
				for i, action := range plan {
					require.Equal(t, plan[i:], e.(envs.Advised).Advice(env.MaxActions()), "advice continues the plan")
					reward += e.Step(action).Reward
				}
				require.Equal(t, 1.0, reward)
				require.True(t, e.Success() && e.Done())

				e = env.Reset(instance(k), draw.Address{})
				for left := env.MaxActions(); left > 0 && !e.Done(); left-- {
					choices := e.Choices()
					e.Step(choices[r.IntN(len(choices))])
				}
				if e.Success() {
					random++
				}
			}
			if name == "as it is" {
				require.InDelta(t, 0.32, float64(random)/float64(n), 0.02)
			}
		})
	}
}

// Equal addresses give equal lakes, whatever the member; a pool has as many as it says.
func TestInstances(t *testing.T) {
	env, pooled := mustNew(t, ""), mustNew(t, `{"instances":5}`)
	lakes, ofPool := map[string]bool{}, map[string]bool{}
	for k := range 40 {
		a := instance(k)
		first := env.Reset(a, draw.Address{}).StateKey()
		a.Member = 3
		require.Equal(t, first, env.Reset(a, draw.Address{Member: 3}).StateKey())
		lakes[first] = true
		ofPool[pooled.Reset(a, draw.Address{}).StateKey()] = true
	}
	require.Greater(t, len(lakes), 35)
	require.Len(t, ofPool, 5)
}

// What a policy may meet fits the widths that are computed, for both tokenizers.
func TestWidths(t *testing.T) {
	for _, v := range []starter.Vocabulary{starter.First, starter.Second} {
		tok, err := v.Tokenizer()
		require.NoError(t, err)
		for _, options := range []string{"", `{"size":12,"words":3,"max_actions":40}`} {
			env, p := mustNew(t, options), envs.Protocol{ContextTurns: 1}
			widths, err := envs.MaxPromptTokens(env, tok, p, 6, 8)
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(3, 4))
			for k := range 200 {
				e := env.Reset(instance(k), draw.Address{})
				for turn := 1; turn <= 6 && !e.Done(); turn++ {
					ids, err := p.BeginIDs(tok, env, e, turn, env.MaxActions()-turn+1)
					require.NoError(t, err)
					require.LessOrEqual(t, len(ids), widths[turn-1])
					choices := e.Choices()
					e.Step(choices[r.IntN(len(choices))])
				}
			}
		}
	}
}

// With a window of one turn transcripts show both roles, in prompts as a run has them, random
// play as well as best play, whose walker obeys.
func TestTranscriptsShowBothRoles(t *testing.T) {
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	env, p := mustNew(t, ""), envs.Protocol{ContextTurns: 1}
	widths, err := envs.MaxPromptTokens(env, tok, p, 6, 8)
	require.NoError(t, err)
	for _, share := range []float64{0, 1} {
		o := starter.Options{Turns: 6, Window: 1, Demonstrations: share}
		address := draw.Address{Purpose: draw.WarmStart, Seed: 4}
		rows, err := starter.Transcripts(tok, env, p, o, 200, address)
		require.NoError(t, err)
		again, err := starter.Transcripts(tok, env, p, o, 200, address)
		require.NoError(t, err)
		require.Equal(t, rows, again)
		roles, turns, obeyed := map[string]int{}, map[string]int{}, 0
		for _, row := range rows {
			require.LessOrEqual(t, len(row.IDs), widths[5]+8)
			text := tok.Decode(row.IDs)
			require.Equal(t, 1, strings.Count(text, "Turn "), text)
			_, text, _ = strings.Cut(text, "Turn ")
			turn, text, _ := strings.Cut(text, ":\n")
			role, text, _ := strings.Cut(text, "\n")
			role, _, _ = strings.Cut(role, " ")
			_, heard, _ := strings.Cut(text, "Reader says: ")
			word, _, _ := strings.Cut(strings.ReplaceAll(heard, "\n", " "), " ")
			if strings.HasSuffix(text, "<answer> "+word+" </answer><|im_end|>") {
				obeyed++
			}
			turns[turn]++
			roles[role]++
		}
		require.Len(t, roles, 2)
		require.Greater(t, roles["Reader"], 50)
		require.Greater(t, roles["Walker"], 50)
		require.Greater(t, len(turns), 3)
		if share == 1 {
			require.Equal(t, roles["Walker"], obeyed)
		} else {
			require.Less(t, obeyed, roles["Walker"]/2)
		}
	}
}

func TestOptions(t *testing.T) {
	for options, want := range map[string]string{
		`{"words":4}`:                          "words: found 4, want from 1 to 3",
		`{"size":1}`:                           "size: found 1, want from 2 to 50",
		`{"max_actions":5}`:                    "max_actions: found 5, want at least 6: the moves and messages from a corner to the opposite one",
		`{"words":1,"size":4,"max_actions":9}`: "max_actions: found 9, want at least 12",
		`{"frozen_probability":2}`:             "frozen_probability: found 2, want from 0 to 1",
	} {
		_, err := envs.New(Name, json.RawMessage(options))
		require.ErrorContains(t, err, want)
	}
}
