package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// An answer is recorded and read back as it was.
func TestRecordedAnswers(t *testing.T) {
	want := foreign.Answer{
		Observation: "Higher.", Choices: []string{"1", "2"}, Chain: "c0ffee", Invalid: 2, Done: true, Success: true,
		Steps: []foreign.Step{
			{Action: "4", Reward: -0.1, RewardText: "-0.10", Text: "no", Effective: true, Observation: "Lower."},
			{Action: "5", Reward: 1, RewardText: "1", Observation: "Higher."},
		},
	}
	r := AnswerRow{Row: 3, Group: 1, Member: 1, Asked: true, Instance: "17", Chance: "4", Next: []string{"4", "x", "5"}}
	r.Record(want)
	require.Equal(t, AnswerRow{
		Row: 3, Group: 1, Member: 1, Asked: true, Instance: "17", Chance: "4", Next: []string{"4", "x", "5"}, Observation: "Higher.", Choices: []string{"1", "2"},
		Actions: []string{"4", "5"}, Rewards: []string{"-0.10", "1"}, Texts: []string{"no", ""}, Effective: []bool{true, false}, Observations: []string{"Lower.", "Higher."},
		Invalid: 2, Done: true, Success: true, Chain: "c0ffee",
	}, r)
	got, err := r.Answer()
	require.NoError(t, err)
	require.Equal(t, want, got)

	// An error replaces nothing but what it says, and a later answer replaces everything.
	r.Record(foreign.Answer{Err: fmt.Errorf("%w: division by zero", foreign.ErrBroken)})
	require.Equal(t, []string{"4", "5"}, r.Actions)
	got, err = r.Answer()
	require.NoError(t, err)
	require.ErrorIs(t, got.Err, foreign.ErrBroken)
	require.ErrorContains(t, got.Err, "division by zero")
	r.Record(foreign.Answer{Observation: "Guess.", Chain: "1"})
	require.Equal(t, AnswerRow{Row: 3, Group: 1, Member: 1, Asked: true, Instance: "17", Chance: "4", Next: []string{"4", "x", "5"}, Observation: "Guess.", Chain: "1"}, r)
}

// Columns that do not fit each other are refused.
func TestAnswersThatDoNotFit(t *testing.T) {
	for name, change := range map[string]func(*AnswerRow){
		"fewer rewards":      func(r *AnswerRow) { r.Rewards = nil },
		"fewer texts":        func(r *AnswerRow) { r.Texts = nil },
		"fewer effects":      func(r *AnswerRow) { r.Effective = nil },
		"fewer observations": func(r *AnswerRow) { r.Observations = nil },
		"more rewards":       func(r *AnswerRow) { r.Rewards = append(r.Rewards, "1") },
		"no number":          func(r *AnswerRow) { r.Rewards = []string{"much"} },
	} {
		r := AnswerRow{Row: 6, Actions: []string{"1"}, Rewards: []string{"1"}, Texts: []string{""}, Effective: []bool{true}, Observations: []string{""}}
		_, err := r.Answer()
		require.NoError(t, err)
		change(&r)
		_, err = r.Answer()
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, "answer of row 6", name)
	}
}

// chancy is a chance for the tests of redraws.
var chancy = draw.Address{Seed: 5, Purpose: draw.Chance, Iteration: 2, Group: 3, Member: 1}

// Each redraw of an episode has a chance of its own, by its address and by its name, and the name says the
// first chance and how often.
func TestRedraws(t *testing.T) {
	require.Equal(t, chancy, Redrawn(chancy, 0))
	numbers, names := map[uint64]bool{}, map[string]bool{}
	for times := range 4 {
		a := Redrawn(chancy, times)
		numbers[foreign.Number(a)] = true
		name := ChanceName(chancy, times)
		names[name] = true
		chance, n, err := readChance(name)
		require.NoError(t, err)
		require.Equal(t, times, n)
		require.Equal(t, foreign.Number(chancy), chance, "the first one")
		again, err := AnswerRow{Chance: name}.Redraws()
		require.NoError(t, err)
		require.Equal(t, times, again)
	}
	require.Len(t, numbers, 4)
	require.Len(t, names, 4)
	require.Equal(t, draw.Purpose("chance/redraw/2"), Redrawn(chancy, 2).Purpose)
	require.Equal(t, fmt.Sprint(foreign.Number(chancy), "/redraw/2"), ChanceName(chancy, 2))
	require.Equal(t, fmt.Sprint(foreign.Number(chancy)), ChanceName(chancy, 0))
	for _, bad := range []string{"", "x", "-1", "1/redraw/", "1/redraw/x", "/redraw/1", "9223372036854775808"} {
		_, _, err := readChance(bad)
		require.ErrorIs(t, err, store.ErrInvalid, bad)
	}
	chance, _, err := readChance("9223372036854775807")
	require.NoError(t, err)
	require.EqualValues(t, 1<<63-1, chance)
}

