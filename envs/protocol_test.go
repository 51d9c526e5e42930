package envs_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// corridor is a multi-turn environment for tests: walk right to the end.
type corridor struct{}

func (corridor) Name() string           { return "corridor" }
func (corridor) Instructions() string   { return "Walk to the goal." }
func (corridor) Actions() []string      { return []string{"Left", "Right"} }
func (corridor) MaxActions() int        { return 4 }
func (corridor) MaxActionsPerTurn() int { return 2 }
func (corridor) Reset(instance, _ draw.Address) envs.Episode {
	return &walk{at: int(instance.Group % 2)}
}
func (corridor) Cases() []envs.Episode { return []envs.Episode{&walk{at: 0}, &walk{at: 1}} }

type walk struct{ at int }

func (w *walk) Observation() string {
	return strings.Repeat("_", w.at) + "P" + strings.Repeat("_", 3-w.at)
}
func (w *walk) Legal(a string) (string, bool) { return envs.Lookup(w.Choices(), a) }
func (w *walk) Choices() []string             { return []string{"Left", "Right"} }
func (w *walk) StateKey() string              { return strconv.Itoa(w.at) }
func (w *walk) Done() bool                    { return w.at == 3 }
func (w *walk) Success() bool                 { return w.at == 3 }
func (w *walk) Step(a string) envs.Outcome {
	before := w.at
	if a == "Right" {
		w.at++
	} else {
		w.at = max(0, w.at-1)
	}
	reward := -0.1
	if w.Done() {
		reward = 1
	}
	return envs.Outcome{Reward: reward, Done: w.Done(), Success: w.Done(), Effective: w.at != before, Text: "moved " + a}
}

// A writable action is read again.
func TestWritable(t *testing.T) {
	for action, want := range map[string]bool{
		"Up": true, "(1 + 2) * 3": true, "a|b": true, "<b>": true,
		"": false, " Up": false, "Up\n": false, "a||b": false, "a</answer>": false, "<think>": false, "<|im_end|>": false,
	} {
		require.Equal(t, want, envs.Writable(action), action)
		got := noThink.Parse(action+"</answer>", 2).Actions
		require.Equal(t, want, len(got) == 1 && got[0] == action, action)
	}
}

var (
	think   = envs.Protocol{Think: true, FormatPenalty: -0.1}
	noThink = envs.Protocol{FormatPenalty: -0.1}
)

func TestMessages(t *testing.T) {
	env := corridor{}
	e := env.Reset(draw.Address{}, draw.Address{})
	first := think.First(env, e)
	require.Len(t, first, 2)
	require.Equal(t, "system", first[0].Role)
	require.Equal(t, envs.SystemMessage, first[0].Content)
	require.Equal(t, "user", first[1].Role)
	require.Equal(t, `Walk to the goal.
Actions: Left, Right
You have 4 actions in all, at most 2 a turn, separated by ||
Turn 1:
P___
Actions left: 4
Reply: <think> your thoughts </think><answer> your action </answer>`, first[1].Content)
	e.Step("Right")
	hinted := noThink
	hinted.LengthHint = 100
	require.Equal(t, `Reward: -0.1
Turn 2:
_P__
Actions left: 3
Reply: <answer> your action </answer>
Max response length: 100 words (tokens).`, hinted.Next(env, e, envs.NextTurn{Number: 2, Reward: -0.1, ActionsLeft: 3}))
	require.Equal(t, "<think>", think.Opening())
	require.Equal(t, "<answer>", noThink.Opening())
}

