package all_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// wordings are the protocols whose prompts are written down; RAGEN's are in TestRagenPrompts.
var wordings = map[string]envs.Protocol{
	"reprise":           {Think: true},
	"examples":          {Think: true, Wording: envs.Examples},
	"examples-answer":   {Wording: envs.Examples},
	"examples-subgoals": {Think: true, Subgoals: true, Wording: envs.Examples},
	"hiper":             {Think: true, Subgoals: true, Wording: envs.Hiper},
	"vagen":             {Think: true, Wording: envs.Vagen},
}

// Every environment's first and second prompt in each wording, between which the first example is
// the reply, or where there is none the first choice; both are no wider than their widths.
func TestPromptsOfWordings(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for wording, p := range wordings {
		for _, name := range envs.Names() {
			env, err := envs.New(name, nil)
			require.NoError(t, err, name)
			episode := env.Reset(draw.Address{Seed: 1, Purpose: draw.Instance}, draw.Address{Seed: 1, Purpose: draw.Chance})
			var s strings.Builder
			for _, m := range p.First(env, episode) {
				fmt.Fprintf(&s, "[%s]\n%s\n", m.Role, m.Content)
			}
			widths, err := envs.MaxPromptTokens(env, tok, p, 2, 32)
			require.NoError(t, err, name)
			ids, err := p.PromptIDs(tok, env, episode)
			require.NoError(t, err)
			require.LessOrEqual(t, len(ids), widths[0], name)

			reply := envs.Reply{Actions: episode.Choices()[:1]}
			if examples := p.ExampleReplies(env, episode, 1, env.MaxActions()); len(examples) > 0 {
				reply = p.Parse(strings.TrimPrefix(examples[0], p.Opening()), env.MaxActionsPerTurn())
			}
			turn := p.Play(episode, reply, env.MaxActions())
			if !turn.Ended() {
				next := envs.NextTurn{Number: 2, Reward: turn.Reward, ActionsLeft: turn.ActionsLeft}
				fmt.Fprintf(&s, "[user]\n%s\n", p.Next(env, episode, next))
				more, err := p.ContinueIDs(tok, env, episode, next, nil)
				require.NoError(t, err)
				require.LessOrEqual(t, len(ids)+32+len(more), widths[1], name)
			}
			path := filepath.Join("testdata", "wordings", wording, name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(s.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), s.String(), "%s: %s", wording, name)
		}
	}
}

// variants are options in which an environment has other actions, or other numbers of them.
var variants = map[string][]string{
	"bandit":       {`{"instances": 2}`},
	"countdown":    {`{"calculator": 2}`, `{"attempts": 2}`, `{"max_number": 999, "min_numbers": 3}`},
	"frozenlake":   {`{"max_actions_per_turn": 1}`, `{"slippery": false}`},
	"lake_for_two": {`{"words": 1}`, `{"words": 3}`},
	"lookup":       {`{"size": "tiny", "hops_max": 4}`, `{"size": "tiny", "reward": "subem"}`},
	"mathqa":       {`{"attempts": 3}`},
	"sokoban":      {`{"max_actions_per_turn": 1}`},
	"webshop":      {`{"search_anywhere": true}`, `{"wrapper": "ragen"}`},
}

// Whatever an example shows is a valid reply: it is read as written, and every action in it is legal
// where it is shown, in all turns. It solves nothing by itself in an environment of free answers.
func TestExamplesAreValidReplies(t *testing.T) {
	for _, name := range envs.Names() {
		for _, options := range append([]string{`{}`}, variants[name]...) {
			env, err := envs.New(name, json.RawMessage(options))
			require.NoError(t, err, options)
			for group := range int64(24) {
				at := draw.Address{Seed: 5, Purpose: draw.Instance, Group: group}
				episode := env.Reset(at, draw.Address{Seed: 5, Purpose: draw.Chance, Group: group})
				left := env.MaxActions()
				for turn := 1; turn <= 6 && left > 0 && !episode.Done(); turn++ {
					at := fmt.Sprintf("%s %s, instance %d, turn %d", name, options, group, turn)
					for wording, p := range wordings {
						if p.Wording != envs.Examples {
							continue
						}
						replies := p.ExampleReplies(env, episode, turn, left)
						require.NotEmpty(t, replies, at)
						require.Contains(t, p.Next(env, episode, envs.NextTurn{Number: turn, ActionsLeft: left}), replies[0], "%s, %s", at, wording)
						for _, text := range replies {
							reply := p.Parse(strings.TrimPrefix(text, p.Opening()), env.MaxActionsPerTurn())
							require.True(t, reply.Formatted, at)
							require.Zero(t, reply.Surplus, at)
							require.Len(t, reply.Actions, min(max(env.MaxActionsPerTurn(), 1), 2, left), at)
							for _, action := range reply.Actions {
								_, ok := episode.Legal(action)
								require.True(t, ok, "%s: %q is not legal", at, action)
								require.False(t, p.Placeholder(action), at)
							}
						}
					}
					// Go on with what the example is, except where any answer ends the episode.
					p := wordings["examples"]
					replies := p.ExampleReplies(env, episode, turn, left)
					played := p.Play(episode, p.Parse(strings.TrimPrefix(replies[0], p.Opening()), env.MaxActionsPerTurn()), left)
					if _, free := env.(envs.FreeForm); free {
						require.False(t, played.Success, at)
					}
					require.Zero(t, played.Invalid, at)
					left = played.ActionsLeft
				}
			}
		}
	}
}

