package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row keeps its ids up to the token that completes a text: across tokens, in the middle of one,
// across the bytes of a character, at the first token, and at the last.
func TestStopTextsKept(t *testing.T) {
	const answer = "</answer>"
	for _, c := range []struct {
		name   string
		texts  []string
		tokens []string
		kept   int
		ended  bool
	}{
		{"never", []string{answer}, []string{"a", "</", "answer", " >"}, 4, false},
		{"nothing sampled", []string{answer}, nil, 0, false},
		{"the whole token", []string{answer}, []string{"a", answer, "b"}, 2, true},
		{"across tokens", []string{answer}, []string{"A", "</", "ans", "wer", ">", "b"}, 5, true},
		{"in the middle of a token", []string{answer}, []string{"x</answer>\n\n", "b"}, 1, true},
		{"begun in a token and ended in another", []string{answer}, []string{"x</an", "swer>\nmore", "b"}, 2, true},
		{"at the first token", []string{answer}, []string{answer, answer}, 1, true},
		{"at the last token", []string{answer}, []string{"a", "b", answer}, 3, true},
		{"a false beginning", []string{"</a>"}, []string{"<", "</", "<", "/", "a", ">", "b"}, 6, true},
		{"a text that begins within its own beginning", []string{"aab"}, []string{"a", "a", "a", "b", "c"}, 4, true},
		{"the first of several", []string{"long text", "X"}, []string{"long", "X", " text"}, 2, true},
		{"a short text beside a long one", []string{"abcdefgh", "h"}, []string{"abc", "defgh", "h"}, 2, true},
		{"bytes of a character in several tokens", []string{"é!"}, []string{"\xc3", "\xa9", "!", "b"}, 3, true},
		{"a character that is cut", []string{"é"}, []string{"\xc3", "x", "\xa9"}, 3, false},
		{"tokens without text", []string{"ab"}, []string{"", "a", "", "b", ""}, 4, true},
		{"no texts", nil, []string{answer}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids := make([]int32, len(c.tokens))
			for i := range ids {
				ids[i] = int32(i)
			}
			s := NewStopTexts(c.texts, func(id int32) string { return c.tokens[id] })
			n, ended := s.Kept(ids)
			require.Equal(t, c.kept, n)
			require.Equal(t, c.ended, ended)
			// What is sampled after it changes nothing, and what is kept has no smaller end.
			for short := range ids {
				m, over := s.Kept(ids[:short])
				require.Equal(t, min(short, n), m)
				require.Equal(t, ended && short >= n, over)
				said := strings.Join(c.tokens[:short], "")
				require.Equal(t, slices.ContainsFunc(c.texts, func(text string) bool { return strings.Contains(said, text) }), over)
			}
		})
	}
}

// letters gives each id of the tiny model two letters, which no other id has.
func letters(id int32) string { return string([]rune{rune('a' + id/8), rune('A' + id%8)}) }

// A stop text keeps of each row what it samples without the text, up to the token that completes it:
// in passes, in chunks and in blocks. A row's stop text ends no other row that lacks it.
func TestStopTextsInPassesChunksAndBlocks(t *testing.T) {
	const rows, prompt, fresh = 23, 5, 9
	d := testDevice(t)
	var texts *StopTexts
	places := map[string]bool{}
	for _, block := range []int{0, 12} {
		var want GenerateOutput
		for _, chunk := range []int{0, 1, 2, 4} {
			p, err := d.Programs(tiny(), nil, Shapes{GenerateRows: 4, BlockRows: block, PromptTokens: prompt, MaxNewTokens: fresh, ChunkTokens: chunk})
			require.NoError(t, err)
			s, err := p.NewState(tinyParams(tiny()))
			require.NoError(t, err)
			in := blockInput(tiny(), rows, prompt, fresh)
			in.Stop = in.Stop[:1]
			whole, err := p.Sampler.Generate(t.Context(), s, in)
			require.NoError(t, err)
			if texts == nil {
				var said []string
				for _, ids := range whole.Tokens {
					var text strings.Builder
					for _, id := range ids {
						text.WriteString(letters(id))
					}
					said = append(said, text.String())
				}
				// A token, parts of two, and two at the limit.
				list := []string{said[0][:2], said[1][5:7]}
				for i := range said {
					if _, ended := NewStopTexts(list, letters).Kept(whole.Tokens[i]); !ended && len(whole.Tokens[i]) == fresh {
						list = append(list, said[i][2*fresh-4:])
						break
					}
				}
				texts = NewStopTexts(list, letters)
			}
			in.StopTexts = texts
			got, err := p.Sampler.Generate(t.Context(), s, in)
			require.NoError(t, err)
			for i, ids := range whole.Tokens {
				n, ended := texts.Kept(ids)
				require.Equal(t, ids[:n], got.Tokens[i], "row %d", i)
				require.Equal(t, whole.Truncated[i] && !ended, got.Truncated[i], "row %d", i)
				if block == 0 { // in a block the bits of a row depend on the step at which it is seated
					require.Equal(t, whole.LogProbs[i][:n], got.LogProbs[i], "row %d", i)
				} else {
					require.InDeltaSlice(t, whole.LogProbs[i][:n], got.LogProbs[i], 1e-5, "row %d", i)
				}
				places["first"] = places["first"] || ended && n == 1
				places["middle"] = places["middle"] || ended && n > 1 && n < len(ids)
				places["limit"] = places["limit"] || ended && n == fresh
				places["never"] = places["never"] || !ended && whole.Truncated[i]
			}
			if chunk == 0 {
				want = got
			}
			require.Equal(t, want, got, "chunks of %d, blocks of %d", chunk, block)
			in.IgnoreStop = true
			all, err := p.Sampler.Generate(t.Context(), s, in)
			require.NoError(t, err)
			require.Len(t, all.Tokens[0], fresh)
			s.Free()
			p.Free()
		}
	}
	require.Equal(t, map[string]bool{"first": true, "middle": true, "limit": true, "never": true}, places, "where rows end in this test")
}

// A row that a stop text has ended takes no more executions: a pass ends with its last row, and a
// block gives the slot away.
func TestStopTextsSaveExecutions(t *testing.T) {
	const rows, fresh = 24, 64
	d := testDevice(t)
	for _, block := range []int{0, rows} {
		p, err := d.Programs(tiny(), nil, Shapes{GenerateRows: 4, BlockRows: block, PromptTokens: 2, MaxNewTokens: fresh, ChunkTokens: 4})
		require.NoError(t, err)
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		steps := func(texts *StopTexts) (n int) {
			ran := d.Before
			defer func() { d.Before = ran }()
			d.Before = func(program string) error {
				if program == string(kindDecodeBlock) || program == string(kindDecodeChunk) {
					n++
				}
				return nil
			}
			in := blockInput(tiny(), rows, 2, fresh)
			in.Stop, in.StopTexts = nil, texts
			_, err := p.Sampler.Generate(t.Context(), s, in)
			require.NoError(t, err)
			return n
		}
		require.Less(t, 2*steps(NewStopTexts([]string{"A", "C", "E"}, letters)), steps(nil), "blocks of %d", block)
		s.Free()
		p.Free()
	}
}
