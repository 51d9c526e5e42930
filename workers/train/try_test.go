package train_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workers/train"
)

// A trial samples the groups of a spec without and with the warm start, with the same figures each time.
func TestTry(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	text := strings.NewReplacer(
		`"warm_start": {"steps": 1, "rows": 4}`, `"warm_start": {"steps": 40, "rows": 8, "learning_rate": 0.01}`,
		`"groups": 2, "group_size": 2`, `"groups": 6, "group_size": 4`,
		`"max_new_tokens": 8`, `"max_new_tokens": 10`,
	).Replace(everything)
	var said strings.Builder
	begin := func(groups int) *train.Trial {
		trial, err := train.New(e, store.NewMemory()).Try(t.Context(), []byte(text), train.TryOptions{Groups: groups, Replies: 3}, func(line string) { fmt.Fprintln(&said, line) })
		require.NoError(t, err)
		require.Equal(t, 40, trial.WarmStart())
		return trial
	}
	sample := func(trial *train.Trial, warmStart int) train.Tried {
		got, err := trial.Sample(t.Context(), warmStart)
		require.NoError(t, err)
		return got
	}
	trial := begin(3)
	plain, warm := sample(trial, 0), sample(trial, 40)
	require.Equal(t, []int{0, 3, 12}, []int{plain.WarmStart, plain.Groups, plain.Trajectories})
	require.Equal(t, []int{40, 3, 12}, []int{warm.WarmStart, warm.Groups, warm.Trajectories})
	require.Greater(t, warm.Valid, plain.Valid, "the warm start teaches the format")
	require.Less(t, warm.Truncated, plain.Truncated)
	require.Contains(t, said.String(), "warm start: 0 of 40 steps are done")
	for _, tried := range []train.Tried{plain, warm} {
		require.Len(t, tried.Replies, 3)
		require.LessOrEqual(t, tried.Tokens, 10.0)
		prompts := map[string]bool{}
		for _, r := range tried.Replies {
			require.True(t, strings.HasSuffix(r.Prompt, "<answer>"), r.Prompt)
			require.LessOrEqual(t, len([]rune(r.Prompt)), 403)
			require.Positive(t, r.Tokens)
			if r.Valid {
				require.NotEmpty(t, r.Actions)
			}
			prompts[r.Prompt] = true
		}
		require.Greater(t, len(prompts), 1, "replies of several groups")
	}
	require.Equal(t, plain, sample(trial, 0))
	more := sample(begin(100), 0)
	require.Equal(t, 6, more.Groups, "no more than the spec has")
}

// A trial of a spec whose rollout searches, keeps values and is one version late is a plain rollout.
func TestTryIsPlain(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	for _, rollout := range []string{`"search": "best_of_n"`, `"keep_values": true, "lag": 1`} {
		if methodstest.Without(rollout) {
			continue
		}
		text := strings.NewReplacer(
			`"environment": {"name": "bandit"}`, `"environment": {"name": "frozenlake", "options": {"slippery": false}}`,
			`"turns": 1`, `"turns": 2, `+rollout,
			`"update": {`, `"update": {"mismatch": {"regime": "decoupled"}, `,
		).Replace(everything)
		trial, err := train.New(e, store.NewMemory()).Try(t.Context(), []byte(text), train.TryOptions{Groups: 4, Replies: 3}, func(string) {})
		require.NoError(t, err)
		got, err := trial.Sample(t.Context(), trial.WarmStart())
		require.NoError(t, err)
		require.Equal(t, 4, got.Trajectories)
		require.Greater(t, got.Turns, 1.0)
	}
}

// A greedy trial selects the same tokens whatever the seed, and its replies have the ids of all their turns.
func TestTryGreedy(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	text := strings.NewReplacer(
		`"environment": {"name": "bandit"}`, `"environment": {"name": "frozenlake", "options": {"slippery": false, "instances": 1}}`,
		`"turns": 1`, `"turns": 2`, `"groups": 2, "group_size": 2`, `"groups": 3, "group_size": 2`,
	).Replace(everything)
	sample := func(o train.TryOptions) train.Tried {
		trial, err := train.New(e, store.NewMemory()).Try(t.Context(), []byte(text), o, func(string) {})
		require.NoError(t, err)
		got, err := trial.Sample(t.Context(), 0)
		require.NoError(t, err)
		return got
	}
	for name, c := range map[string]struct {
		options train.TryOptions
		rows    [][2]int // the groups and members of the replies
	}{
		"greedy":               {train.TryOptions{Groups: 3, Replies: 6, Greedy: true}, [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}},
		"at the temperature":   {train.TryOptions{Groups: 3, Replies: 100}, [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}},
		"replies of fewer":     {train.TryOptions{Groups: 3, Replies: 4}, [][2]int{{0, 0}, {0, 1}, {1, 1}, {2, 0}}},
		"a reply a group":      {train.TryOptions{Groups: 3, Replies: 3}, [][2]int{{0, 0}, {1, 0}, {2, 1}}},
		"a reply of one group": {train.TryOptions{Groups: 1, Replies: 1}, [][2]int{{0, 0}}},
		"no reply":             {train.TryOptions{Groups: 3}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := sample(c.options)
			var rows [][2]int
			replies := map[string]bool{}
			for _, r := range got.Replies {
				rows = append(rows, [2]int{r.Group, r.Member})
				replies[fmt.Sprint(r.Turns[0].Sampled)] = true
				require.Len(t, r.Turns[0].Sampled, r.Tokens)
				for k, turn := range r.Turns[1:] {
					before := append(slices.Clone(r.Turns[k].Context), r.Turns[k].Sampled...)
					require.Equal(t, before, turn.Context[:len(before)], "a context begins with what came before")
					require.NotEmpty(t, turn.Sampled)
				}
			}
			require.Equal(t, c.rows, rows)
			if c.options.Greedy {
				require.Len(t, replies, 1, "one lake, so one reply")
			} else if len(rows) == 6 {
				require.Greater(t, len(replies), 1)
			}
		})
	}
}

// What cannot be tried in one process is refused before anything is computed.
func TestTryRefuses(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	for text, want := range map[string]string{
		`{"environment":{"name":"bandit"},"rollout":{"turns":1},"from":{"run":"other","iteration":3}}`: "iteration 3 of run other",
		`{"environment":{"name":"foreign","options":{"name":"guess"}},"rollout":{"turns":1}}`:          "outside this program",
	} {
		_, err := train.New(e, store.NewMemory()).Try(t.Context(), []byte(text), train.TryOptions{Groups: 4, Replies: 3}, func(string) {})
		require.ErrorIs(t, err, train.ErrTry)
		require.ErrorContains(t, err, want)
	}
	_, err = train.New(e, store.NewMemory()).Try(t.Context(), []byte(`{"environment":{"name":"bandits"}}`), train.TryOptions{Groups: 4}, func(string) {})
	require.ErrorContains(t, err, "environment.name")
}
