package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// repeats is how often a function that writes an artifact is run where its input has ties.
const repeats = 50

// sameBytes requires that a table has the same bytes whenever it is made.
func sameBytes[T any](t *testing.T, rows func() []T) {
	t.Helper()
	var first []byte
	for range repeats {
		b, _, err := tables.Encode(rows())
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		require.Equal(t, first, b)
	}
}

// addressed is an environment whose only legal action names its group, and which shows the group and the member
// of its addresses.
type addressed struct{ name string }

func (a addressed) Name() string           { return a.name }
func (a addressed) Instructions() string   { return "Say the " + a.name }
func (a addressed) Actions() []string      { return nil }
func (a addressed) MaxActions() int        { return 9 }
func (a addressed) MaxActionsPerTurn() int { return 3 }
func (a addressed) Cases() []envs.Episode  { return []envs.Episode{&toldEpisode{env: a}} }
func (a addressed) Reset(instance, chance draw.Address) envs.Episode {
	return &toldEpisode{env: a, group: instance.Group, member: chance.Member}
}

type toldEpisode struct {
	env           addressed
	group, member int64
	taken         int
}

func (e *toldEpisode) Observation() string {
	return fmt.Sprintf("%s %d.%d after %d", e.env.name, e.group, e.member, e.taken)
}
func (e *toldEpisode) Choices() []string                  { return []string{fmt.Sprint(e.env.name, " ", e.group)} }
func (e *toldEpisode) Legal(action string) (string, bool) { return envs.Lookup(e.Choices(), action) }
func (e *toldEpisode) StateKey() string                   { return e.Observation() }
func (e *toldEpisode) Done() bool                         { return false }
func (e *toldEpisode) Success() bool                      { return e.taken > 1 }
func (e *toldEpisode) Step(string) envs.Outcome {
	e.taken++
	return envs.Outcome{Effective: true}
}

// toldTask is two groups of two that play other environments.
func toldTask() *Task {
	return &Task{Groups: 2, Members: 2, Parts: envs.Mixture{{Label: "x", Environment: addressed{"x"}}, {Label: "y", Environment: addressed{"y"}}}, order: []int{0, 1}}
}

// toldRow is a row of a toldTask with the rewards of its turns. Each turn has an action more than the one before.
func toldRow(task *Task, row int32, turnRewards ...float64) episode.TrajectoryRow {
	group := row / 2
	r := episode.TrajectoryRow{Row: row, Group: group, Member: row % 2, Environment: task.Label(int(group) % 2), Rewards: turnRewards, StateKeys: []string{"begin"}}
	name := task.Env(int(group) % 2).Name()
	for k := range turnRewards {
		actions := ""
		for n := range k {
			if n > 0 {
				actions += episode.Separator
			}
			actions += fmt.Sprint(name, " ", group)
		}
		r.Actions, r.Executed = append(r.Actions, actions), append(r.Executed, int32(k))
		r.Penalties, r.Effective, r.Invalid = append(r.Penalties, 0), append(r.Effective, int32(k)), append(r.Invalid, int32(row))
		r.IDs = append(r.IDs, 0, 0)
		r.PromptLengths, r.SampledLengths, r.Restarts = append(r.PromptLengths, 1), append(r.SampledLengths, 1), append(r.Restarts, k == 0)
		r.StateKeys = append(r.StateKeys, fmt.Sprint("after ", k+1))
	}
	return r
}

// newModule is a module with a name of its own.
func newModule(t *testing.T, name, options string) rewards.Module {
	t.Helper()
	m, problems, err := rewards.New(name, []byte(options))
	require.NoError(t, err)
	require.Empty(t, problems)
	return m
}

// toldContext is a context with the given modules and their weights in the spec.
func toldContext(t *testing.T, weights []float64, modules ...rewards.Module) *Context {
	t.Helper()
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	rc := &Context{Train: spec.Train{Seed: 2}, BaseModel: &BaseModel{Tokenizer: tok}, Modules: modules}
	for i, m := range modules {
		rc.Train.Rewards = append(rc.Train.Rewards, spec.Reward{Name: m.Name, Weight: weights[i]})
	}
	return rc
}

