package envs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const templates = `[system]
Answer in {{braces}}.
[first]
{instructions}

Legal: {actions}. {max_actions} in all, {max_actions_per_turn} a turn, between them {separator}.
{turn}
[reward]
You got {reward}.
[turn]
Move {number}, {actions_left} left.
{state}
At most {max_new_tokens} tokens: {format}
`

func TestTemplates(t *testing.T) {
	env, err := envs.New("frozenlake", []byte(`{"layout": "SG\nFF", "max_actions": 4, "max_actions_per_turn": 2}`))
	require.NoError(t, err)
	episode := env.Reset(draw.Address{Purpose: draw.Instance}, draw.Address{Purpose: draw.Chance})
	path := filepath.Join(t.TempDir(), "words.txt")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(templates, "\n", "\r\n")), 0o644))
	p, problems := envs.Protocol{Think: true}.WithWording("file:"+path, 24)
	require.Empty(t, problems)
	require.Equal(t, "text:"+templates, p.Wording, "nobody needs the file again")
	block := func(head string) string {
		return head + "\n" + episode.Observation() + "\nAt most 24 tokens: <think> your thoughts </think><answer> your action </answer>"
	}
	require.Equal(t, []chat.Message{
		{Role: "system", Content: "Answer in {braces}."},
		{Role: "user", Content: env.Instructions() + "\n\nLegal: Left, Down, Right, Up. 4 in all, 2 a turn, between them ||.\n" + block("Move 1, 4 left.")},
	}, p.First(env, episode))
	require.Equal(t, "You got -0.1.\n"+block("Move 2, 3 left."), p.Next(env, episode, envs.NextTurn{Number: 2, Reward: -0.1, ActionsLeft: 3}))

	p, problems = envs.Protocol{}.WithWording("text:[first]\n{turn}\n[turn]\n[state]\n{state} <answer> … </answer>", 24)
	require.Empty(t, problems)
	text := "[state]\n" + episode.Observation() + " <answer> … </answer>"
	require.Equal(t, []chat.Message{{Role: "user", Content: text}}, p.First(env, episode))
	require.Equal(t, text, p.Next(env, episode, envs.NextTurn{Number: 2, Reward: 1, ActionsLeft: 3}), "no reward is shown")
}

// The example of the docs writes what our wording writes.
func TestTemplatesOfTheDocs(t *testing.T) {
	env, err := envs.New("frozenlake", nil)
	require.NoError(t, err)
	episode := env.Reset(draw.Address{Purpose: draw.Instance}, draw.Address{Purpose: draw.Chance})
	p, problems := envs.Protocol{Think: true}.WithWording("file:../docs/own/words.txt", 24)
	require.Empty(t, problems)
	ours, next := envs.Protocol{Think: true}, envs.NextTurn{Number: 2, Reward: -0.1, ActionsLeft: 3}
	require.Equal(t, ours.First(env, episode), p.First(env, episode))
	require.Equal(t, ours.Next(env, episode, next), p.Next(env, episode, next))
}

// What stands for a placeholder is text, whatever it contains.
func TestTemplatesReadNoValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "questions.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "{turn} {{x}} [turn] }", "answer": "1"}`+"\n"), 0o644))
	env, err := envs.New("mathqa", []byte(`{"file": `+strict.Quote(file)+`}`))
	require.NoError(t, err)
	episode := env.Reset(draw.Address{Purpose: draw.Instance}, draw.Address{Purpose: draw.Chance})
	require.Contains(t, episode.Observation(), "{turn} {{x}} [turn] }")
	p, problems := envs.Protocol{}.WithWording("text:[first]\n{turn}\n[turn]\n{state}\n{format}", 24)
	require.Empty(t, problems)
	require.Equal(t, episode.Observation()+"\n<answer> your action </answer>", p.First(env, episode)[0].Content)
}

func TestTemplateProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // of each problem, what was found
	}{
		"empty":             {"", []string{"text above the first part, in line 1", "no part [first]", "no part [turn]"}},
		"unknown":           {"[first]\n{turn} {stat}\n[turn]\n{state} {action} {format}", []string{`"{stat}" in [first]`, `"{action}" in [turn]`}},
		"of another part":   {"[system]\n{state}\n[first]\n{turn}\n[reward]\n{turn}\n[turn]\n{state}{format}", []string{`"{state}" in [system]`, `"{turn}" in [reward]`}},
		"braces":            {"[first]\n{turn} } {\n[turn]\n{{{state}}} {format}{", []string{`"}" in [first]`, `"{" in [first]`, `"{" in [turn]`}},
		"nothing is shown":  {"[first]\nGo.\n[reward]\nWell.\n[turn]\nGo on.", []string{"[first] without {turn}", "[reward] without {reward}", "[turn] without {state}", "[turn] without {format}"}},
		"twice":             {"[first]\n{turn}\n[turn]\n{state}{format}\n[turn]\n{state}{format}", []string{"a second [turn] in line 5"}},
		"text above":        {"Hello\n[first]\n{turn}\n[turn]\n{state}{format}", []string{"text above the first part, in line 1"}},
		"not text":          {"[first]\n{turn}\n[turn]\n{state}{format}\xff", []string{"38 bytes"}},
		"without the names": {"first\n{turn}", []string{"text above the first part, in line 1", `"{turn}" in [system]`, "no part [first]", "no part [turn]"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := envs.Protocol{}.WithWording("text:"+c.text, 8)
			var found []string
			for _, p := range problems {
				found = append(found, p.Found)
				require.NotEmpty(t, p.Allowed)
			}
			require.Equal(t, c.want, found)
		})
	}
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 17<<10), 0o644))
	for path, want := range map[string]string{filepath.Join(dir, "none"): "(no such file or directory)", dir: dir, large: large} {
		_, problems := envs.ReadWording("file:" + path)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].Found, want)
	}
}

func FuzzParseTemplates(f *testing.F) {
	f.Add(templates)
	f.Add("[first]\n{turn}\n[turn]\n{{}}{state}{format}")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := envs.New("bandit", nil)
		require.NoError(t, err)
		p, problems := envs.Protocol{}.WithWording("text:"+text, 8)
		if len(problems) > 0 {
			return
		}
		episode := env.Reset(draw.Address{}, draw.Address{})
		first := p.First(env, episode)
		require.Contains(t, first[len(first)-1].Content, episode.Observation())
		require.Contains(t, p.Next(env, episode, envs.NextTurn{Number: 2}), episode.Observation())
	})
}