func TestFormatReward(t *testing.T) {
	for reward, want := range map[float64]string{0: "0", -0.1: "-0.1", 10.9: "10.9", -0.30000000000000004: "-0.3", 1e-9: "0", -1e-9: "0", 0.00005: "0.0001", 1: "1"} {
		require.Equal(t, want, envs.FormatReward(reward))
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		p    envs.Protocol
		text string
		want envs.Reply
	}{
		"think":                      {think, " go on </think><answer> Right || left </answer>", envs.Reply{Formatted: true, Thought: "go on", Answer: "Right || left", Actions: []string{"Right", "left"}}},
		"gap between the tags":       {think, "a</think> \n\u00a0<answer>Right</answer>", envs.Reply{Formatted: true, Thought: "a", Answer: "Right", Actions: []string{"Right"}}},
		"several lines":              {think, "a\nb</think><answer>\nRight\n||\nLeft\n</answer>", envs.Reply{Formatted: true, Thought: "a\nb", Answer: "Right\n||\nLeft", Actions: []string{"Right", "Left"}}},
		"text after the answer":      {think, "</think><answer>Right</answer> and so on", envs.Reply{Formatted: true, Answer: "Right", Actions: []string{"Right"}}},
		"the first match counts":     {noThink, "Up</answer><answer>Down</answer>", envs.Reply{Formatted: true, Answer: "Up", Actions: []string{"Up"}}},
		"text between the tags":      {think, "a</think> so <answer>Right</answer>", envs.Reply{}},
		"a later pair fits":          {think, "a</think> so <think>b</think><answer>Up</answer>", envs.Reply{Formatted: true, Thought: "a so b", Answer: "Up", Actions: []string{"Up"}}},
		"opening tag repeated":       {noThink, "<answer>Up</answer>", envs.Reply{Formatted: true, Answer: "Up", Actions: []string{"Up"}}},
		"surplus":                    {noThink, "a||b||c||d</answer>", envs.Reply{Formatted: true, Answer: "a||b||c||d", Actions: []string{"a", "b"}, Surplus: 2}},
		"empty parts":                {noThink, " || a || ||b|| </answer>", envs.Reply{Formatted: true, Answer: "|| a || ||b||", Actions: []string{"a", "b"}}},
		"empty answer":               {noThink, "</answer>", envs.Reply{Formatted: true}},
		"special tokens taken out":   {noThink, "<|im_start|>a<|im_end|></answer>", envs.Reply{Formatted: true, Answer: "a", Actions: []string{"a"}}},
		"unclosed":                   {think, "a</think><answer>Right", envs.Reply{}},
		"no answer":                  {think, "a</think>", envs.Reply{}},
		"nothing":                    {noThink, "", envs.Reply{}},
		"tags count with their case": {noThink, "Up</ANSWER>", envs.Reply{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.p.Parse(c.text, 2)) })
	}
}

func TestPlay(t *testing.T) {
	env := corridor{}
	for name, c := range map[string]struct {
		start   int64
		actions []string
		left    int
		want    envs.Turn
	}{
		"two moves":                {0, []string{"right", "LEFT"}, 4, envs.Turn{Actions: []string{"Right", "Left"}, Effective: 2, Reward: -0.2, Text: "moved Left", ActionsLeft: 2}},
		"unknown ones skipped":     {0, []string{"jump", "Right"}, 4, envs.Turn{Actions: []string{"Right"}, Invalid: 1, Effective: 1, Reward: -0.1, Text: "moved Right", ActionsLeft: 3}},
		"nothing executable":       {0, []string{"jump", "fly"}, 4, envs.Turn{Invalid: 2, Penalty: -0.1, ActionsLeft: 4}},
		"no actions":               {0, nil, 4, envs.Turn{Penalty: -0.1, ActionsLeft: 4}},
		"ineffective but legal":    {0, []string{"Left"}, 4, envs.Turn{Actions: []string{"Left"}, Reward: -0.1, Text: "moved Left", ActionsLeft: 3}},
		"stops at the goal":        {1, []string{"Right", "Right", "Left"}, 4, envs.Turn{Actions: []string{"Right", "Right"}, Effective: 2, Reward: 0.9, Text: "moved Right", Done: true, Success: true, ActionsLeft: 2}},
		"stops at the last action": {0, []string{"Right", "Right"}, 1, envs.Turn{Actions: []string{"Right"}, Effective: 1, Reward: -0.1, Text: "moved Right", ActionsLeft: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := think.Play(env.Reset(draw.Address{Group: c.start}, draw.Address{}), envs.Reply{Actions: c.actions}, c.left)
			require.InDelta(t, c.want.Reward, got.Reward, 1e-12)
			got.Reward = c.want.Reward
			require.Equal(t, c.want, got)
			require.Equal(t, c.want.Done || c.want.ActionsLeft == 0, got.Ended())
		})
	}
}

