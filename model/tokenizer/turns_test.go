package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a template does between turns is found, or refused with a reason that says where it
// differs.
func TestTurns(t *testing.T) {
	const loop = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}`
	const begin = `{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	const tail = "\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n"
	for name, c := range map[string]struct{ source, tail, refused string }{
		"plain":        {source: loop + begin, tail: tail},
		"needs system": {source: `{% if messages[0].role != 'system' %}{{ raise_exception('a system message must come first') }}{% endif %}` + loop + begin, tail: tail},
		"no system":    {source: `{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}` + loop + begin, tail: tail},
		"system once":  {source: `{% if messages[0].role != 'system' %}<|im_start|>system` + "\n" + `default<|im_end|>{% endif %}` + loop + begin, tail: tail},
		"space before the close": {
			source: `{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% elif m['role'] == 'assistant' %}` +
				`{{ ' ' + m['content'] + ' ' + eos_token }}{% endif %}{% endfor %}`,
			tail: "[INST] more [/INST]",
		},
		"space before the close, with system": {
			source: `{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% elif m['role'] == 'assistant' %}` +
				`{{ ' ' + m['content'] + ' ' + eos_token }}{% else %}{{ m['content'] }}{% endif %}{% endfor %}`,
			tail: "[INST] more [/INST]",
		},
		"text before the close": {
			source:  strings.ReplaceAll(loop, `m.content +`, `m.content + ' (end)' +`) + begin,
			refused: `does not close an assistant's message with a special token: between it and the next user's message stands " (end)<|im_end|>\n<|im_start|>user\n"`,
		},
		"no close":     {source: `{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}`, refused: "does not close"},
		"drops a turn": {source: `{% for m in messages[-2:] %}{{ '<|im_start|>' + m.content + '<|im_end|>' }}{% endfor %}`, refused: "‹message 1›, the user's, is missing"},
		"system in each turn": {
			source: `{% set s = messages[0].content if messages[0].role == 'system' else '' %}{% for m in messages %}{% if m.role == 'user' %}` +
				`{{ '<|im_start|>user\n' + s + '\n' + m.content + '<|im_end|>\n' }}{% elif m.role == 'assistant' %}` +
				`{{ '<|im_start|>assistant\n' + m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}` + begin,
			refused: "‹message 1›, the system's, stands there 2 times after 4 messages",
		},
		"numbers its turns": {
			source:  strings.ReplaceAll(loop, `m.role +`, `m.role + (loop.index|string) +`) + begin,
			refused: `before the user's message of turn 3 it writes "<|im_end|>\n<|im_start|>user6\n" in a conversation of 3 turns, and in turn 2 "<|im_end|>\n<|im_start|>user4\n"`,
		},
		"counts its messages": {
			source:  `{{ messages|length }} messages` + "\n" + loop + begin,
			refused: `before message 1 it writes "2 messages\n<|im_start|>system\n" in a conversation of 1 turns, and "8 messages`,
		},
		"begins its turns differently": {
			source:  loop + `{% if add_generation_prompt %}{{ '<|im_start|>assistant' + (messages|length|string) + '\n' }}{% endif %}`,
			refused: `after the user's message of turn 3 it writes`,
		},
		"a first turn of its own":    {source: loop + `{% if messages|length > 2 %}` + begin + `{% else %}{{ '<|im_start|>assistant, begin\n' }}{% endif %}`, tail: tail},
		"trims":                      {source: strings.ReplaceAll(loop, `m.content`, `m.content|trim`) + begin, tail: tail},
		"trims one side":             {source: strings.ReplaceAll(loop, `m.content`, `m.content.lstrip()`) + begin, refused: "changes the white space around a user's message"},
		"other with a system's text": {source: strings.ReplaceAll(loop, `+ m.role`, `+ m.role + ('!' if messages[0].role == 'system' else '')`) + begin, refused: "if the conversation begins with a system message, and something else if not"},
		"fails in turn 3":            {source: loop + begin + `{% if messages|length > 6 %}{{ raise_exception('too long') }}{% endif %}`, refused: "a conversation of 4 turns: chat template failed: line 1: call of raise_exception: too long"},
	} {
		t.Run(name, func(t *testing.T) {
			tok := withTemplate(t, c.source)
			ids, err := tok.Continuation("more")
			_, closing := tok.Closing()
			if c.refused != "" {
				require.ErrorIs(t, err, ErrTemplate)
				require.ErrorContains(t, err, c.refused)
				require.Equal(t, err, closing)
				return
			}
			require.NoError(t, err)
			require.NoError(t, closing)
			require.Equal(t, c.tail, tok.Decode(ids))
		})
	}
}

