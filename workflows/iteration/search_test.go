package iteration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// A search chooses after each turn, or after the last one where it compares whole trajectories. Every
// later step has the choices, and the rollout ends when all that are kept have ended.
func TestSearchChooses(t *testing.T) {
	methodstest.Needs(t, "best_of_n")
	for _, c := range []struct {
		search string
		over   bool // after the first turn
		want   []string
	}{
		{"beam", false, []string{"Generate", "Step", "Choose", "Generate", "Step", "Choose last", "Select"}},
		{"greedy", true, []string{"Generate", "Step", "Choose", "Select"}},
		{"best_of_n", false, []string{"Generate", "Step", "Generate", "Step", "Choose last", "Select"}},
	} {
		sc := everything()
		sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Search = Due{}, nil, c.search
		it := New(sc.start, sc.state())
		var names []string
		in, err := it.ToCommit(func(call Call) (any, error) {
			result, name := sc.result(call), call.Name
			switch in := call.Input.(type) {
			case activities.StepInput:
				result = &activities.StepResult{Table: ref("step", in), Alive: 1}
			case activities.ChooseInput:
				result.(*activities.ChooseResult).Over = c.over
				require.Nil(t, in.Turns[len(in.Turns)-1].Choices)
				if in.Last {
					name += " last"
				}
			case activities.SelectInput:
				result.(*activities.SelectResult).Tables = activities.Tables{activities.BranchesTable.Name: ref("branches")}
			case activities.CreditInput:
				require.Equal(t, ref("branches"), *in.Tables.Ref(activities.BranchesTable))
			}
			names = append(names, name)
			return result, nil
		})
		require.NoError(t, err)
		require.Equal(t, c.want, names[:len(c.want)], c.search)
		require.Equal(t, ref("branches"), *in.Tables.Ref(activities.BranchesTable))
		require.NotNil(t, in.Turns[len(in.Turns)-1].Choices)
		require.False(t, it.Rollout.Over)
		if c.search == "best_of_n" {
			require.Nil(t, in.Turns[0].Choices)
		}
		require.Equal(t, slices.Contains(c.want, "Choose last") || c.over, it.Rollout.Done)
	}
}

// A wave of branches follows the turns of the one before, from the first turn on that one of them plays. The
// rows of the waves are put together by Select. Where no row branches, no wave follows.
func TestTreesBranch(t *testing.T) {
	methodstest.Needs(t, "pivots", "tree")
	for _, none := range []bool{false, true} {
		testTreesBranch(t, none)
	}
}

func testTreesBranch(t *testing.T, none bool) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Search, sc.start.Plan.Expansions = Due{}, nil, "tree", 2
	sc.start.Plan.Turns = 3
	sc.start.Head = &activities.Head{Tables: activities.Tables{activities.MemoryTable(methods.Search("pivots")).Name: ref("pivots")}}
	it := New(sc.start, sc.state())
	var played []string
	in, err := it.ToCommit(func(call Call) (any, error) {
		result := sc.result(call)
		switch in := call.Input.(type) {
		case activities.GenerateInput:
			played = append(played, fmt.Sprintf("wave %d turn %d after %d", in.Rollout.Wave, in.Turn, len(in.Turns)))
		case activities.StepInput:
			result = &activities.StepResult{Table: ref("step", in), Alive: 1}
			if in.Rollout.Wave == 1 {
				result.(*activities.StepResult).Alive = 0
			}
		case activities.ChooseInput:
			require.True(t, in.Last)
			played = append(played, fmt.Sprintf("branches of wave %d", in.Rollout.Wave+1))
			require.Equal(t, ref("pivots"), *in.Tables.Ref(activities.MemoryTable(methods.Search("pivots"))))
			out := result.(*activities.ChooseResult)
			if out.Over = none; !none {
				out.Turn = 3 - in.Rollout.Wave
			}
		case activities.SelectInput:
			require.Equal(t, ref("pivots"), *in.Tables.Ref(activities.MemoryTable(methods.Search("pivots"))))
			result.(*activities.SelectResult).Tables = activities.Tables{activities.MemoryTable(methods.Search("pivots")).Name: ref("pivots", 2)}
		}
		return result, nil
	})
	require.NoError(t, err)
	require.Equal(t, ref("pivots", 2), *in.Tables.Ref(activities.MemoryTable(methods.Search("pivots"))))
	require.True(t, it.Rollout.Done)
	require.False(t, it.Rollout.Over)
	if none {
		require.Len(t, played, 4)
		require.Len(t, in.Turns, 3)
		require.NotNil(t, in.Turns[2].Forks)
		return
	}
	require.Equal(t, []string{
		"wave 0 turn 1 after 0", "wave 0 turn 2 after 1", "wave 0 turn 3 after 2", "branches of wave 1",
		"wave 1 turn 3 after 3", "branches of wave 2", "wave 2 turn 2 after 4", "wave 2 turn 3 after 5",
	}, played)
	var forks []int
	for i, turn := range in.Turns {
		if turn.Forks != nil {
			forks = append(forks, i)
		}
	}
	require.Equal(t, []int{2, 3}, forks)
}