// Modules score the rows of all rounds, each row by its own episode. What they give is multiplied by the weight of the
// iteration where it is added, and nowhere else.
func TestReward(t *testing.T) {
	task := toldTask()
	first, gain := newModule(t, "first_attempt", `{}`), newModule(t, "improvement", `{}`)
	rc := toldContext(t, []float64{-1, 10}, first, gain)
	settings := spec.Settings{Weights: map[string]float64{"improvement": 0.5}}
	rows := []episode.TrajectoryRow{
		toldRow(task, 0, 1, 3), toldRow(task, 1, 2), // group 0
		toldRow(task, 2), toldRow(task, 3), // group 1 is left out whole
		toldRow(task, 4, 4, 0, 8), toldRow(task, 5, 5), // group 2, of round 2
		toldRow(task, 6), toldRow(task, 7, 6, 7), // group 3, without its first member
	}
	for _, i := range []int{2, 3, 6} {
		rows[i].Dropped = true
	}
	rows[4].Penalties[2] = -1
	out, err := Reward(rc, settings, task, 1, activities.Rollout{Iteration: 3}, rows, nil, nil)
	require.NoError(t, err)
	require.Nil(t, out.Texts)
	part := func(row, turn int32, component string, weight, value float64) ComponentRow {
		return ComponentRow{Row: row, Turn: turn, Component: component, Weight: weight, Value: value}
	}
	both := func(row, turn int32, first, gain float64) []ComponentRow {
		return []ComponentRow{part(row, turn, "first_attempt", -1, first), part(row, turn, "improvement", .5, gain)}
	}
	var want []ComponentRow
	for _, parts := range [][]ComponentRow{
		both(0, 0, 1, 0), both(0, 1, 0, 2), both(1, 0, 2, 0), both(4, 0, 4, 0), both(4, 1, 0, -4), both(4, 2, 0, 0), both(5, 0, 5, 0), both(7, 0, 6, 0), both(7, 1, 0, 1),
	} {
		want = append(want, parts...)
	}
	require.Equal(t, want, out.Components)
	require.Equal(t, []float64{-4, -2, 0}, rows[4].Added)
	require.Equal(t, []episode.Part{{Name: "first_attempt", Weight: -1, Sum: 4}, {Name: "improvement", Weight: .5, Sum: -4}}, rows[4].Parts, "sums without the weight")
	require.Equal(t, []float64{-1, 1}, rows[0].Added)
	require.Equal(t, 12-1-6.0, rows[4].Return())
	require.Equal(t, 11.0, rows[4].Penalised())
	require.Empty(t, rows[3].Added)
	require.Nil(t, rows[3].Parts)
	for name, want := range map[string]float64{
		// first_attempt: 1, 2, 4, 5, 6; improvement: 2, 0, −4, 0, 1
		"reward/first_attempt/mean": 18.0 / 5, "reward/improvement/mean": -1.0 / 5,
		// returns: 4 − 0, 0, 11 − 6, 0, 13 − 5.5
		"reward/weighted_mean": (4 + 0 + 5 + 0 + 7.5) / 5,
		"attempts/first":       1, // a figure of the module over all episodes: each paid something
	} {
		require.InDelta(t, want, float64(out.Metrics[name]), 1e-12, name)
	}

	// A row that has the actions of another group's instance is not replayed: rows of later rounds have their own.
	wrong := toldRow(task, 4, 1, 1, 1)
	wrong.Actions = toldRow(task, 0, 1, 1, 1).Actions
	rows[4] = wrong
	_, err = Reward(rc, settings, task, 1, activities.Rollout{Iteration: 3}, rows, nil, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "row 4")

	// A spec that asks for nothing has nothing.
	plain := toldRow(task, 0, 1)
	out, err = Reward(&Context{}, settings, task, 1, activities.Rollout{}, []episode.TrajectoryRow{plain}, nil, nil)
	require.NoError(t, err)
	require.Empty(t, out.Metrics)
	require.Nil(t, out.Components)
	rc.Modules = nil
	rc.Train.Diagnostics.Thoughts = true
	out, err = Reward(rc, settings, task, 1, activities.Rollout{}, []episode.TrajectoryRow{plain, toldRow(task, 1, 2)}, nil, nil)
	require.NoError(t, err)
	require.NotEmpty(t, out.Metrics)
	require.NotContains(t, out.Metrics, "reward/weighted_mean", "there is no module")
}