// A space before the closing token is no reason to refuse: the reply stays as it was sampled.
// Rewrites says that the template would write another text.
func TestRewritesBeforeTheClose(t *testing.T) {
	tok := withTemplate(t, `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + (' ' if m.role == 'assistant' else '') + '<|im_end|>\n' }}{% endfor %}`+
		`{{ '<|im_start|>assistant\n' }}`)
	r, err := tok.Rewrites("yes")
	require.NoError(t, err)
	require.Equal(t, &Rewritten{Kept: "<|im_end|>\n<|im_start|>assistant\nyes", Rendered: "<|im_end|>\n<|im_start|>assistant\nyes <|im_end|>\n<|im_start|>user\n"}, r)
}

// Templates made at random: one that is not refused, and that does not rewrite earlier turns,
// gives a conversation the ids of its beginning and its continuations, in every turn.
func TestTurnsOfTemplates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	rarely := func(text string) string {
		if random.IntN(8) == 0 {
			return text
		}
		return ""
	}
	checked, refused := 0, 0
	for range 1500 {
		content := pick(`m.content`, `m.content`, `m.content`, `m.content|trim`, `m['content'].strip()`)
		counted := rarely(`{{ ` + pick(`loop.index`, `loop.first`, `loop.last`, `loop.revindex`, `messages|length`, `messages[0].content`, `messages[0].role`, `messages[-1].role`, `loop.previtem.role`,
			`messages[loop.index0 - 1].role`, `messages|selectattr('role', 'equalto', 'user')|list|length`) + ` }}`)
		places := make([]string, 6)
		places[random.IntN(6)] = counted
		before, behind := pick("<|im_start|>", "### ", ""), pick("\n", ": ", "")
		source := rarely(`{{ bos_token }}`) + rarely(`{% if messages[0].role == 'system' %}{{ messages[0].content }}`+"\n"+`{% set messages = messages[1:] %}{% endif %}`) + places[0] +
			`{% for m in messages %}` + places[1] + rarely(`{% if loop.last %}`+pick("(last)", " ", "\n")+`{% endif %}`) +
			before + `{{ m.role }}` + behind + places[2] + `{{ ` + content + ` }}` + places[3] +
			pick("", "", "", "", " ", "\n", "!", "{% if m.role == 'assistant' %} {% endif %}") + pick("<|im_end|>", "<|im_end|>\n", "{{ eos_token }}", "\n") + places[4] +
			`{% endfor %}` + pick("{% if add_generation_prompt %}", "{% if true %}") + before + "assistant" + rarely("?") + places[5] + behind + `{% endif %}`
		if strings.Contains(places[0]+places[5], "loop") {
			continue
		}
		tok := withTemplate(t, source)
		closing, err := tok.Closing()
		if err != nil {
			require.ErrorIs(t, err, ErrTemplate)
			refused++
			continue
		}
		system := []Message{{Role: "system", Content: "You are a helpful assistant."}}[:random.IntN(2)]
		messages := append(system, Message{Role: "user", Content: "Turn 1: |..|"})
		ids, err := tok.EncodeChat(messages, true)
		require.NoError(t, err, source)
		rewrites, err := tok.Rewrites("said")
		require.NoError(t, err, source)
		for _, next := range []string{" Reward: 1\n", "Reward: 0", "<|im_end|>", "done"} {
			ids = append(append(ids, tok.EncodePlain("said")...), closing)
			more, err := tok.Continuation(next)
			require.NoError(t, err)
			ids = append(ids, more...)
			messages = append(messages, Message{Role: "assistant", Content: "said"}, Message{Role: "user", Content: next})
			if rewrites != nil {
				continue
			}
			whole, err := tok.EncodeChat(messages, true)
			require.NoError(t, err)
			require.Equal(t, tok.Decode(whole), tok.Decode(ids), source)
			checked++
		}
	}
	require.Greater(t, checked, 500)
	require.Greater(t, refused, 200)
}
