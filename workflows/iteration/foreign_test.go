package iteration

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Foreign environments are asked about the beginning before the first turn, and after each sample.
// Every later step of the rollout has the recorded answers, and so does the manifest.
func TestForeignEnvironmentsAreAsked(t *testing.T) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Foreign = Due{}, nil, true
	it := New(sc.start, sc.state())
	var names []string
	var opening store.Ref
	answers := map[int]store.Ref{}
	in, err := it.ToCommit(func(c Call) (any, error) {
		result := sc.result(c)
		names = append(names, c.Name)
		switch in := c.Input.(type) {
		case activities.AskInput:
			if in.Turn == 0 {
				opening = result.(*activities.AskResult).Table
				require.Nil(t, in.Generate)
				break
			}
			require.Equal(t, &opening, in.Opening)
			require.NotNil(t, in.Generate)
			answers[in.Turn] = result.(*activities.AskResult).Table
		case activities.GenerateInput:
			if in.Turn == 1 {
				require.Equal(t, &opening, in.Opening)
			}
		case activities.StepInput:
			require.Equal(t, opening, *in.Opening)
			require.Equal(t, answers[in.Turn], *in.Answers)
			result = &activities.StepResult{Table: ref("step", in), Alive: 1}
		case activities.SelectInput:
			result.(*activities.SelectResult).Tables = activities.Tables{activities.BrokenTable.Name: ref("broken")}
		}
		return result, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"Ask", "Generate", "Ask", "Step", "Generate", "Ask", "Step", "Select"}, names[:8])
	require.Equal(t, &opening, in.Turns[0].Opening)
	require.Nil(t, in.Turns[1].Opening)
	for turn, table := range answers {
		require.Equal(t, &table, in.Turns[turn-1].Answers)
	}
	require.Equal(t, ref("broken"), *in.Tables.Ref(activities.BrokenTable))
}

// Where the run's own engine judges, the host makes the questions about a round, the device answers them piece by piece by
// the version with which the iteration begins, and the host makes verdicts of the answers. The manifest has all.
func TestOwnJudge(t *testing.T) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Judged, sc.start.Plan.Questions, sc.rounds, sc.pieces = Due{}, nil, true, 16, 2, 3
	it := New(sc.start, sc.state())
	var names []string
	questions, grades := map[int][]store.Ref{}, map[int][]store.Ref{}
	in, err := it.ToCommit(func(c Call) (any, error) {
		result := sc.result(c)
		switch in := c.Input.(type) {
		case activities.JudgeInput:
			names = append(names, c.Name)
			last, round := in.Turns[len(in.Turns)-1], in.Rollout.Round
			require.Equal(t, questions[round], last.Questions)
			require.Equal(t, grades[round], last.Grades)
			if last.Questions == nil {
				questions[round] = result.(*activities.JudgeResult).Questions
			}
		case activities.GradeInput:
			names = append(names, c.Name)
			round := in.Rollout.Round
			require.Equal(t, len(grades[round]), in.Piece)
			require.Equal(t, questions[round][in.Piece], in.Questions)
			require.Equal(t, it.before(), in.Policy)
			grades[round] = append(grades[round], result.(*activities.GradeResult).Table)
		case activities.SelectInput:
			require.NotNil(t, in.Turns[len(in.Turns)-1].Verdicts)
		}
		return result, nil
	})
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]string{"Judge", "Grade", "Grade", "Grade", "Judge"}, 2), names)
	round := 0
	for _, turn := range in.Turns {
		if turn.Verdicts == nil {
			require.Nil(t, turn.Questions)
			continue
		}
		require.Equal(t, questions[round], turn.Questions)
		require.Equal(t, grades[round], turn.Grades)
		round++
	}
	require.Equal(t, 2, round)
}

// A judge is asked once about each round, before anything is selected. The selection has its
// verdicts, and so does the manifest.
func TestJudgeIsAskedAboutEachRound(t *testing.T) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Judged, sc.rounds = Due{}, nil, true, 2
	it := New(sc.start, sc.state())
	var verdicts []store.Ref
	in, err := it.ToCommit(func(c Call) (any, error) {
		result := sc.result(c)
		switch in := c.Input.(type) {
		case activities.JudgeInput:
			require.Equal(t, len(verdicts), in.Rollout.Round)
			for _, turn := range in.Turns {
				require.Equal(t, in.Rollout.Round, turn.Round)
				require.Nil(t, turn.Verdicts)
			}
			verdicts = append(verdicts, result.(*activities.JudgeResult).Table)
		case activities.SelectInput:
			last := in.Turns[len(in.Turns)-1]
			require.Len(t, verdicts, last.Round+1)
			require.Equal(t, verdicts[last.Round], *last.Verdicts)
		}
		return result, nil
	})
	require.NoError(t, err)
	require.Len(t, verdicts, 2)
	var named []store.Ref
	for _, turn := range in.Turns {
		if turn.Verdicts != nil {
			named = append(named, *turn.Verdicts)
		}
	}
	require.Equal(t, verdicts, named)
}
