package envs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// templates that open a thought, close it, or leave it to the protocol, by what they write after
// the last message.
var thinkingTemplates = map[string]string{
	"opens":             "<think>\n",
	"opens without end": "<think>",
	"opens and begins":  "<think>\nOkay, ",
	"closes":            "<think>\n\n</think>\n\n",
	"leaves it":         "",
	"opens twice":       "<think></think><think>\n",
}

// A context has at most one open thought, whether the template or the protocol opened it, and
// <answer> never stands within one: in the first turn, in later ones, and in windows.
func TestOneOpenThought(t *testing.T) {
	env := corridor{}
	for name, after := range thinkingTemplates {
		for _, folder := range []string{"qwen3-tiny", "llama-tiny"} { // <think> is one token, and several
			tok := templated(t, folder, `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + eos_token }}{% endfor %}`+
				`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n`+strings.ReplaceAll(after, "\n", `\n`)+`' }}{% endif %}`)
			for _, p := range []envs.Protocol{think, noThink} {
				e := env.Reset(draw.Address{}, draw.Address{})
				ids, err := p.PromptIDs(tok, env, e)
				require.NoError(t, err)
				more, err := p.ContinueIDs(tok, env, e, envs.NextTurn{Number: 2, Reward: 1, ActionsLeft: 2}, nil)
				require.NoError(t, err)
				for _, text := range []string{tok.Decode(ids), tok.Decode(more)} {
					_, own, ok := strings.Cut(text[strings.LastIndex(text, "<|im_start|>"):], "assistant\n")
					require.True(t, ok)
					open := strings.Count(own, "<think>") - strings.Count(own, "</think>")
					if p.Think {
						require.Equal(t, 1, open, "%s: %q", name, own)
						require.NotContains(t, own, "<answer>")
						require.True(t, strings.HasPrefix(own, after), "%s: %q", name, own)
						continue
					}
					require.Zero(t, open, "%s: %q", name, own)
					require.True(t, strings.HasSuffix(own, "<answer>"), "%s: %q", name, own)
					if after == "<think>\n" {
						require.Equal(t, "<think>\n\n</think>\n\n<answer>", own)
					}
				}
				if !strings.HasPrefix(name, "opens") { // as before: the template's text and the tag
					own := tok.Decode(ids)
					require.True(t, strings.HasSuffix(own, "assistant\n"+after+p.Opening()), "%s: %q", name, own)
				}
			}
		}
	}
}

// The empty thought has the ids of Qwen3's own template for enable_thinking false.
func TestEmptyThoughtHasTheTemplatesIDs(t *testing.T) {
	source := func(after string) string {
		return `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + eos_token + '\n' }}{% endfor %}{{ '<|im_start|>assistant\n` + after + `' }}`
	}
	env := corridor{}
	var prompts [][]int32
	for _, after := range []string{`<think>\n`, `<think>\n\n</think>\n\n`} {
		ids, err := noThink.PromptIDs(templated(t, "qwen3-tiny", source(after)), env, env.Reset(draw.Address{}, draw.Address{}))
		require.NoError(t, err)
		prompts = append(prompts, ids)
	}
	require.Equal(t, prompts[1], prompts[0])
}

// templated is a tokenizer of model/testdata with another chat template.
func templated(t *testing.T, folder, source string) *tokenizer.Tokenizer {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range tokenizer.FileNames {
		if b, err := os.ReadFile(filepath.Join("../model/testdata", folder, name)); err == nil {
			files[name] = b
		}
	}
	files["chat_template.jinja"] = []byte(source)
	tok, err := tokenizer.Load(files)
	require.NoError(t, err)
	return tok
}