// A module of groups compares the members of a group that are left, in each group of each round.
func TestRewardOfGroups(t *testing.T) {
	task := &Task{Groups: 1, Members: 3, Parts: envs.Mixture{{Label: "x", Environment: addressed{"x"}}}, order: []int{0}}
	row := func(at int32, tokens int32, success bool) episode.TrajectoryRow {
		r := episode.TrajectoryRow{
			Row: at, Group: at / 3, Member: at % 3, Environment: "x", Success: success, Rewards: []float64{0}, Penalties: []float64{0}, Actions: []string{""},
			Executed: []int32{0}, Effective: []int32{0}, Invalid: []int32{0}, IDs: make([]int32, 1+tokens), PromptLengths: []int32{1}, SampledLengths: []int32{tokens}, Restarts: []bool{true}, StateKeys: []string{"a", "b"},
		}
		return r
	}
	rows := []episode.TrajectoryRow{row(0, 2, true), row(1, 6, true), row(2, 4, true), row(3, 100, true), row(4, 10, true), row(5, 30, true)}
	rows[3].Dropped = true
	rc := toldContext(t, []float64{2}, newModule(t, "length", `{}`))
	out, err := Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, rows, nil, nil)
	require.NoError(t, err)
	var values []float64
	var of []int32
	for _, c := range out.Components {
		values, of = append(values, c.Value), append(of, c.Row)
	}
	require.Equal(t, []int32{0, 1, 2, 4, 5}, of)
	require.Equal(t, []float64{.5, -.5, 0, .5, -.5}, values, "from the shortest to the longest of the group")
	require.Equal(t, []float64{1}, rows[0].Added)
	require.Equal(t, []float64{-1}, rows[5].Added)
}

// A judge's verdicts are read by the rows of all rounds.
func TestRewardOfAJudge(t *testing.T) {
	task := toldTask()
	judge := newModule(t, "foreign", `{"name":"judge","components":"right 1, kind 0.25"}`)
	rc := toldContext(t, []float64{2}, judge)
	var rows []episode.TrajectoryRow
	var verdicts Verdicts
	for i := range int32(8) {
		rows = append(rows, toldRow(task, i, 0, 0))
		verdicts = append(verdicts, VerdictRow{Row: i, Asked: i != 3, Components: []string{"right", "kind"}, Values: []float64{float64(i), float64(4 * i)}})
	}
	rows[3].Dropped = true
	out, err := Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, rows, nil, verdicts)
	require.NoError(t, err)
	for i, r := range rows {
		if r.Dropped {
			continue
		}
		require.Equal(t, []float64{0, float64(4 * i)}, r.Added, "row %d: 2 · (right + 0.25 · kind), at the last turn", i)
	}
	require.InDelta(t, (28.0-3)/7, float64(out.Metrics["verdicts/right/mean"]), 1e-12)
	rows[3].Dropped = false
	_, err = Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, rows, nil, verdicts)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "no verdict about row 3")
}

