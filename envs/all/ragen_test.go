package all_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

var update = flag.Bool("update", false, "write the texts of the prompts anew")

// Every environment's first and second prompt in RAGEN's words, between which a reply is
// read; the first is no wider than its width.
func TestRagenPrompts(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for _, name := range envs.Names() {
		env, err := envs.New(name, nil)
		require.NoError(t, err, name)
		p := envs.Protocol{Think: true, FormatPenalty: -0.1, LengthHint: 100, Wording: envs.Ragen}
		at := draw.Address{Seed: 1, Purpose: draw.Instance}
		episode := env.Reset(at, draw.Address{Seed: 1, Purpose: draw.Chance})
		var s strings.Builder
		for _, m := range p.First(env, episode) {
			fmt.Fprintf(&s, "[%s]\n%s\n", m.Role, m.Content)
		}
		action := ""
		if choices := episode.Choices(); len(choices) > 0 {
			action = choices[0]
		}
		reply := p.Parse(" a thought </think> <answer> "+action+" </answer>", env.MaxActionsPerTurn())
		require.True(t, reply.Formatted, name)
		turn := p.Play(episode, reply, env.MaxActions())
		fmt.Fprintf(&s, "[%s]\n%s\n", "user", p.Next(env, episode, envs.NextTurn{Number: 2, Reward: turn.Reward, ActionsLeft: turn.ActionsLeft}))
		path := filepath.Join("testdata", "ragen", name+".txt")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(s.String()), 0o644))
		}
		ids, err := p.PromptIDs(tok, env, env.Reset(at, at))
		require.NoError(t, err)
		widths, err := envs.MaxPromptTokens(env, tok, p, 1, 32)
		require.NoError(t, err, name)
		require.LessOrEqual(t, len(ids), widths[0], name)
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), s.String(), name)
	}
}