// answersOf is a round of four episodes: the second breaks in turn 2, after a redraw at the beginning; the third
// is of another environment; the fourth breaks at the beginning, and the first is drawn again in turn 1.
func answersOf() Answers {
	row := func(row int32, asked bool, chance, broken string) AnswerRow {
		return AnswerRow{Row: row, Group: row / 2, Member: row % 2, Asked: asked, Instance: "1", Chance: chance, Broken: broken, Observation: fmt.Sprint("state ", row)}
	}
	return Answers{
		Opening: []AnswerRow{row(0, true, "10", ""), row(1, true, "11/redraw/1", ""), row(2, false, "", ""), row(3, true, "13/redraw/2", "no server")},
		Turns: [][]AnswerRow{
			{row(0, true, "10/redraw/1", ""), row(1, true, "11/redraw/1", ""), row(2, false, "", "padding"), row(3, false, "", "")},
			{row(0, false, "", ""), row(1, true, "11/redraw/1", "division by zero"), row(2, false, "", ""), row(3, false, "", "")},
		},
	}
}

// Of each episode the newest answer counts, with the turn that it is of.
func TestLastAnswer(t *testing.T) {
	a := answersOf()
	for row, want := range []struct {
		turn   int
		chance string
	}{{1, "10/redraw/1"}, {2, "11/redraw/1"}, {0, ""}, {0, "13/redraw/2"}} {
		last, turn := a.Last(row)
		require.Equal(t, want.turn, turn)
		if want.chance == "" {
			require.Nil(t, last)
		} else {
			require.Equal(t, want.chance, last.Chance)
			require.EqualValues(t, row, last.Row)
		}
	}
	last, _ := a.Last(4)
	require.Nil(t, last, "there is no such row")
	last, turn := Answers{Opening: a.Opening}.Last(1)
	require.Equal(t, 0, turn)
	require.Empty(t, last.Broken)
}

// What broke is told by the rows of its round: those of a later one follow the rows of the rounds before.
func TestBrokenOfRounds(t *testing.T) {
	want := func(first int32) []BrokenRow {
		return []BrokenRow{
			{Row: first + 1, Turn: 2, Message: "division by zero", Question: "instance 1, asked []"},
			{Row: first + 3, Turn: 0, Message: "no server", Question: "instance 1, at its beginning"}}
	}
	a := answersOf()
	require.Equal(t, want(0), a.Broken())
	require.Equal(t, want(0), a.BrokenOf(0))
	require.Equal(t, want(4), a.BrokenOf(4))
	require.Equal(t, want(8), a.BrokenOf(8))
	require.Equal(t, want(0), a.Broken(), "the answers keep their rows")
	require.Nil(t, Answers{}.BrokenOf(4))
	require.Equal(t, 1, a.Redrawn(), "those that broke in the end are broken")
	require.Equal(t, 1, Answers{Opening: a.Opening}.Redrawn())
	require.Equal(t, 0, Answers{}.Redrawn())
}

// Answers are read turn by turn, each about the rows of the beginning.
func TestReadAnswers(t *testing.T) {
	s := store.NewMemory()
	a := answersOf()
	opening, first, second := episodetest.Put(t, s, a.Opening), episodetest.Put(t, s, a.Turns[0]), episodetest.Put(t, s, a.Turns[1])
	got, err := ReadAnswers(t.Context(), s, &opening, []*store.Ref{&first, &second})
	require.NoError(t, err)
	require.Equal(t, a.Broken(), got.Broken())
	require.Len(t, got.Turns, 2)
	require.Equal(t, "10/redraw/1", got.Turns[0][0].Chance)
	require.Equal(t, "division by zero", got.Turns[1][1].Broken)
	again, err := ReadRound(t.Context(), s, []store.TurnRefs{{Round: 1, Opening: &opening, Answers: &first}, {Round: 1, Answers: &second}})
	require.NoError(t, err)
	require.Equal(t, got, again)

	none, err := ReadAnswers(t.Context(), s, nil, []*store.Ref{nil, nil})
	require.NoError(t, err)
	require.Equal(t, Answers{}, none)
	none, err = ReadRound(t.Context(), s, nil)
	require.NoError(t, err)
	require.Equal(t, Answers{}, none)
	_, err = ReadAnswers(t.Context(), s, &opening, []*store.Ref{&first, nil})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "turn 2 has no answers")
	short := episodetest.Put(t, s, a.Turns[1][:3])
	_, err = ReadAnswers(t.Context(), s, &opening, []*store.Ref{&first, &short})
	require.ErrorContains(t, err, "turn 2 has 3 answers, the beginning 4")
	gone := first
	gone.Key = "runs/r/nothing"
	_, err = ReadAnswers(t.Context(), s, &gone, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = ReadAnswers(t.Context(), s, &opening, []*store.Ref{&first, &gone})
	require.ErrorContains(t, err, "in turn 2")
}

