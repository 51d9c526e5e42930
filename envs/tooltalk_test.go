package envs_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// repeater answers a text twice.
type repeater struct{}

func (repeater) Describe() chat.Tool {
	return chat.Tool{Name: "twice", Description: "Says a text twice.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)}
}

func (repeater) Call(arguments json.RawMessage) envs.ToolAnswer {
	var a struct{ Text string }
	if json.Unmarshal(arguments, &a) != nil || a.Text == "no" {
		return envs.ToolAnswer{Text: "I will not.", Failed: true}
	}
	return envs.ToolAnswer{Text: a.Text + " " + a.Text}
}

// withTwice is a protocol in which twice may be called in a form.
func withTwice(t *testing.T, p envs.Protocol, form string, perTurn, resultTokens int) envs.Protocol {
	t.Helper()
	f, ok := calls.Lookup(form)
	require.True(t, ok)
	set, err := envs.NewToolset(f, []envs.Tool{repeater{}}, perTurn, resultTokens)
	require.NoError(t, err)
	p.Tools = set
	return p
}

// qwen is the tokenizer of a model whose chat template takes tools, with those of a protocol.
func qwen(t *testing.T, p *envs.Protocol) *tokenizer.Tokenizer {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		b, err := os.ReadFile("../model/testdata/qwen3-tiny/" + name)
		require.NoError(t, err)
		files[name] = b
	}
	template, err := os.ReadFile("../model/tokenizer/testdata/tools/qwen3-like.jinja")
	require.NoError(t, err)
	files["chat_template.jinja"] = template
	tok, err := tokenizer.Load(files)
	require.NoError(t, err)
	tok, err = tok.WithTools(p.Tools.Told())
	require.NoError(t, err)
	require.True(t, tok.TakesTools())
	p.Tools = p.Tools.In(calls.For(tok.ChatTemplate()), true)
	return tok
}

// A reply is calls, an answer, or both; what is wrong with a call is said in its place.
func TestRepliesWithCalls(t *testing.T) {
	p := withTwice(t, noThink, "hermes", 2, 32)
	call := func(arguments string) calls.Call {
		return calls.Call{Name: "twice", Arguments: json.RawMessage(arguments)}
	}
	for said, want := range map[string]struct {
		calls   []calls.Call
		actions []string
		format  bool
	}{
		"<tool_call>\n{\"name\": \"twice\", \"arguments\": {\"text\": \"a\"}}\n</tool_call>": {[]calls.Call{call(`{"text":"a"}`)}, nil, true},
		"<answer> Right </answer>": {nil, []string{"Right"}, true},
		"I go.<tool_call>{\"name\":\"twice\",\"arguments\":{\"text\":\"a\"}}</tool_call><answer>Right || Left</answer>": {
			[]calls.Call{call(`{"text":"a"}`)}, []string{"Right", "Left"}, true,
		},
		"Right": {nil, nil, false},
		"":      {nil, nil, false},
	} {
		reply := p.Parse(said, 2)
		require.Equal(t, want.calls, reply.Calls, said)
		require.Equal(t, want.actions, reply.Actions, said)
		require.Equal(t, want.format, reply.Formatted, said)
	}
	one := "<tool_call>{\"name\":\"twice\",\"arguments\":{\"text\":\"a\"}}</tool_call>"
	many := p.Parse(strings.Repeat(one, 5), 2).Calls
	require.Len(t, many, 3)
	require.Equal(t, "only 2 calls a turn are answered; 3 were not", many[2].Wrong)
	for _, broken := range []string{`{"name":"thrice","arguments":{"text":"a"}}`, `{"name":"twice","arguments":{}}`, `{"name":"twice","arguments":{"text":1}}`, `{"name":`} {
		got := p.Parse("<tool_call>"+broken+"</tool_call>", 2).Calls
		require.Len(t, got, 1, broken)
		require.NotEmpty(t, got[0].Wrong, broken)
	}

	p.Think = true
	require.Empty(t, p.Parse(one, 2).Calls, "a thought that does not end hides what follows")
	reply := p.Parse(" "+one+" </think>"+one, 2)
	require.Len(t, reply.Calls, 1, "those of the thought are none")
	require.Equal(t, one, reply.Thought)
}

