package envs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// What templates write between the tags of an answer is a placeholder if it begins as one; a real
// action that they show stays an action.
func TestPlaceholdersOfTemplates(t *testing.T) {
	const text = "text:[first]\n{turn}\n[turn]\n{state}\n"
	for form, copied := range map[string]string{
		"<answer> Your best move </answer>":                           "your  best MOVE",
		"<think> … </think><answer>[the move you choose]</answer>":    "the move you choose",
		"<answer> Right </answer>, or <answer>your one move</answer>": "your one move",
	} {
		p, problems := envs.Protocol{}.WithWording(text+form, 24)
		require.Empty(t, problems)
		require.True(t, p.Placeholder(copied), form)
		require.False(t, p.Placeholder("Right"), form)
		require.False(t, envs.Protocol{}.Placeholder(copied), "of these templates alone")
	}
	for _, action := range []string{"Right", "42", "1 + 2", "search[your action]", "-", "", "?"} {
		require.False(t, envs.Protocol{}.Placeholder(action), action)
	}
}

// recording is an episode that was played elsewhere.
type recording struct {
	envs.Episode
	actions []string
	invalid int
}

func (r *recording) Answer() ([]string, int)            { return r.actions, r.invalid }
func (r *recording) Legal(action string) (string, bool) { return action, true }
func (r *recording) Step(string) envs.Outcome           { return envs.Outcome{} }
func (r *recording) Done() bool                         { return false }
func (r *recording) Success() bool                      { return false }

// An environment elsewhere is not asked about placeholders, and they count as invalid beside what it
// found invalid itself.
func TestPlaceholdersAreNotAskedAbout(t *testing.T) {
	p := envs.Protocol{FormatPenalty: -0.1, Penalty: envs.AnyInvalid}
	reply := p.Parse("your action || jump || fly</answer>", 3)
	require.Equal(t, []string{"jump", "fly"}, p.WithoutPlaceholders(reply.Actions))
	turn := p.Play(&recording{actions: []string{"jump"}, invalid: 1}, reply, 5)
	require.Equal(t, []string{"jump"}, turn.Actions)
	require.Equal(t, 2, turn.Invalid)
	require.Equal(t, -0.1, turn.Penalty)
}
