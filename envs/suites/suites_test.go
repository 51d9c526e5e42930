package suites

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/model/draw"
)

// The look of an instance of each suite; no other suite looks like it.
func TestSuites(t *testing.T) {
	looks := map[string]struct {
		rows    int
		has     []string
		actions int
	}{
		"sokoban":                {6, []string{"######", "_", "X"}, 10},
		"sokoban-large":          {8, []string{"########", "_", "X"}, 10},
		"sokoban-new-vocabulary": {6, []string{"WWWWWW", ".", "B"}, 10},
		"frozenlake":             {4, []string{"P", "_", "G"}, 10},
		"bandit":                 {1, []string{"Phoenix", "Dragon"}, 1},
		"bandit-test":            {1, []string{"Trader", "Librarian"}, 1},
		"bandit-reversed":        {1, []string{"Phoenix", "Dragon"}, 1},
		"bandit-names":           {1, []string{", "}, 1},
		"countdown":              {2, []string{"Numbers: ", "Target: "}, 1},
	}
	require.Len(t, Names(), len(looks))
	seen := map[string]string{}
	for _, name := range Names() {
		s, ok := Named(name)
		require.True(t, ok)
		require.Equal(t, name, s.Name)
		require.NotEmpty(t, s.Doc)
		env, err := envs.New(s.Environment, s.Options)
		require.NoError(t, err, name)
		require.Equal(t, looks[name].actions, env.MaxActions())
		var texts strings.Builder
		for k := range int64(8) {
			e := env.Reset(draw.Address{Seed: 1, Purpose: draw.Evaluation.With(draw.Instance), Group: k}, draw.Address{})
			text := e.Observation()
			require.Len(t, strings.Split(text, "\n"), looks[name].rows, name)
			for _, part := range looks[name].has {
				require.Contains(t, text, part, name)
			}
			texts.WriteString(text + e.StateKey())
		}
		require.Empty(t, seen[texts.String()], name)
		seen[texts.String()] = name
	}
	reversed, err := envs.New("bandit", mustNamed(t, "bandit-reversed").Options)
	require.NoError(t, err)
	e := reversed.Cases()[0]
	require.True(t, e.Step("Phoenix").Success)
	_, ok := Named("sokoban-larger")
	require.False(t, ok)
}

func mustNamed(t *testing.T, name string) Suite {
	t.Helper()
	s, ok := Named(name)
	require.True(t, ok)
	return s
}

// A caller cannot change a suite.
func TestNamedIsACopy(t *testing.T) {
	mustNamed(t, "frozenlake").Options[0] = '['
	require.Equal(t, "{}", string(mustNamed(t, "frozenlake").Options))
}

// The documentation lists them all.
func TestSuitesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/environments.md")
	require.NoError(t, err)
	for _, name := range Names() {
		require.True(t, strings.Contains(string(doc), "`"+name+"`"), name)
	}
}