// The values of a judge by turn go to their turns, and there must be one for each turn of the trajectory.
func TestRewardOfAJudgeByTurn(t *testing.T) {
	task := toldTask()
	rc := toldContext(t, []float64{2}, newModule(t, "foreign", `{"name":"judge","level":"turn","components":"right 1, kind 0.25, made_up 0"}`))
	rows := []episode.TrajectoryRow{toldRow(task, 0, 0, 0), toldRow(task, 1, 0)}
	verdict := func(row int32, values ...float64) VerdictRow {
		return VerdictRow{Row: row, Asked: true, Components: []string{"right", "kind", "made_up"}, Values: values}
	}
	verdicts := Verdicts{verdict(0, 1, 2, 4, 8, 1, 0), verdict(1, 3, 12, 1)}
	out, err := Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, rows, nil, verdicts)
	require.NoError(t, err)
	require.Equal(t, []float64{4, 8}, rows[0].Added, "2 · (right + 0.25 · kind), turn by turn")
	require.Equal(t, []float64{12}, rows[1].Added)
	require.Equal(t, canon.Float(2), out.Metrics["verdicts/right/mean"], "of the three turns")
	require.InDelta(t, 2./3, float64(out.Metrics["verdicts/made_up/mean"]), 1e-12, "weighed by 0, it is a metric alone")
	require.Equal(t, canon.Float(6), out.Metrics["reward/foreign/mean"], "(2 + 4 + 6) / 2 trajectories")

	for _, values := range [][]float64{{1, 2, 4}, {1, 2, 4, 8, 1}, {1, 2, 4, 8, 1, 0, 0}, nil} {
		verdicts[0].Values = values
		_, err = Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, rows, nil, verdicts)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("the verdict about row 0 has %d values", len(values)))
		require.ErrorContains(t, err, "want 6")
	}
}

// Where the credit reads criteria, they stand behind their module, are not paid, and come back by turn with their weights.
func TestCriteria(t *testing.T) {
	methodstest.Needs(t, "checklist")
	task := toldTask()
	rc := toldContext(t, []float64{0.5, 3, 2}, newModule(t, "checklist", `{"items":"acted 0.25, one_action 0.75 if acted"}`), newModule(t, "length", ""),
		newModule(t, "foreign", `{"name":"judge","level":"turn","components":"right 1, made_up 0"}`))
	rows := func() []episode.TrajectoryRow {
		return []episode.TrajectoryRow{toldRow(task, 0, 0, 0, 0), toldRow(task, 1, 0)}
	}
	verdict := func(row int32, values ...float64) VerdictRow {
		return VerdictRow{Row: row, Asked: true, Components: []string{"right", "made_up"}, Values: values}
	}
	verdicts := Verdicts{verdict(0, 0, 1, 0, 1, 0, 0), verdict(1, 1, 1)}
	plain := rows()
	before, err := Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, plain, nil, verdicts)
	require.NoError(t, err)
	require.Len(t, before.Components, 4*3, "the credit reads none")
	require.Nil(t, plain[0].Criteria)

	rc.Train.Credit.Algorithm = "checklist"
	scored := rows()
	out, err := Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, scored, nil, verdicts)
	require.NoError(t, err)
	require.Equal(t, before.Metrics, out.Metrics)
	var names []string
	for _, c := range out.Components[:7] {
		names = append(names, c.Component)
	}
	require.Equal(t, []string{"checklist", "checklist/acted", "checklist/one_action", "length", "foreign", "foreign/right", "foreign/made_up"}, names)
	require.Len(t, out.Components, 4*7)
	for i, r := range scored {
		require.Equal(t, plain[i].Added, r.Added)
		require.Equal(t, plain[i].Parts, r.Parts)
	}
	// Turn k has k actions.
	require.Equal(t, [][]float64{{0, 0, 0, 1}, {1, 1, 1, 0}, {1, 0, 0, 0}}, scored[0].Criteria)
	require.Equal(t, [][]float64{{0, 0, 1, 1}}, scored[1].Criteria)
	read := rows()
	require.NoError(t, AddComponents(read, out.Components))
	require.Equal(t, scored, read)

	l := NewCreditInput(read)
	require.NoError(t, l.ByCriteria(rc, spec.Settings{}, read))
	require.Equal(t, []float64{0.125, 0.375, 2, 0}, l.CriteriaWeights, "the module's weight times the criterion's")
	require.Equal(t, []int{-1, 0, -1, -1}, l.CriteriaAfter)
	require.Equal(t, [][]bool{{false, false, false, true}, {true, true, true, false}, {true, false, false, false}}, l.Criteria[0])
	require.Equal(t, [][]bool{{false, false, true, true}}, l.Criteria[1])
	settings := spec.Settings{Weights: map[string]float64{"foreign": 0}}
	l = NewCreditInput(read)
	require.NoError(t, l.ByCriteria(rc, settings, read))
	require.Equal(t, []float64{0.125, 0.375, 0, 0}, l.CriteriaWeights, "a schedule sets the weight")

	require.ErrorIs(t, l.ByCriteria(rc, settings, rows()), store.ErrInvalid)

	// The spec knows which rewards have criteria.
	for _, r := range []spec.Reward{
		{Name: "checklist", Options: []byte(`{}`)}, {Name: "checklist", Options: []byte(`{"level":"turn"}`)}, {Name: "length", Options: []byte(`{}`)},
		{Name: "foreign", Options: []byte(`{"name":"judge"}`)}, {Name: "foreign", Options: []byte(`{"name":"judge","level":"turn"}`)},
	} {
		document := `{"environment":{"name":"frozenlake"},"credit":{"algorithm":"checklist"},"rewards":[{"name":"` + r.Name + `","options":` + string(r.Options) + `}]}`
		_, err := spec.Decode([]byte(document), Known())
		if newModule(t, r.Name, string(r.Options)).Criteria == nil {
			require.ErrorContains(t, err, "criteria", document)
		} else {
			require.NoError(t, err, document)
		}
	}
}