// The two rules differ where a turn has illegal actions beside legal ones.
func TestPenaltyRules(t *testing.T) {
	env := corridor{}
	for name, c := range map[string]struct {
		start                int64
		actions              []string
		left                 int
		noAction, anyInvalid float64
	}{
		"all legal":                 {0, []string{"Right", "left"}, 4, 0, 0},
		"some not legal":            {0, []string{"jump", "Right"}, 4, 0, -0.1},
		"none legal":                {0, []string{"jump", "fly"}, 4, -0.1, -0.1},
		"no actions":                {0, nil, 4, -0.1, -0.1},
		"not legal after the goal":  {1, []string{"Right", "Right", "fly"}, 4, 0, -0.1},
		"legal after the goal":      {1, []string{"Right", "Right", "Right"}, 4, 0, 0},
		"not legal after the limit": {0, []string{"Right", "fly"}, 1, 0, -0.1},
	} {
		t.Run(name, func(t *testing.T) {
			for rule, want := range map[envs.Penalty]float64{"": c.noAction, envs.NoAction: c.noAction, envs.AnyInvalid: c.anyInvalid} {
				p := think
				p.Penalty = rule
				turn := p.Play(env.Reset(draw.Address{Group: c.start}, draw.Address{}), envs.Reply{Actions: c.actions}, c.left)
				require.Equal(t, want, turn.Penalty, rule)
			}
		})
	}
}

// measured is a corridor whose widest observation is none of its cases'.
type measured struct{ corridor }

func (measured) Longest(width func(string) (int, error)) ([]envs.Episode, error) {
	if n, err := width("1234"); err != nil || n < 4 {
		return nil, err
	}
	return []envs.Episode{told{&walk{}}}, nil
}

type told struct{ *walk }

func (told) Observation() string { return strings.Repeat("7", 100) }

func TestMeasuredWidths(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	narrow, err := envs.MaxPromptTokens(corridor{}, tok, think, 2, 20)
	require.NoError(t, err)
	wide, err := envs.MaxPromptTokens(measured{}, tok, think, 2, 20)
	require.NoError(t, err)
	require.Equal(t, []int{96, 192}, []int{wide[0] - narrow[0], wide[1] - narrow[1]})
}

func TestReplayOfTurns(t *testing.T) {
	env := corridor{}
	e, turns, err := envs.Replay(env, draw.Address{}, draw.Address{}, [][]string{{"Right", "Left"}, {}, {"Right"}})
	require.NoError(t, err)
	require.Equal(t, "1", e.StateKey())
	require.Equal(t, []int{2, 2, 1}, []int{turns[0].ActionsLeft, turns[1].ActionsLeft, turns[2].ActionsLeft})
	for _, bad := range [][][]string{{{"right"}}, {{"Up"}}, {{"Right", "Right", "Right", "Left"}}, {{"Left", "Left"}, {"Left", "Left"}, {"Left"}}} {
		_, _, err = envs.Replay(env, draw.Address{}, draw.Address{}, bad)
		require.ErrorIs(t, err, envs.ErrReplay)
	}
}

// Whatever is sampled, parsing neither fails nor breaks its promises.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a</think><answer>Right || Left</answer>", "</answer>||", "<think></think><answer><answer></answer>", "\xff</think>\u0085<answer>|||</answer>"} {
		f.Add(s, 2)
	}
	f.Fuzz(func(t *testing.T, text string, most int) {
		most &= 7
		for _, p := range []envs.Protocol{think, noThink} {
			r := p.Parse(text, most)
			require.LessOrEqual(t, len(r.Actions), most)
			if !r.Formatted {
				require.Equal(t, envs.Reply{}, r)
			}
			if len(r.Actions) < most {
				require.Zero(t, r.Surplus)
			}
			for _, a := range r.Actions {
				require.Equal(t, strings.TrimSpace(a), a)
				require.NotEmpty(t, a)
				require.NotContains(t, a, envs.Separator)
			}
		}
	})
}

func FuzzOptions(f *testing.F) {
	for _, s := range []string{"", "{}", `{"size":4,"name":"x"}`, `{"size":null,"size":1.5}`, `{"size":"`, "[]", `{} 1`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := envs.New("test-options", raw)
		var wrong *envs.OptionsError
		if errors.As(err, &wrong) {
			require.NotEmpty(t, wrong.Problems)
			for _, p := range wrong.Problems {
				require.NotEmpty(t, p.Allowed)
			}
		} else {
			require.NoError(t, err)
		}
	})
}