// No example follows from the instance, but where the instance has actions of its own: then all of
// them are shown, in its order.
func TestExamplesAreTheSameForEveryInstance(t *testing.T) {
	p := wordings["examples-answer"]
	for _, name := range envs.Names() {
		env, err := envs.New(name, nil)
		require.NoError(t, err)
		seen := map[string]bool{}
		for group := range int64(32) {
			episode := env.Reset(draw.Address{Seed: 7, Purpose: draw.Instance, Group: group}, draw.Address{Seed: 7})
			replies := p.ExampleReplies(env, episode, 1, env.MaxActions())
			if name == "bandit" {
				choices := episode.Choices()
				require.Equal(t, []string{"<answer> " + choices[0] + " </answer>", "<answer> " + choices[1] + " </answer>"}, replies)
				continue
			}
			seen[strings.Join(replies, "\n")] = true
		}
		if name != "bandit" {
			require.Len(t, seen, 1, name)
		}
	}
}

// Over the turns of an episode every move is shown as often as another.
func TestExamplesShowEveryMove(t *testing.T) {
	p := wordings["examples-answer"]
	for _, name := range []string{"frozenlake", "sokoban"} {
		for _, options := range []string{`{}`, `{"max_actions_per_turn": 1}`} {
			env, err := envs.New(name, json.RawMessage(options))
			require.NoError(t, err)
			shown := map[string]int{}
			for turn := 1; turn <= 4; turn++ {
				for _, reply := range p.ExampleReplies(env, env.Cases()[0], turn, env.MaxActions()) {
					for _, action := range p.Parse(strings.TrimPrefix(reply, p.Opening()), 2).Actions {
						shown[action]++
					}
				}
			}
			require.Len(t, shown, 4, name)
			for action, n := range shown {
				require.Equal(t, shown["Right"], n, "%s: %s", name, action)
			}
		}
	}
}

// A copied placeholder is an invalid action in every environment, however it is written.
func TestPlaceholdersAreNeverLegal(t *testing.T) {
	for _, name := range envs.Names() {
		env, err := envs.New(name, nil)
		require.NoError(t, err)
		for _, copied := range []string{
			"your action", "youraction", "Your Action", "[your action]", " your  answer ", "[your answer]", "your thoughts", "your_subgoal",
			"KEEP or SWITCH", "the sub-goal you will follow next", "EXACTLY one ADMISSIBLE action", "...", "…",
		} {
			for _, p := range []envs.Protocol{{}, {Wording: envs.Ragen}, {Wording: envs.Examples}} {
				episode := env.Reset(draw.Address{Seed: 3}, draw.Address{Seed: 3})
				reply := p.Parse(copied+"</answer>", env.MaxActionsPerTurn())
				require.Len(t, reply.Actions, 1, copied)
				turn := p.Play(episode, reply, env.MaxActions())
				require.Empty(t, turn.Actions, "%s: %q", name, copied)
				require.Equal(t, 1, turn.Invalid, "%s: %q", name, copied)
				require.Equal(t, env.MaxActions(), turn.ActionsLeft)
			}
		}
	}
}

// VAGEN's example is what the reward `state` reads: it names each kind of object by its name there, in
// both tags, and its answer is legal.
func TestVagenAsksForWhatTheRewardReads(t *testing.T) {
	p := wordings["vagen"]
	for _, name := range envs.Names() {
		env, err := envs.New(name, nil)
		require.NoError(t, err)
		episode := env.Cases()[0]
		system := p.First(env, episode)[0].Content
		_, example, shown := strings.Cut(system, "\ne.g. ")
		require.Equal(t, rewards.Objects(name) != nil, shown, name)
		if !shown {
			continue
		}
		reply := p.Parse(strings.TrimPrefix(example, p.Opening()), env.MaxActionsPerTurn())
		require.True(t, reply.Formatted, name)
		for _, action := range reply.Actions {
			_, ok := episode.Legal(action)
			require.True(t, ok, action)
		}
		said := rewards.Tagged(reply.Thought)
		require.Len(t, said, 2, name)
		for _, s := range said {
			var objects []string
			for _, claim := range rewards.Relations(s.Text) {
				objects = append(objects, claim.Object)
			}
			require.ElementsMatch(t, rewards.Objects(name), objects, "%s: %s", name, s.Tag)
		}
	}
}
