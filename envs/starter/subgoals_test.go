package starter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// What a sample says of its subgoal is read by its ids alone. In the first case a token joins the blank
// before a tag and its first character: it belongs to the blank.
func TestReadSubgoal(t *testing.T) {
	tok, err := Second.Tokenizer()
	require.NoError(t, err)
	closing, err := tok.Closing()
	require.NoError(t, err)
	for _, c := range []struct {
		text, choice, goal, action, said string
		switches, formed                 bool
	}{
		{" <switch> SWITCH </switch> <subgoal> reach  goal </subgoal> </think><answer> Down </answer>",
			"switch> SWITCH </switch>", "subgoal> reach  goal </subgoal>", "answer> Down </answer>", "reach goal", true, true},
		{"<switch>KEEP</switch>\n<subgoal>x</subgoal>\n<answer>Up</answer>", "<switch>KEEP</switch>\n", "<subgoal>x</subgoal>\n", "<answer>Up</answer>", "x", false, true},
		{"<subgoal>a<switch>SWITCH</switch></subgoal>\n<answer>Up</answer>", "", "<subgoal>a<switch>SWITCH</switch></subgoal>\n", "<answer>Up</answer>", "a<switch>SWITCH</switch>", false, false},
		{"<subgoal>a</subgoal>\n<subgoal>b</subgoal>\n<answer>Up</answer>", "", "<subgoal>a</subgoal>\n", "<answer>Up</answer>", "a", false, false},
		{"<switch>SWITCH\n<subgoal>b</subgoal>\n<answer>Up</answer>", "", "<subgoal>b</subgoal>\n", "<answer>Up</answer>", "b", false, false},
		{"<answer>Up", "", "", "<answer>Up", "", false, false},
		// Without an answer the other spans stay.
		{"<switch>switch</switch>\n<subgoal>b</subgoal>\nUp", "<switch>switch</switch>\n", "<subgoal>b</subgoal>\n", "<switch>switch</switch>\n<subgoal>b</subgoal>\nUp", "b", true, true},
		// Whatever is not KEEP switches, but has no form.
		{"<switch>maybe</switch>\n<subgoal>b</subgoal>\n<answer>Up</answer>", "<switch>maybe</switch>\n", "<subgoal>b</subgoal>\n", "<answer>Up</answer>", "b", true, false},
		{"<switch> </switch>\n<subgoal>b</subgoal>\n<answer>Up</answer>", "<switch> </switch>\n", "<subgoal>b</subgoal>\n", "<answer>Up</answer>", "b", false, false},
		{"<switch>KEEP</switch>\n<answer>Up</answer>", "<switch>KEEP</switch>\n", "", "<answer>Up</answer>", "", false, false},
	} {
		ids := append(tok.EncodePlain(c.text), closing)
		g := envs.ReadSubgoal(tok, ids)
		require.Equal(t, c.switches, g.Switches, c.text)
		require.Equal(t, c.formed, g.Formed, c.text)
		require.Equal(t, c.said, g.Text, c.text)
		whole := envs.Span{To: len(ids)}
		for _, x := range []struct {
			span envs.Span
			want string
		}{{g.Switch, c.choice}, {g.Goal, c.goal}, {g.Action, c.action}} {
			if x.want == c.text {
				require.Equal(t, whole, x.span, "without an answer all tokens are the action's")
				continue
			}
			require.Equal(t, x.want, tok.Decode(ids[x.span.From:x.span.To]), c.text)
		}
	}
}

// Whatever ids there are, spans are inside of the sample and share no token, unless the action is all of it.
func TestSpansOfAnything(t *testing.T) {
	tags := []string{"<switch>", "</switch>", "<subgoal>", "</subgoal>", "<answer>", "</answer>", " SWITCH", "KEEP", "x", ">"}
	var all []*tokenizer.Tokenizer
	for _, v := range []Vocabulary{First, Second} {
		tok, err := v.Tokenizer()
		require.NoError(t, err)
		all = append(all, tok)
	}
	for _, folder := range []string{"tokenizer/testdata/qwen2-tiny", "testdata/qwen3-tiny", "testdata/llama-tiny"} { // pieces of words, and bytes
		tok, err := tokenizer.LoadFolder("../../model/" + folder)
		require.NoError(t, err)
		all = append(all, tok)
	}
	for _, tok := range all {
		r := draw.Address{Seed: 1, Purpose: "test"}.Rand()
		spoke := 0
		for range 500 {
			var ids []int32
			for range r.IntN(16) {
				if r.IntN(3) == 0 {
					ids = append(ids, int32(r.IntN(tok.VocabSize())))
				} else {
					ids = append(ids, tok.EncodePlain(tags[r.IntN(len(tags))])...)
				}
			}
			g := envs.ReadSubgoal(tok, ids)
			owner := make([]int, len(ids))
			for i, s := range []envs.Span{g.Switch, g.Goal, g.Action} {
				if i == 2 && s == (envs.Span{To: len(ids)}) {
					break
				}
				require.True(t, 0 <= s.From && s.From <= s.To && s.To <= len(ids), "%v of %d ids", s, len(ids))
				for at := s.From; at < s.To; at++ {
					require.Zero(t, owner[at], "token %d of %v", at, ids)
					owner[at] = i + 1
				}
				if s.To > s.From && i < 2 {
					spoke++
				}
			}
		}
		require.Positive(t, spoke)
	}
}
