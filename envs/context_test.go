package envs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// A token belongs to the thought if it begins in it.
func TestThoughtTokens(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for text, said := range map[string]string{
		" the box is </think><answer> Right </answer>": " the box is ",
		" the box":                          " the box",
		"</think><answer> Right </answer>":  "",
		"":                                  "",
		" a </think> b </think><answer> Up": " a ",
	} {
		ids := tok.EncodePlain(text)
		want := len(tok.EncodePlain(said))
		require.Equal(t, want, think.ThoughtTokens(tok, ids), "%q", text)
		require.Equal(t, want, think.ThoughtTokens(tok, append(ids, starter.EndID)), "%q, closed", text)
		require.Zero(t, noThink.ThoughtTokens(tok, ids))
	}
}

// An episode's ids: nothing encoded again, the opening tag given, one closing
// token a turn, and the text what the whole conversation would read.
func TestContext(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := corridor{}
	for _, p := range []envs.Protocol{think, noThink} {
		e := env.Reset(draw.Address{}, draw.Address{})
		ids, err := p.PromptIDs(tok, env, e)
		require.NoError(t, err)
		messages := p.First(env, e)
		require.Equal(t, render(messages, p), tok.Decode(ids))

		sampled := tok.EncodePlain(" x </think><answer> Right </answer>")
		if !p.Think {
			sampled = tok.EncodePlain(" Right </answer>")
		}
		closed := append(append([]int32{}, sampled...), starter.EndID)
		cut := sampled[:len(sampled)-2]
		other := append(append([]int32{}, sampled...), starter.PadID)

		reply, truncated := p.ReadReply(tok, env, closed)
		require.False(t, truncated)
		require.Equal(t, []string{"Right"}, reply.Actions)
		reply, truncated = p.ReadReply(tok, env, sampled)
		require.True(t, truncated)
		require.True(t, reply.Formatted, "cut after its answer tag closed: counts")
		reply, truncated = p.ReadReply(tok, env, cut)
		require.True(t, truncated)
		require.False(t, reply.Formatted)
		_, truncated = p.ReadReply(tok, env, nil)
		require.True(t, truncated)

		turn := p.Play(e, envs.Reply{Actions: []string{"Right"}}, env.MaxActions())
		next := envs.NextTurn{Number: 2, Reward: turn.Reward, ActionsLeft: turn.ActionsLeft}
		after, err := p.ContinueIDs(tok, env, e, next, closed)
		require.NoError(t, err)
		whole := append(messages,
			chat.Message{Role: "assistant", Content: p.Opening() + tok.Decode(sampled)},
			chat.Message{Role: "user", Content: p.Next(env, e, next)})
		require.Equal(t, render(whole, p), tok.Decode(append(append(append([]int32{}, ids...), closed...), after...)))
		for _, open := range [][]int32{cut, other, nil} {
			inserted, err := p.ContinueIDs(tok, env, e, next, open)
			require.NoError(t, err)
			require.Equal(t, append([]int32{starter.EndID}, after...), inserted)
		}
	}
}

// render is ChatML up to the opening tag.
func render(messages []chat.Message, p envs.Protocol) string {
	var s strings.Builder
	for _, m := range messages {
		s.WriteString("<|im_start|>" + m.Role + "\n" + m.Content + "<|im_end|>\n")
	}
	return s.String() + "<|im_start|>assistant\n" + p.Opening()
}

// No context is wider than its turn's width, and widths are multiples of 16.
func TestMaxPromptTokens(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := corridor{}
	const turns, sample = 3, 20
	widths, err := envs.MaxPromptTokens(env, tok, think, turns, sample)
	require.NoError(t, err)
	require.Len(t, widths, turns)
	e := env.Reset(draw.Address{Group: 1}, draw.Address{})
	ids, err := think.PromptIDs(tok, env, e)
	require.NoError(t, err)
	for turn := 1; turn <= turns; turn++ {
		require.LessOrEqual(t, len(ids), widths[turn-1])
		require.Less(t, widths[turn-1]-len(ids), 3*envs.PromptMultiple)
		require.Zero(t, widths[turn-1]%envs.PromptMultiple)
		sampled := make([]int32, sample) // cut by the limit
		ids = append(ids, sampled...)
		next, err := think.ContinueIDs(tok, env, e, envs.NextTurn{Number: turn + 1, Reward: -10.1, ActionsLeft: 4}, sampled)
		require.NoError(t, err)
		ids = append(ids, next...)
	}
}

// Transcripts of a multi-turn environment: whole episodes, in which only replies are
// trained on.
func TestTranscriptsOfSeveralTurns(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := corridor{}
	rows, err := starter.Transcripts(tok, env, think, starter.Options{Turns: 3}, 16, draw.Address{Purpose: draw.WarmStart})
	require.NoError(t, err)
	several := 0
	for _, row := range rows {
		var learnt []int32
		for i, id := range row.IDs {
			if row.Loss[i] {
				learnt = append(learnt, id)
			}
		}
		replies := strings.Split(strings.TrimSuffix(tok.Decode(learnt), "<|im_end|>"), "<|im_end|>")
		require.Equal(t, len(replies), strings.Count(tok.Decode(row.IDs), "<think><|im_end|>")+strings.Count(tok.Decode(row.IDs), "assistant\n<think>"))
		for _, reply := range replies {
			r := think.Parse(reply, env.MaxActionsPerTurn())
			require.True(t, r.Formatted, reply)
			require.NotEmpty(t, r.Actions)
			require.Zero(t, r.Surplus)
		}
		if len(replies) > 1 {
			several++
		}
	}
	require.Positive(t, several)
}

// Host work of a row and turn: the prompt, and reading a reply.
func BenchmarkPromptIDs(b *testing.B) {
	tok, err := starter.Tokenizer()
	require.NoError(b, err)
	env := corridor{}
	e := env.Reset(draw.Address{}, draw.Address{})
	for b.Loop() {
		if _, err := think.PromptIDs(tok, env, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadReply(b *testing.B) {
	tok, err := starter.Tokenizer()
	require.NoError(b, err)
	sampled := append(tok.EncodePlain(" look at the wall </think><answer> Right || Left </answer>"), starter.EndID)
	for b.Loop() {
		think.ReadReply(tok, corridor{}, sampled)
	}
}
