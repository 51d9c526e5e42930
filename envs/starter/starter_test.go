package starter

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
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

// vocabularies are the starter's tokenizers by name.
var vocabularies = map[string]Vocabulary{"first": First, "second": Second}

func TestTokenizer(t *testing.T) {
	for name, v := range vocabularies {
		t.Run(name, func(t *testing.T) {
			tok, err := v.Tokenizer()
			require.NoError(t, err)
			end, start, pad := int32(v.EndID()), int32(v.EndID())-1, int32(v.PadID())
			require.Equal(t, v.Size(), tok.VocabSize())
			require.Equal(t, []int32{end}, tok.EndOfTurn())
			require.Equal(t, []int32{end}, tok.EOS())
			require.Equal(t, []int32{pad, start, end}, tok.EncodeTag("<|endoftext|><|im_start|><|im_end|>"))
			legal, err := tok.Legal(v.Size())
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
			v.Files()["tokenizer.json"][0] = 'x'
			require.Equal(t, byte('{'), v.Files()["tokenizer.json"][0])
		})
	}
	require.Equal(t, []int{PadID, EndID, VocabSize}, []int{Vocabulary(0).PadID(), First.EndID(), First.Size()})
}

// What any two cells of a grid spell stays a token a cell, in whatever order a grid has them.
func TestCellsAreTokens(t *testing.T) {
	for name, v := range vocabularies {
		tok, err := v.Tokenizer()
		require.NoError(t, err)
		cells := []rune("#_O√XPSFHGWCBA@.\n")
		for _, a := range cells {
			for _, b := range cells {
				if a == '\n' && b == '\n' {
					continue // an empty line, which no grid has
				}
				text := "#" + string(a) + string(b) + "#"
				require.Len(t, tok.EncodePlain(text), 4, "%s: %q", name, text)
			}
		}
	}
}

// The second tokenizer is never made again: runs that name it rest on these bytes.
func TestSecondIsFrozen(t *testing.T) {
	require.Equal(t, "2d927d7a9d42be9ef7ca4cf30bce83d239f22efca7e09136968b348b93afd72c", fmt.Sprintf("%x", sha256.Sum256(Second.Files()["tokenizer.json"])))
	first, second := mustTokenizer(t), mustOf(t, Second)
	for _, text := range []string{"<think> look at the wall </think><answer> Phoenix || Up </answer>", "Turn 2:\nSFFF\nFHFH\nActions left: 9\nReward: -0.15"} {
		require.Equal(t, first.EncodePlain(text), second.EncodePlain(text), "the second continues the first")
	}
}

// Sentences of the protocols that the second tokenizer was made for, with the number of
// tokens they take: a word, a tag's opening and a digit are one each.
func TestSecondSays(t *testing.T) {
	tok := mustOf(t, Second)
	for text, tokens := range map[string]int{
		"<switch> SWITCH </switch><subgoal> reach the goal </subgoal><action> Up </action>":                  20,
		"<observation> box above left ; target below same </observation><prediction> box near </prediction>": 19,
		"<answer> calculate(3*4) || submit(7) </answer>":                                                     16,
		"<answer> search[red cotton shirt] || click[buy now] </answer>":                                      16,
		"Back to Search [SEP] Page 1 (Total results: 3) [SEP] Next >":                                        21,
		" checklist item passed ; second attempt":                                                            6,
		"Role: Reader. Message: hole left, goal below.":                                                      12,
		" Lumen soft cotton shirt navy large":                                                                6,
	} {
		require.Len(t, tok.EncodePlain(text), tokens, text)
	}
}

func mustOf(t testing.TB, v Vocabulary) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := v.Tokenizer()
	require.NoError(t, err)
	return tok
}

// The words of every shipped environment's texts are one token each: only spaces before
// digits are tokens of their own. Sample questions are the user's to replace, and may be
// spelt in pieces.
func TestWordsAreTokens(t *testing.T) {
	first, second := mustTokenizer(t), mustOf(t, Second)
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
			require.Len(t, first.EncodePlain(w), 1, "%v: %q", world, w)
			require.Len(t, second.EncodePlain(w), 1, "%v: %q, the second", world, w)
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
	for name, v := range map[string]Vocabulary{"golden.json": First, "second.json": Second} {
		content, err := os.ReadFile("testdata/" + name)
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
		tok := mustOf(t, v)
		for _, e := range want.Encode {
			ids := tok.Encode(e.Text)
			require.Equal(t, append([]int32{}, e.IDs...), append([]int32{}, ids...), "%s: %q", name, e.Text)
			require.Equal(t, e.Decoded, tok.Decode(ids), "%s: %q", name, e.Text)
		}
		text, ids, err := tok.Template(want.Chat.Messages, true)
		require.NoError(t, err)
		require.Equal(t, want.Chat.Text, text)
		require.Equal(t, want.Chat.IDs, ids)
	}
}
