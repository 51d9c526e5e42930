package run

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
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

// mixed is a run of a mixture of two, in groups of two, with two suites.
const mixed = `{"seed": 11, "environment": {"mixture": [{"label": "a", "name": "bandit", "share": 2}, {"label": "b", "name": "frozenlake"}]},
	"rollout": {"groups": 4, "group_size": 2, "turns": 3, "max_new_tokens": 20, "prompt_tokens": [100, 180, 230]}, "update": {"micro_batch": 8},
	"evaluation": {"suites": [{"name": "first", "environment": {"name": "bandit"}, "instances": 2, "samples": 3, "seed": 5},
		{"name": "second", "environment": {"mixture": [{"label": "b", "name": "frozenlake"}, {"label": "a", "name": "bandit"}]}, "instances": 3, "samples": 1, "turns": 2, "max_new_tokens": 9}]}}`

// Each iteration plays its own groups: the order of a mixture continues from one to the next, and begins again after 64.
func TestTasksOfIterations(t *testing.T) {
	rc := newRun(t, mixed)
	all := rc.Training.Parts.Order(64 * 4)
	count := map[string]int{}
	for iteration := range 64 {
		task, err := rc.Task(activities.Rollout{Iteration: iteration})
		require.NoError(t, err)
		require.Len(t, task.order, 4)
		for g := range 4 {
			label := task.Label(g)
			require.Equal(t, []string{"a", "b"}[all[4*iteration+g]], label)
			require.Same(t, rc.Training.Parts[all[4*iteration+g]].Environment, task.Env(g))
			count[label]++
		}
		again, err := rc.Task(activities.Rollout{Iteration: iteration + 64})
		require.NoError(t, err)
		require.Equal(t, task.order, again.order)
	}
	require.InDelta(t, 2*count["b"], count["a"], 3, "twice as many of the first")
	zero, err := rc.Task(activities.Rollout{})
	require.NoError(t, err)
	one, err := rc.Task(activities.Rollout{Iteration: 1})
	require.NoError(t, err)
	require.NotEqual(t, zero.order, one.order, "four groups are no whole round of three")
	require.Equal(t, []int{8, 4, 2}, []int{zero.Rows(), zero.Groups, zero.Members})

	for name, want := range map[string]struct{ groups, members, rows, turns, tokens int }{"first": {2, 3, 6, 1, 20}, "second": {3, 1, 3, 2, 9}} {
		for _, iteration := range []int{0, 7} {
			suite, err := rc.Task(activities.Rollout{Iteration: iteration, Evaluation: &activities.EvaluationOf{Suite: name}})
			require.NoError(t, err)
			require.Equal(t, name, suite.Suite.Name)
			require.Equal(t, []int{want.groups, want.members, want.members, want.rows, want.tokens}, []int{suite.Groups, suite.Members, suite.Slots, suite.Rows(), suite.MaxNewTokens})
			require.Len(t, suite.order, want.groups, "the same in every iteration")
			require.Equal(t, search.Trees{Trees: want.members}, suite.Trees)
			require.Equal(t, search.Breadth{}, suite.Breadth)
			require.Zero(t, suite.OverlongCache)
		}
	}
	_, err = rc.Task(activities.Rollout{Evaluation: &activities.EvaluationOf{Suite: "third"}})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// The shares of the environments in the transcripts of a step add up to them, over the steps to the whole shares.
func TestShares(t *testing.T) {
	rc := newRun(t, mixed)
	s := rc.Training
	sums := []int{0, 0}
	for step := range 30 {
		shares := s.Shares(step, 2)
		require.Equal(t, 2, shares[0]+shares[1])
		sums[0], sums[1] = sums[0]+shares[0], sums[1]+shares[1]
	}
	require.Equal(t, []int{40, 20}, sums)
	require.Equal(t, s.Shares(3, 5), s.Shares(3+256, 5))
	require.Equal(t, []int{4, 2}, s.Shares(7, 6))
	first, second, third := s.Shares(0, 1), s.Shares(1, 1), s.Shares(2, 1)
	require.Equal(t, []int{2, 1}, []int{first[0] + second[0] + third[0], first[1] + second[1] + third[1]}, "a step continues where the one before ended")
}

// Which slots of a group sample in a turn, where a search looks ahead.
func TestSamples(t *testing.T) {
	ahead := &Task{Breadth: search.Breadth{Width: 1, Candidates: 2, Depth: 3}}
	for turn, want := range [][]int{1: {0, 4}, 2: {0, 2, 4, 6}, 3: {0, 1, 2, 3, 4, 5, 6, 7}, 4: {0, 1, 2, 3, 4, 5, 6, 7}} {
		if turn == 0 {
			continue
		}
		var got []int
		for slot := range 8 {
			if ahead.Samples(slot, turn) {
				got = append(got, slot)
			}
		}
		require.Equal(t, want, got, "turn %d", turn)
	}
	require.True(t, (&Task{}).Samples(3, 1))
}

// The draws of a row have an address of their own: by the run's seed, the branch, the iteration, the group and the
// member. The groups of a round follow those of the round before, and members share their instance.
func TestAddresses(t *testing.T) {
	rc := &Context{Train: spec.Train{Seed: 11}}
	task := &Task{Groups: 3}
	base := draw.Address{Seed: 11, Branch: 2, Iteration: 5, Group: 1}
	with := func(purpose draw.Purpose, group, member int64) draw.Address {
		a := base
		a.Purpose, a.Group, a.Member = purpose, group, member
		return a
	}
	r := activities.Rollout{Iteration: 5}
	require.Equal(t, rowAddress{Instance: with("instance", 1, 0), Chance: with("chance", 1, 4), Sample: with("sample", 1, 4)}, rc.Address(task, 2, r, 1, 4))
	r.Round = 2
	require.Equal(t, rowAddress{Instance: with("instance", 7, 0), Chance: with("chance", 7, 4), Sample: with("sample", 7, 4)}, rc.Address(task, 2, r, 1, 4))
	require.Equal(t, rc.Address(task, 2, activities.Rollout{Iteration: 5}, 7, 4), rc.Address(task, 2, r, 1, 4), "rows of all rounds have the groups' numbers")
	r.Wave = 1
	require.Equal(t, rc.Address(task, 2, activities.Rollout{Iteration: 5, Round: 2}, 1, 4), rc.Address(task, 2, r, 1, 4), "waves have members of their own")

	require.Equal(t, draw.Address{Seed: 11, Purpose: draw.Fork, Branch: 2, Iteration: 5}, rc.Drawn(draw.Fork, 2, 5))
	rc.Train.CommonRandom = true
	require.Equal(t, draw.Address{Seed: 11, Purpose: draw.Fork, Iteration: 5}, rc.Drawn(draw.Fork, 2, 5), "branches share their draws")
	require.Zero(t, rc.Address(task, 2, r, 1, 4).Sample.Branch)
	rc.Train.CommonRandom = false

	// A suite's come from it alone.
	suite := &Task{Groups: 3, Suite: &spec.Suite{Seed: 7}}
	want := rc.Address(suite, 0, activities.Rollout{}, 2, 1)
	require.Equal(t, draw.Address{Seed: 7, Purpose: "evaluation/instance", Group: 2}, want.Instance)
	require.Equal(t, draw.Address{Seed: 7, Purpose: "evaluation/chance", Group: 2, Member: 1}, want.Chance)
	require.Equal(t, draw.Address{Seed: 7, Purpose: "evaluation/sample", Group: 2, Member: 1}, want.Sample)
	rc.Train.Seed = 12
	require.Equal(t, want, rc.Address(suite, 3, activities.Rollout{Iteration: 9}, 2, 1))
}

// The shapes of a turn's programs follow from the spec: those of Generate from the task, those of Score and Update
// from the run's longest row.
func TestShapes(t *testing.T) {
	rc := newRun(t, mixed)
	rc.Train.Update.MicroBatch, rc.Train.Update.Widths, rc.Train.Update.Shards = 4, 3, 2
	rc.Train.Policy.ComputeDtype = "bfloat16"
	rc.Train.Rollout.ChunkTokens, rc.Train.Rollout.BlockRows, rc.Train.Rollout.PassRows = 5, 2, 0
	want := model.Shapes{
		GenerateRows: 8, BlockRows: 2, MicroBatch: 4, PromptTokens: 100, MaxNewTokens: 20, ChunkTokens: 5, Sequence: 256, Narrower: [2]int{128, 64}, ComputeDtype: "bfloat16",
		Exact: true, Sharded: true, Loss: rc.Train.Update.Terms(3),
	}
	require.Equal(t, want, rc.Shapes(rc.Training, 1))
	was := rc.Train.Credit.Algorithm
	rc.Train.Credit.Algorithm = "optimal_token_baseline"
	require.Equal(t, methodstest.There("optimal_token_baseline"), rc.Shapes(rc.Training, 1).SumSquares)
	rc.Train.Credit.Algorithm = was
	want.PromptTokens = 230
	require.Equal(t, want, rc.Shapes(rc.Training, 3))
	rc.Train.Rollout.PassRows = 6
	require.Equal(t, 6, rc.Shapes(rc.Training, 1).GenerateRows)
	suite := rc.Shapes(rc.Suites[1], 2)
	require.Equal(t, []int{3, rc.Suites[1].Widths[1], 9, 256}, []int{suite.GenerateRows, suite.PromptTokens, suite.MaxNewTokens, suite.Sequence})
	rc.Train.Update.Shards, rc.Train.Update.Recompute = 1, spec.RecomputeNever
	require.False(t, rc.Shapes(rc.Training, 1).Sharded)
	require.True(t, rc.Shapes(rc.Training, 1).Keep)
	for tokens, sequence := range map[int]int{9: 240, 10: 240, 11: 256, 26: 256, 27: 272} {
		rc.Training.MaxNewTokens = tokens
		require.Equal(t, sequence, rc.Shapes(rc.Training, 1).Sequence, "230 and %d", tokens)
	}
	rc.Training.MaxNewTokens = 20

	// Keys and values that are kept are appended to: from the width of the turn before.
	require.False(t, rc.Keeps(rc.Training))
	require.Zero(t, rc.Shapes(rc.Training, 2).Append)
	rc.Train.Rollout.KeepValues = true
	require.True(t, rc.Keeps(rc.Training))
	require.False(t, rc.Keeps(rc.Suites[1]))
	require.False(t, rc.Keeps(&Task{Turns: 1}))
	first, second := rc.Shapes(rc.Training, 1).Append, rc.Shapes(rc.Training, 2).Append
	require.Equal(t, []int{230, 0, 0}, []int{first.Widest, first.Before, first.Tokens})
	require.Equal(t, []int{230, 100, 80}, []int{second.Widest, second.Before, second.Tokens})

	rc.Train.Rollout.Prefill = spec.PrefillGroups
	require.Equal(t, rc.Train.Rollout.SharedPrompts(8, 2), rc.Shapes(rc.Training, 1).SharedPrompts)
	require.Positive(t, rc.Shapes(rc.Training, 1).SharedPrompts)
	require.Zero(t, rc.Shapes(rc.Training, 2).SharedPrompts, "a first turn alone")
}

// Widths that a spec leaves out are filled in, for the run and each suite by itself; those that it has stay. A
// mixture needs those of its widest part.
func TestWithWidths(t *testing.T) {
	read := func(environment, rollout, suite string) spec.Train {
		train, err := spec.Decode([]byte(`{"environment": `+environment+`, "rollout": {"turns": 2, "max_new_tokens": 20`+rollout+`}, "evaluation": {"suites": [
			{"name": "first", "environment": {"name": "bandit"}, "turns": 1`+suite+`}, {"name": "second", "environment": {"name": "frozenlake"}, "turns": 2}]}}`), Known())
		require.NoError(t, err)
		return train
	}
	const lake, arms = `{"name": "frozenlake"}`, `{"name": "bandit"}`
	both := read(`{"mixture": [{"label": "a", "name": "bandit"}, {"label": "b", "name": "frozenlake"}]}`, "", "")
	got, err := WithWidths(both, nil)
	require.NoError(t, err)
	require.Nil(t, both.Evaluation.Suites[0].PromptTokens, "the spec that was given is as before")
	widths := func(environment string) []int {
		out, err := WithWidths(read(environment, "", ""), nil)
		require.NoError(t, err)
		return out.Rollout.PromptTokens
	}
	a, b := widths(arms), widths(lake)
	require.NotEqual(t, a, b)
	require.Equal(t, []int{max(a[0], b[0]), max(a[1], b[1])}, got.Rollout.PromptTokens)
	require.Len(t, got.Evaluation.Suites[0].PromptTokens, 1)
	require.Equal(t, b, got.Evaluation.Suites[1].PromptTokens)
	require.Equal(t, a[0], got.Evaluation.Suites[0].PromptTokens[0])

	got, err = WithWidths(read(lake, `, "prompt_tokens": [300, 400]`, `, "prompt_tokens": [222]`), nil)
	require.NoError(t, err)
	require.Equal(t, []int{300, 400}, got.Rollout.PromptTokens)
	require.Equal(t, []int{222}, got.Evaluation.Suites[0].PromptTokens)
	require.Equal(t, b, got.Evaluation.Suites[1].PromptTokens)

	// Another tokenizer needs other widths: that of the files.
	files := map[string][]byte{}
	for _, name := range SmallFiles {
		content, err := os.ReadFile("../../model/testdata/llama-tiny/" + name)
		if err == nil {
			files[name] = content
		}
	}
	other, err := WithWidths(read(lake, "", ""), files)
	require.NoError(t, err)
	require.NotEqual(t, b, other.Rollout.PromptTokens)
	require.Equal(t, starter.First, vocabulary(spec.Policy{}))
	require.Equal(t, starter.Second, vocabulary(spec.Policy{Starter: &spec.Starter{Tokenizer: 2}}))

	_, err = WithWidths(read(lake, "", ""), map[string][]byte{})
	require.ErrorIs(t, err, activities.ErrModelInvalid)
	bad := read(lake, "", "")
	bad.Environment.Name = "nowhere"
	_, err = WithWidths(bad, nil)
	require.ErrorContains(t, err, "environment nowhere")
	bad = read(lake, "", "")
	bad.Evaluation.Suites[1].Environment.Name = "nowhere"
	_, err = WithWidths(bad, nil)
	require.ErrorContains(t, err, "suite second: environment ")
	bad = read(lake, "", "")
	bad.Policy.ChatTemplateKwargs = []byte(`[]`)
	_, err = WithWidths(bad, nil)
	require.ErrorContains(t, err, "policy.chat_template_kwargs")
}