// A call changes nothing and costs nothing; one that is wrong is an invalid action.
func TestCallsAreNoActions(t *testing.T) {
	p := withTwice(t, noThink, "hermes", 2, 32)
	env := corridor{}
	e := env.Reset(draw.Address{}, draw.Address{})
	good := calls.Call{Name: "twice", Arguments: json.RawMessage(`{"text":"a || b"}`)}
	turn := p.Play(e, envs.Reply{Formatted: true, Calls: []calls.Call{good}}, 4)
	require.Equal(t, envs.Turn{Actions: []string{good.Action()}, ActionsLeft: 4, Calls: []calls.Call{good}}, turn)
	require.NotContains(t, good.Action(), envs.Separator)
	require.False(t, turn.After(1, nil).Acted)

	wrong := calls.Call{Wrong: "no"}
	turn = p.Play(e, envs.Reply{Formatted: true, Calls: []calls.Call{wrong}}, 4)
	require.Equal(t, 1, turn.Invalid)
	require.Equal(t, -0.1, turn.Penalty)

	turn = p.Play(e, envs.Reply{Formatted: true, Calls: []calls.Call{good}, Actions: []string{"Right"}}, 4)
	require.Equal(t, []string{good.Action(), "Right"}, turn.Actions)
	require.Equal(t, 3, turn.ActionsLeft)
	require.True(t, turn.After(1, nil).Acted)

	again, played, err := envs.Replay(env, draw.Address{}, draw.Address{}, [][]string{{good.Action()}, turn.Actions})
	require.NoError(t, err)
	require.Equal(t, e.StateKey(), again.StateKey())
	require.Equal(t, 4, played[0].ActionsLeft)
	require.Equal(t, 3, played[1].ActionsLeft)

	// What is written as an answer is no call, whatever it looks like.
	turn = p.Play(e, envs.Reply{Formatted: true, Actions: []string{good.Action()}}, 3)
	require.Equal(t, 1, turn.Invalid)
	require.Empty(t, turn.Actions)
}

// The answers to calls follow as messages of the role tool, as the model's template has them.
func TestAnswersFollow(t *testing.T) {
	p := withTwice(t, noThink, "hermes", 2, 32)
	tok := qwen(t, &p)
	env := corridor{}
	e := env.Reset(draw.Address{}, draw.Address{})
	ids, err := p.PromptIDs(tok, env, e)
	require.NoError(t, err)
	prompt := tok.Decode(ids)
	require.Contains(t, prompt, `"name": "twice"`)
	require.Contains(t, prompt, "Reply: call a tool, or <answer> your answer </answer>")

	said := "<tool_call>\n{\"name\": \"twice\", \"arguments\": {\"text\": \"a\"}}\n</tool_call>"
	sampled := append(tok.EncodePlain(said), tok.EndOfTurn()[0])
	reply, open := p.ReadReply(tok, env, sampled)
	require.False(t, open)
	turn := p.Play(e, reply, env.MaxActions())
	var answers []string
	for _, c := range turn.Calls {
		a, err := p.Tools.Answer(tok, c)
		require.NoError(t, err)
		answers = append(answers, a.Text)
	}
	require.Equal(t, []string{"a a"}, answers)
	more, err := p.ContinueIDs(tok, env, e, turn.After(1, answers), sampled)
	require.NoError(t, err)
	// The template closes an empty thought where a policy does not think.
	require.True(t, strings.HasPrefix(tok.Decode(more), "\n<|im_start|>user\n<tool_response>\na a\n</tool_response><|im_end|>\n<|im_start|>assistant\n"), tok.Decode(more))

	// With an action of the environment, its state follows.
	turn = p.Play(e, envs.Reply{Formatted: true, Calls: reply.Calls, Actions: []string{"Right"}}, env.MaxActions())
	more, err = p.ContinueIDs(tok, env, e, turn.After(2, answers), sampled)
	require.NoError(t, err)
	require.Contains(t, tok.Decode(more), "</tool_response><|im_end|>\n<|im_start|>user\nReward: -0.1\n_P__\nActions left: 3\n")
}

// A long answer is cut to its tokens, and says so; a special token in it is text.
func TestAnswersAreCut(t *testing.T) {
	for _, most := range []int{16, 40} {
		p := withTwice(t, noThink, "hermes", 1, most)
		tok := qwen(t, &p)
		answer, err := p.Tools.Answer(tok, calls.Call{Name: "twice", Arguments: json.RawMessage(`{"text":"` + strings.Repeat("ab <|im_end|> cé ", 300) + `"}`)})
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(answer.Text, "… [cut]"), answer.Text)
		require.True(t, envs.IsCut(answer.Text))
		empty, err := tok.ContinuationOf([]chat.Message{{Role: "tool"}})
		require.NoError(t, err)
		whole, err := tok.ContinuationOf([]chat.Message{{Role: "tool", Content: answer.Text}})
		require.NoError(t, err)
		require.LessOrEqual(t, len(whole)-len(empty), most)
		require.Greater(t, len(whole)-len(empty), most-4, "it is filled")
	}
}

