package starter

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

func mustTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := Tokenizer()
	require.NoError(t, err)
	return tok
}

func TestTokenizer(t *testing.T) {
	tok := mustTokenizer(t)
	require.Equal(t, VocabSize, tok.VocabSize())
	require.Equal(t, []int32{EndID}, tok.EndOfTurn())
	require.Equal(t, []int32{EndID}, tok.EOS())
	require.Equal(t, []int32{PadID, StartID, EndID}, tok.EncodeTag("<|endoftext|><|im_start|><|im_end|>"))
	legal, err := tok.Legal(VocabSize)
	require.NoError(t, err)
	require.NotContains(t, legal, false)
	// One token each.
	for _, word := range append(ThoughtWords(), "Phoenix", "Dragon", "Trader", "Librarian", "Engineer", "Teacher", "Up", "Down", "Left", "Right") {
		require.Len(t, tok.EncodePlain(" "+word), 1, word)
	}
	for _, token := range []string{"<answer", "<think", " </", "><", " ||", ":\n", ")\n", " (", " -"} {
		require.Len(t, tok.EncodePlain(token), 1, token)
	}
	for _, cells := range []string{"W....\nWWA..\n", "__OO\n_P_G\nSFHH\n", "√√\n##\nXX", "#_O√XPS", "SFHGFF", "W.GCBA@", "0123456789", "##\n__\nOO\n"} {
		require.Len(t, tok.EncodePlain(cells), len([]rune(cells)), cells)
	}
	for _, text := range []string{"naïve 日本語 🙂", "\x00\x01\x7f tab\t", "Zauberwürfel"} {
		require.Equal(t, text, tok.Decode(tok.EncodePlain(text)), "unknown words are spelt in pieces")
	}
	Files()["tokenizer.json"][0] = 'x'
	require.Equal(t, byte('{'), Files()["tokenizer.json"][0])
}

// The words of every shipped environment's texts are one token each: only spaces before
// digits are tokens of their own. Sample questions are the user's to replace, and may be
// spelt in pieces.
func TestWordsAreTokens(t *testing.T) {
	tok := mustTokenizer(t)
	word := regexp.MustCompile(` ?[A-Za-z]+`)
	for _, world := range [][2]string{
		{"bandit", ""}, {"countdown", ""}, {"frozenlake", ""}, {"frozenlake", `{"slippery":false,"observation":"coord"}`},
		{"mathqa", ""}, {"sokoban", ""}, {"sokoban", `{"preset":"large","observation":"grid_coord"}`},
	} {
		env, err := envs.New(world[0], json.RawMessage(world[1]))
		require.NoError(t, err)
		p := envs.Protocol{Think: true, LengthHint: 100}
		episode := env.Cases()[0]
		text := p.First(env, episode)[1].Content + "\n" + p.Next(env, episode, envs.NextTurn{Number: 2})
		text = strings.ReplaceAll(text, episode.Observation(), "")
		for _, w := range word.FindAllString(text, -1) {
			require.Len(t, tok.EncodePlain(w), 1, "%v: %q", world, w)
		}
	}
}

func TestTranscripts(t *testing.T) {
	tok := mustTokenizer(t)
	for _, options := range []string{"", `{"names":"ragen-v2-train"}`} {
		env, err := envs.New("bandit", json.RawMessage(options))
		require.NoError(t, err)
		for _, think := range []bool{true, false} {
			p := envs.Protocol{Think: think, FormatPenalty: -0.1}
			n := Combinations(env)
			widths, err := envs.MaxPromptTokens(env, tok, p, 1, 32)
			require.NoError(t, err)
			addr := draw.Address{Seed: 7, Purpose: draw.WarmStart, Iteration: 3}
			rows, err := Transcripts(tok, env, p, Options{Turns: 1}, 2*n, addr)
			require.NoError(t, err)
			again, err := Transcripts(tok, env, p, Options{Turns: 1}, 2*n, addr)
			require.NoError(t, err)
			require.Equal(t, rows, again)
			seen := map[string]int{}
			for _, row := range rows {
				require.Len(t, row.Loss, len(row.IDs))
				at := slices.Index(row.Loss, true)
				require.LessOrEqual(t, at, widths[0])
				require.NotContains(t, row.Loss[at:], false)
				require.Equal(t, int32(EndID), row.IDs[len(row.IDs)-1])
				prompt := tok.Decode(row.IDs[:at])
				require.True(t, strings.HasSuffix(prompt, "<|im_start|>assistant\n"+p.Opening()), prompt)
				reply, truncated := p.ReadReply(tok, env, row.IDs[at:])
				require.False(t, truncated)
				require.True(t, reply.Formatted)
				require.Len(t, reply.Actions, 1)
				_, arms, _ := strings.Cut(prompt, "Arms: ")
				arms, _, _ = strings.Cut(arms, "\n")
				require.Contains(t, strings.Split(arms, ", "), reply.Actions[0])
				seen[arms+" → "+reply.Actions[0]]++
				if think {
					require.NotEmpty(t, reply.Thought)
				}
			}
			require.Len(t, seen, n)
			for combination, times := range seen {
				require.Equal(t, 2, times, combination)
			}
		}
	}
}

// Steps of a size that is no multiple of the combinations balance one another.
func TestTranscriptsBalanceAcrossSteps(t *testing.T) {
	tok := mustTokenizer(t)
	env, err := envs.New("bandit", nil)
	require.NoError(t, err)
	seen := map[string]int{}
	for step := range int64(4) {
		rows, err := Transcripts(tok, env, envs.Protocol{}, Options{Turns: 1}, 3, draw.Address{Purpose: draw.WarmStart, Iteration: step})
		require.NoError(t, err)
		for _, row := range rows {
			_, episode, _ := strings.Cut(tok.Decode(row.IDs), "Arms: ")
			seen[episode]++
		}
	}
	require.Len(t, seen, 4)
	for _, times := range seen {
		require.Equal(t, 3, times)
	}
}

// The bandit's context is short: the starter's speed rests on it.
func TestBanditWidths(t *testing.T) {
	tok := mustTokenizer(t)
	env, err := envs.New("bandit", nil)
	require.NoError(t, err)
	p := envs.Protocol{Think: true}
	widths, err := envs.MaxPromptTokens(env, tok, p, 1, 24)
	require.NoError(t, err)
	require.Equal(t, []int{80}, widths)
	rows, err := Transcripts(tok, env, p, Options{Turns: 1}, 64, draw.Address{Purpose: draw.WarmStart})
	require.NoError(t, err)
	longest := 0
	for _, row := range rows {
		longest = max(longest, len(row.IDs))
	}
	require.LessOrEqual(t, longest, 88)
}

// transformers loads the files as they are and gives these ids.
func TestTokenizerGolden(t *testing.T) {
	content, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var want struct {
		Encode []struct {
			Text    string
			IDs     []int32
			Decoded string
		}
		Chat struct {
			Messages []tokenizer.Message
			Text     string
			IDs      []int32
		}
	}
	require.NoError(t, json.Unmarshal(content, &want))
	require.NotEmpty(t, want.Encode)
	tok := mustTokenizer(t)
	for _, e := range want.Encode {
		ids := tok.Encode(e.Text)
		require.Equal(t, append([]int32{}, e.IDs...), append([]int32{}, ids...), "%q", e.Text)
		require.Equal(t, e.Decoded, tok.Decode(ids), "%q", e.Text)
	}
	text, ids, err := tok.Template(want.Chat.Messages, true)
	require.NoError(t, err)
	require.Equal(t, want.Chat.Text, text)
	require.Equal(t, want.Chat.IDs, ids)
}
