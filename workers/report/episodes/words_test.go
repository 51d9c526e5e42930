package episodes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/safetensors"
)

func words(t testing.TB) *vocabulary {
	t.Helper()
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	return &vocabulary{tokenizer: tok, pieces: map[int32]string{}, prompts: map[string]string{}}
}

// A character of several tokens is put together; the last of them has it.
func TestSpell(t *testing.T) {
	v := words(t)
	for _, text := range []string{"Down || Up", "Zürich", "日本 🎉!", "</script><img onerror=x>", "", "\u2028 a\tb\n"} {
		ids := v.tokenizer.EncodePlain(text)
		tokens := make([]Token, len(ids))
		for i, id := range ids {
			tokens[i].ID = id
		}
		require.Equal(t, text, v.spell(tokens))
		var together strings.Builder
		for _, token := range tokens {
			require.NotContains(t, token.Text, "\uFFFD")
			together.WriteString(token.Text)
		}
		require.Equal(t, text, together.String())
	}
	// Half a character stays what it is.
	ids := v.tokenizer.EncodePlain("🎉")
	require.Len(t, ids, 4)
	half := []Token{{ID: ids[0]}, {ID: ids[1]}}
	require.Contains(t, v.spell(half), "\uFFFD")
}

func TestFirstBoard(t *testing.T) {
	for prompt, want := range map[string]string{
		"Turn 1:\nP_\n_G\nActions left: 5\nReply: <think>":                                  "P_\n_G",
		"Turn 1:\none line\nReply: x":                                                       "one line",
		"a question with Turn 1:\nin it\nTurn 1:\nboard\nReply: x\nTurn 1:\nlast\nReply: y": "last",
		"no turn": "",
		"":        "",
	} {
		require.Equal(t, want, firstBoard(prompt), prompt)
	}
}

func FuzzAdvantages(f *testing.F) {
	good, err := safetensors.Encode([]safetensors.Tensor{
		safetensors.I32(batch.TensorRow, []int{2}, []int32{3, -1}), safetensors.I32(batch.TensorOrigin, []int{2}, []int32{1, -1}),
		safetensors.F32(batch.TensorMask, []int{2, 2}, []float32{0, 1, 0, 0}), safetensors.F32(batch.Advantages.String(), []int{2, 2}, []float32{9, 0.5, 0, 0}),
	}, nil)
	require.NoError(f, err)
	f.Add(good, 1)
	f.Add([]byte("{}"), 0)
	f.Fuzz(func(t *testing.T, body []byte, iteration int) {
		file, err := safetensors.Decode(body)
		if err != nil {
			return
		}
		out, err := advantagesOf(file, iteration)
		if err != nil {
			return
		}
		for row := range out {
			require.GreaterOrEqual(t, row, int32(0))
		}
	})
}

func TestAdvantages(t *testing.T) {
	row := safetensors.I32(batch.TensorRow, []int{3}, []int32{3, 3, -1})
	mask := safetensors.F32(batch.TensorMask, []int{3, 2}, []float32{0, 1, 1, 1, 1, 1})
	values := safetensors.F32(batch.Advantages.String(), []int{3, 2}, []float32{9, 0.5, 0.25, -1, 7, 7})
	for _, c := range []struct {
		name    string
		tensors []safetensors.Tensor
		want    map[int32][]float32
	}{
		{"a trajectory of two rows", []safetensors.Tensor{row, mask, values}, map[int32][]float32{3: {0.5, 0.25, -1}}},
		{"rows of another iteration", []safetensors.Tensor{row, mask, values, safetensors.I32(batch.TensorOrigin, []int{3}, []int32{1, 0, -1})}, map[int32][]float32{3: {0.25, -1}}},
		{"no rows", []safetensors.Tensor{mask, values}, nil},
		{"no mask", []safetensors.Tensor{row, values}, nil},
		{"no advantages", []safetensors.Tensor{row, mask}, nil},
		{"other sizes", []safetensors.Tensor{row, mask, safetensors.F32(batch.Advantages.String(), []int{1}, []float32{1})}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := safetensors.Encode(c.tensors, nil)
			require.NoError(t, err)
			file, err := safetensors.Decode(body)
			require.NoError(t, err)
			got, err := advantagesOf(file, 0)
			if c.want == nil {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
