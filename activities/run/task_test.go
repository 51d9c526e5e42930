package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/starter"
)

// A window is at the beginning of an episode, but where the first turns do not show what later
// ones are like: there it may be anywhere.
func TestShown(t *testing.T) {
	for _, c := range []struct {
		env          string
		window       int
		turns, drawn int
	}{
		{"frozenlake", 0, 4, 0},
		{"frozenlake", 2, 2, 0},
		{"frozenlake", 9, 4, 0},
		{"webshop", 0, 4, 0},
		{"webshop", 2, 4, 2},
		{"lake_for_two", 2, 4, 2},
	} {
		env, err := envs.New(c.env, nil)
		require.NoError(t, err)
		task := Task{Turns: 4, Protocol: envs.Protocol{ContextTurns: c.window}}
		require.Equal(t, starter.Options{Turns: c.turns, Window: c.drawn}, task.Shown(env), "%s, a window of %d", c.env, c.window)
	}
}