// A row says of its turns what the recorded actions led to: the states around each turn, what was written and how
// long it is.
func TestEpisodeOf(t *testing.T) {
	task := toldTask()
	task.Protocol = envs.Protocol{Think: true}
	rc := toldContext(t, nil)
	r := toldRow(task, 7, 1, 2, 4)
	r.Success = true
	r.IDs, r.PromptLengths, r.SampledLengths = nil, nil, nil
	for _, text := range []string{" one</think><answer>y 3</answer>", " and two</think><answer>y 3 || z</answer>", "no form"} {
		ids := rc.Tokenizer.Encode(text)
		r.IDs = append(append(r.IDs, 0, 0), ids...)
		r.PromptLengths, r.SampledLengths = append(r.PromptLengths, 2), append(r.SampledLengths, int32(len(ids)))
	}
	e, err := episodeOf(rc, task, 0, activities.Rollout{}, r)
	require.NoError(t, err)
	require.Equal(t, "y", e.Environment)
	require.True(t, e.Success)
	require.Len(t, e.Turns, 3)
	for k, want := range []struct {
		thought       string
		actions       []string
		before, after bool
	}{{"one", []string{"y 3"}, false, false}, {"and two", []string{"y 3", "z"}, false, false}, {"", nil, false, true}} {
		turn := e.Turns[k]
		require.Equal(t, want.thought, turn.Reply.Thought)
		require.Equal(t, want.actions, turn.Reply.Actions)
		require.Equal(t, []bool{want.before, want.after}, []bool{turn.Before.Success, turn.After.Success}, "turn %d", k)
		require.Equal(t, []int{k, k, 7, int(r.SampledLengths[k])}, []int{turn.Executed, turn.Effective, turn.Invalid, turn.Tokens})
		require.Equal(t, []float64{1, 2, 4}[k], turn.Reward)
		require.Equal(t, task.Protocol.ThoughtTokens(rc.Tokenizer, rc.Tokenizer.Encode([]string{" one</think><answer>y 3</answer>", " and two</think><answer>y 3 || z</answer>", "no form"}[k])), turn.Thought)
		require.Zero(t, turn.Calls)
	}

	// Calls of tools are those of the executed actions, turn by turn.
	tools, err := envs.New("countdown", []byte(`{"calculator":4}`))
	require.NoError(t, err)
	task.Parts[1].Environment = tools
	r = toldRow(task, 7, 0, 0, 0)
	r.Actions = []string{"calculate 1+2 || calculate ?", "", "calculate 3"}
	e, err = episodeOf(rc, task, 0, activities.Rollout{}, r)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 0, 0, 1, 1}, []int{e.Turns[0].Calls, e.Turns[0].ValidCalls, e.Turns[1].Calls, e.Turns[1].ValidCalls, e.Turns[2].Calls, e.Turns[2].ValidCalls})
}