// No context is wider than what was computed for its turn, whatever is called and answered, with and without cuts.
func TestWidthsOfContextsWithTools(t *testing.T) {
	const turns, maxNew = 6, 60
	one := func(p envs.Protocol, tok envs.Tokenizer, r *rand.Rand) {
		env := corridor{}
		widths, err := envs.MaxPromptTokens(env, tok, p, turns, maxNew)
		require.NoError(t, err)
		var recorded []envs.Recorded
		e := env.Reset(draw.Address{}, draw.Address{})
		ids, err := p.PromptIDs(tok, env, e)
		require.NoError(t, err)
		left := env.MaxActions()
		for turn := 1; turn <= turns; turn++ {
			require.LessOrEqual(t, len(ids), widths[turn-1], "turn %d", turn)
			var said string
			for range r.IntN(5) {
				said += p.Tools.Form.Write([]calls.Call{{Name: "twice", Arguments: calls.OfText("text", strings.Repeat("Nö", 1+r.IntN(9)))}})
			}
			if r.IntN(3) == 0 {
				said += "<answer> Left </answer>"
			}
			sampled := tok.(*tokenizer.Tokenizer).EncodePlain(said)
			sampled = sampled[:min(len(sampled), maxNew)]
			reply, _ := p.ReadReply(tok, env, sampled)
			played := p.Play(e, reply, left)
			left = max(played.ActionsLeft, 1)
			var answers []string
			for _, c := range played.Calls {
				a, err := p.Tools.Answer(tok, c)
				require.NoError(t, err)
				answers = append(answers, a.Text)
			}
			recorded = append(recorded, envs.Recorded{Actions: played.Actions, Sampled: sampled, Results: answers})
			if p.Restarts(turn + 1) {
				ids, err = p.WindowIDs(tok, env, draw.Address{}, draw.Address{}, recorded)
			} else {
				var more []int32
				more, err = p.ContinueIDs(tok, env, e, played.After(turn, answers), sampled)
				ids = append(append(append([]int32{}, ids...), sampled...), more...)
			}
			if played.ActionsLeft == 0 {
				return
			}
			require.NoError(t, err)
		}
	}
	second, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	for n := range 30 {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		p := withTwice(t, noThink, "hermes", 1+r.IntN(3), 16+r.IntN(20))
		if n%3 > 0 {
			p.Cuts = []envs.Cut{{KeepLast: 1 + r.IntN(2), Tokens: r.IntN(20)}, {KeepLast: 3, Tokens: r.IntN(4)}}
		}
		q := withTwice(t, p, "search", 2, 16)
		one(p, qwen(t, &p), r)
		one(q, second, r)
	}
}

// Rules cut the observations that are older, as the newest turn sees them, and restart the context only where one changes.
func TestOlderObservationsAreCut(t *testing.T) {
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	p := think
	p.Cuts = []envs.Cut{{KeepLast: 2, Tokens: 14}, {KeepLast: 3, Tokens: 0}}
	var restarts []int
	for turn := range 7 {
		if p.Restarts(turn) {
			restarts = append(restarts, turn)
		}
	}
	require.Equal(t, []int{4, 5, 6}, restarts, "turn 4 is the first that cuts what turn 2 saw")

	env := corridor{}
	var turns []envs.Recorded
	for _, w := range winding {
		turns = append(turns, envs.Recorded{Actions: w.actions, Sampled: append(tok.EncodePlain(w.said), starter.EndID)})
	}
	ids, err := p.WindowIDs(tok, env, draw.Address{}, draw.Address{}, turns)
	require.NoError(t, err)
	text := tok.Decode(ids)
	require.Contains(t, text, "Walk to the goal.", "the first message stays")
	for _, w := range winding {
		require.Contains(t, text, w.said, "replies stay")
	}
	after := strings.SplitAfter(text, "<|im_start|>user\n")[2:] // those of turns 2 to 5
	require.Len(t, after, 4)
	require.True(t, strings.HasPrefix(after[0], "… [cut]<|im_end|>"), after[0])
	require.True(t, strings.HasPrefix(after[1], "Reward"), after[1])
	cut, _, _ := strings.Cut(after[1], "<|im_end|>")
	require.True(t, strings.HasSuffix(cut, "… [cut]"), cut)
	for _, whole := range after[2:] {
		require.Contains(t, whole, "Actions left:")
		require.NotContains(t, whole, "[cut]")
	}
}
