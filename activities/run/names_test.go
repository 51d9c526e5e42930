package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// The folder and the names of a rollout's tables are apart for each branch, iteration, suite, round, wave and turn.
func TestNamesOfTables(t *testing.T) {
	r := activities.Run{ID: "r"}
	seen := map[string]activities.Rollout{}
	for _, c := range []struct {
		branch         int
		what           activities.Rollout
		dir, turn, ask string
		forks          string
	}{
		{0, activities.Rollout{}, "runs/r/b0/iterations/000000", "turn-1.step", "turn-12.ask", "wave-2.forks"},
		{2, activities.Rollout{Iteration: 12}, "runs/r/b2/iterations/000012", "turn-1.step", "turn-12.ask", "wave-2.forks"},
		{0, activities.Rollout{Iteration: 1, Round: 1}, "runs/r/b0/iterations/000001", "round-2.turn-1.step", "round-2.turn-12.ask", "round-2.wave-2.forks"},
		{0, activities.Rollout{Iteration: 1, Wave: 1}, "runs/r/b0/iterations/000001", "wave-2.turn-1.step", "wave-2.turn-12.ask", "wave-3.forks"},
		{0, activities.Rollout{Iteration: 1, Round: 2, Wave: 3}, "runs/r/b0/iterations/000001", "round-3.wave-4.turn-1.step", "round-3.wave-4.turn-12.ask", "round-3.wave-5.forks"},
		{1, activities.Rollout{Iteration: 3, Evaluation: &activities.EvaluationOf{Suite: "s"}}, "runs/r/b1/evaluations/000003/s", "turn-1.step", "turn-12.ask", "wave-2.forks"},
		{1, activities.Rollout{Iteration: 3, Evaluation: &activities.EvaluationOf{Suite: "s", Apart: "e"}}, "evaluations/e/s", "turn-1.step", "turn-12.ask", "wave-2.forks"},
	} {
		require.Equal(t, c.dir, Dir(r, c.branch, c.what))
		require.Equal(t, []string{c.turn, c.ask, c.forks}, []string{TurnName(c.what, 1, "step"), TurnName(c.what, 12, "ask"), ForksName(c.what)})
		key := c.dir + "/" + c.turn
		require.NotContains(t, seen, key)
		seen[key] = c.what
	}
}

// What is made of a map is in the order of its keys.
func TestSortedKeys(t *testing.T) {
	m := map[string]int{}
	for c := 'z'; c >= 'a'; c-- {
		m[string(c)] = 1
	}
	for range repeats {
		keys := SortedKeys(m)
		require.Len(t, keys, 26)
		require.IsIncreasing(t, keys)
	}
	b, err := Canonical(map[string]any{"b": 1.0, "a": []int{2}})
	require.NoError(t, err)
	require.Equal(t, `{"a":[2],"b":1}`, string(b))
	_, err = Canonical(func() {})
	require.Error(t, err)
	one, err := DigestOf(map[string]int{"a": 1, "b": 2})
	require.NoError(t, err)
	require.Equal(t, "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777", one)
	two, err := DigestOf(map[string]int{"a": 1, "b": 3})
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	_, err = DigestOf(func() {})
	require.Error(t, err)
}