// Components are added to the turns and rows that they name, with their weight; their parts are sums without it, by the
// module's name and not by its place.
func TestAddComponents(t *testing.T) {
	rows := func() []episode.TrajectoryRow {
		return []episode.TrajectoryRow{{Row: 4, PromptLengths: make([]int32, 2), Added: []float64{9, 9}, Parts: []episode.Part{{Name: "old", Weight: 1, Sum: 1}}}, {Row: 5}, {Row: 6, PromptLengths: make([]int32, 1)}}
	}
	got := rows()
	require.NoError(t, AddComponents(got, []ComponentRow{
		{4, 0, "a", 2, 3}, {4, 0, "b", -1, 5}, {4, 1, "b", -1, 7}, {4, 1, "a", 2, 11}, {6, 0, "b", -1, 13},
	}))
	require.Equal(t, []float64{2*3 - 5, 2*11 - 7}, got[0].Added, "what was there before is gone")
	require.Equal(t, []episode.Part{{Name: "a", Weight: 2, Sum: 14}, {Name: "b", Weight: -1, Sum: 12}}, got[0].Parts)
	require.Equal(t, []float64{}, got[1].Added)
	require.Nil(t, got[1].Parts)
	require.Equal(t, []float64{-13}, got[2].Added)
	require.Equal(t, []episode.Part{{Name: "b", Weight: -1, Sum: 13}}, got[2].Parts)
	for says, bad := range map[string]ComponentRow{
		"component a of row 4 is of turn 3, and the row has 2": {4, 2, "a", 1, 1}, "component a of row 4 is of turn 0, and the row has 2": {4, -1, "a", 1, 1},
		"component a of row 5 is of turn 1, and the row has 0": {5, 0, "a", 1, 1}, "component a of row 7: no such row": {7, 0, "a", 1, 1}, "component a of row 3: no such row": {3, 0, "a", 1, 1},
	} {
		err := AddComponents(rows(), []ComponentRow{bad})
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

// saying is an episode whose turns say something of the state.
func saying(texts ...[2]string) (e rewards.Episode) {
	for _, text := range texts {
		e.Turns = append(e.Turns, rewards.Turn{Reply: envs.Reply{Thought: "<observation>" + text[0] + "</observation><prediction>" + text[1] + "</prediction>"}})
	}
	return e
}

// The most frequent texts of each tag are kept, and of equally frequent ones those that come first in the alphabet:
// always the same.
func TestFrequentTexts(t *testing.T) {
	m := rewards.Module{Name: "state", Frequent: 3}
	episodes := []rewards.Episode{
		saying([2]string{"d", "z"}, [2]string{"c", "z"}), saying([2]string{"b", "y"}), {Turns: []rewards.Turn{{Reply: envs.Reply{Thought: "nothing"}}}},
		saying([2]string{"a", "y"}, [2]string{"d", "x"}), saying([2]string{"e", "w"}), {},
	}
	sameBytes(t, func() []TextRow {
		got := frequentTexts(m, episodes)
		require.Equal(t, []TextRow{
			{"state", "observation", "d", 2}, {"state", "observation", "a", 1}, {"state", "observation", "b", 1},
			{"state", "prediction", "y", 2}, {"state", "prediction", "z", 2}, {"state", "prediction", "w", 1},
		}, got)
		return got
	})
	m.Frequent = 5
	require.Len(t, frequentTexts(m, episodes), 5+4)
	m.Frequent = 1
	require.Equal(t, []TextRow{{"state", "observation", "d", 2}, {"state", "prediction", "y", 2}}, frequentTexts(m, episodes))
	require.Empty(t, frequentTexts(m, nil))
}

// Two modules that read the same texts keep them apart by their names: what one found frequent is nothing to the
// other.
func TestFrequentTextsOfTwoModules(t *testing.T) {
	lake, err := envs.New("frozenlake", []byte(`{"size":2,"slippery":false}`))
	require.NoError(t, err)
	task := &Task{Groups: 1, Members: 2, Protocol: envs.Protocol{Think: true}, Parts: envs.Mixture{{Label: "lake", Environment: lake}}, order: []int{0}}
	one := newModule(t, "state", `{}`)
	other := one
	other.Name = "other"
	rc := toldContext(t, []float64{1, 1}, one, other)
	rc.Train.Seed = 5
	const claim = "goal below right"
	var rows []episode.TrajectoryRow
	for i := range int32(2) {
		ids := rc.Tokenizer.Encode("<observation>" + claim + "</observation><prediction>" + claim + "</prediction></think><answer>x</answer>")
		rows = append(rows, episode.TrajectoryRow{
			Row: i, Member: i, Environment: "lake", IDs: append([]int32{0}, ids...), PromptLengths: []int32{1}, SampledLengths: []int32{int32(len(ids))}, Restarts: []bool{true},
			StateKeys: []string{"a", "b"}, Rewards: []float64{0}, Penalties: []float64{0}, Actions: []string{""}, Executed: []int32{0}, Effective: []int32{0}, Invalid: []int32{1},
		})
	}
	values := func(past ...TextRow) (out []float64) {
		got, err := Reward(rc, spec.Settings{}, task, 0, activities.Rollout{}, rows, past, nil)
		require.NoError(t, err)
		require.Equal(t, []TextRow{
			{"state", "observation", claim, 2}, {"state", "prediction", claim, 2}, {"other", "observation", claim, 2}, {"other", "prediction", claim, 2},
		}, got.Texts)
		require.Equal(t, "state", got.Components[0].Component)
		return append(out, got.Components[0].Value, got.Components[1].Value, got.Components[2].Value, got.Components[3].Value)
	}
	free := values()
	require.Equal(t, free[0], free[1])
	repeated := values(TextRow{"state", "observation", claim, 1})
	require.Less(t, repeated[0], free[0])
	require.Equal(t, []float64{free[1], repeated[0], free[3]}, repeated[1:], "the other module heard nothing, and both rows said it")
	require.Equal(t, []float64{free[0], repeated[0]}, values(TextRow{"other", "observation", claim, 1})[:2])
	require.Equal(t, free, values(TextRow{"third", "observation", claim, 1}, TextRow{"state", "prediction", "other words", 1}))
	require.Less(t, values(TextRow{"state", "prediction", claim, 1})[0], free[0])
}

// Trajectories are read with the components that belong to them.
func TestReadTrajectories(t *testing.T) {
	s := store.NewMemory()
	rows := []episode.TrajectoryRow{toldRow(toldTask(), 0, 1, 2), toldRow(toldTask(), 5, 4)}
	trajectories, components := episodetest.Put(t, s, rows), episodetest.Put(t, s, []ComponentRow{{0, 1, "a", 2, 3}, {5, 0, "a", 2, -1}})
	got, err := ReadTrajectories(t.Context(), s, trajectories, nil)
	require.NoError(t, err)
	require.Nil(t, got[0].Added)
	got, err = ReadTrajectories(t.Context(), s, trajectories, &components)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0, 6}, {-2}}, [][]float64{got[0].Added, got[1].Added})
	gone := components
	gone.Key = "runs/r/nothing"
	_, err = ReadTrajectories(t.Context(), s, gone, nil)
	require.ErrorContains(t, err, "trajectories: ")
	_, err = ReadTrajectories(t.Context(), s, trajectories, &gone)
	require.ErrorContains(t, err, "components: ")
	require.ErrorIs(t, err, store.ErrNotFound)
	none, err := SideTable[TextRow](t.Context(), s, nil, "texts")
	require.NoError(t, err)
	require.Nil(t, none)
}