// game is a foreign environment that has described itself.
func game(t *testing.T) envs.Environment {
	t.Helper()
	env, err := envs.New(foreign.Name, []byte(guessing))
	require.NoError(t, err)
	return env
}

// The answers of all rounds are in one recording, each episode by its instance and its first chance. The other
// environments of a mixture stay as they are, and so does the task itself.
func TestRecordedTask(t *testing.T) {
	own, err := envs.New("bandit", nil)
	require.NoError(t, err)
	rc := &Context{Train: spec.Train{Seed: 3}}
	task := &Task{Groups: 2, Members: 2, Parts: envs.Mixture{{Label: "game", Environment: game(t)}, {Label: "bandit", Environment: own}}, order: []int{0, 1}}
	require.True(t, task.Foreign())
	require.False(t, (&Task{Parts: task.Parts[1:]}).Foreign())
	of := func(round int) Answers {
		var out Answers
		var turn []AnswerRow
		for i := range 4 {
			r := AnswerRow{Row: int32(i), Group: int32(i / 2), Member: int32(i % 2), Asked: i < 2}
			answer := r
			if r.Asked {
				a := rc.Address(task, 1, activities.Rollout{Iteration: 4, Round: round}, i/2, i%2)
				r.Instance, r.Chance = fmt.Sprint(foreign.Number(a.Instance)), ChanceName(a.Chance, i)
				answer = r
				r.Record(foreign.Answer{Observation: fmt.Sprint("begin ", round, i), Chain: "0"})
				answer.Record(foreign.Answer{Observation: fmt.Sprint("end ", round, i), Chain: "1", Done: true, Success: i == 1,
					Steps: []foreign.Step{{Action: fmt.Sprint(i + 1), Reward: float64(10*round + i), RewardText: fmt.Sprint(10*round + i), Observation: fmt.Sprint("end ", round, i)}}})
			}
			out.Opening, turn = append(out.Opening, r), append(turn, answer)
		}
		out.Turns = [][]AnswerRow{turn}
		return out
	}
	recorded, err := task.Recorded(of(0), of(1))
	require.NoError(t, err)
	require.Same(t, own, recorded.Parts[1].Environment)
	require.NotSame(t, task.Parts[0].Environment, recorded.Parts[0].Environment)
	for round := range 2 {
		for member := range 2 {
			a := rc.Address(task, 1, activities.Rollout{Iteration: 4, Round: round}, 0, member)
			episode := recorded.Env(0).Reset(a.Instance, a.Chance)
			require.Equal(t, fmt.Sprint("begin ", round, member), episode.Observation())
			outcome := episode.Step(fmt.Sprint(member + 1))
			require.Equal(t, float64(10*round+member), outcome.Reward, "round %d, member %d", round, member)
			require.Equal(t, member == 1, outcome.Success)
			require.Equal(t, fmt.Sprint("end ", round, member), episode.Observation())
		}
	}
	a := rc.Address(task, 1, activities.Rollout{Iteration: 5}, 0, 0)
	require.Empty(t, recorded.Env(0).Reset(a.Instance, a.Chance).Observation(), "another iteration's is not recorded")
	require.Equal(t, "Guess.", task.Env(0).Reset(a.Instance, a.Chance).Observation(), "the task is as before")

	plain := &Task{Parts: task.Parts[1:]}
	same, err := plain.Recorded()
	require.NoError(t, err)
	require.Same(t, plain, same)
	_, err = task.Recorded(of(0), Answers{Opening: make([]AnswerRow, 3)})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "about 3 episodes, want 4")
	for name, change := range map[string]func(*AnswerRow){
		"instance": func(r *AnswerRow) { r.Instance = "-1" }, "chance": func(r *AnswerRow) { r.Chance = "1/redraw/" }, "columns": func(r *AnswerRow) { r.Actions = []string{"1"} },
	} {
		bad := of(1)
		change(&bad.Opening[1])
		_, err = task.Recorded(of(0), bad)
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, "answer of row 1", name)
	}
	bad := of(0)
	bad.Opening[3].Instance = "not asked, not read"
	_, err = task.Recorded(bad)
	require.NoError(t, err)
}
