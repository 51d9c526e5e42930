package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A branch has the turns of its parent before it, and those that it samples itself. Every turn is learned from
// once: in the row that sampled it.
func TestTreesGrow(t *testing.T) {
	trees := spec.Trees{Trees: 1, Branches: 1, Expansions: 2}
	wave := func(member int, turns ...Turn) []Turn { // what one member of each of two groups of three plays
		for n := range turns {
			for i := range turns[n].Generate {
				if i%3 != member {
					turns[n].Generate[i], turns[n].Step[i] = GenerateRow{Row: int32(i), Group: int32(i / 3), Member: int32(i % 3)}, StepRow{Done: true}
				}
			}
		}
		return turns
	}
	end := []bool{true, true, true, true, true, true}
	turns := wave(0, searchTurn(1, 3, make([]float64, 6), nil, nil), searchTurn(2, 3, make([]float64, 6), nil, nil), searchTurn(3, 3, make([]float64, 6), nil, end))
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(group)} }
	forks, err := Forks(trees, 1, turns, address)
	require.NoError(t, err)
	require.Len(t, forks, 2)
	for i, f := range forks {
		a := address(i)
		a.Member, a.Turn = 1, 1
		u := a.Rand().Float64()
		require.Equal(t, ForkRow{Row: int32(3*i + 1), Group: int32(i), Member: 1, Parent: int32(3 * i), Turn: int32(3 * u), Places: 3, Draw: u}, f)
	}

	// The first group branches after two turns, the second at its beginning.
	forks[0].Turn, forks[1].Turn = 2, 0
	require.Equal(t, 1, FirstTurn(forks))
	require.NoError(t, fork(turns, forks))
	for n, played := range wave(1, searchTurn(11, 3, make([]float64, 6), nil, end), searchTurn(12, 3, make([]float64, 6), nil, nil), searchTurn(13, 3, make([]float64, 6), nil, nil), searchTurn(14, 3, make([]float64, 6), nil, end)) {
		for _, i := range []int{1, 4} { // asleep before, ended after
			asleep, over := n < int(forks[i/3].Turn), i == 4 && n > 0
			played.Generate[i].Alive = !asleep && !over
		}
		turns = grow(turns, n, played)
	}
	require.Len(t, turns, 4, "a branch may have more turns than its tree has had")
	sampled := func(row int) (ids []int32) {
		for _, turn := range turns {
			if turn.Generate[row].Alive {
				require.Equal(t, int32(row), turn.Generate[row].Row)
				ids = append(ids, turn.Generate[row].SampledIDs...)
			}
		}
		return ids
	}
	require.Equal(t, []int32{100, 200, 300}, sampled(0))
	require.Equal(t, []int32{100, 200, 1301, 1401}, sampled(1))
	require.Empty(t, sampled(2))
	require.Equal(t, []int32{103, 203, 303}, sampled(3))
	require.Equal(t, []int32{1104}, sampled(4))

	// The second wave draws among the places of both leaves: the beginning, two of the chain, one that the branch sampled.
	forks, err = Forks(trees, 2, turns, address)
	require.NoError(t, err)
	require.Equal(t, []int32{4, 3}, []int32{forks[0].Places, forks[1].Places})

	branches := Branches(turns, 0)
	require.Equal(t, []BranchRow{{1, 0, 0, true}, {1, 1, 0, true}, {1, 2, 1, false}, {1, 3, 1, false}}, branches[3:7])
	rows := []TrajectoryRow{{Row: 0, PromptLengths: make([]int32, 3)}, {Row: 1, PromptLengths: make([]int32, 4)}}
	trained, err := Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true, true}, {false, false, true, true}}, trained)
}

// Branches that do not fit the turns are refused.
func TestForksThatDoNotFit(t *testing.T) {
	turns := func() []Turn {
		return []Turn{searchTurn(1, 2, make([]float64, 4), nil, []bool{false, false, true, false}), searchTurn(2, 2, make([]float64, 4), []bool{true, true, false, true}, nil)}
	}
	require.NoError(t, fork(turns(), []ForkRow{{Row: 1, Parent: 0, Turn: 1}}))
	for _, f := range []ForkRow{
		{Row: 4, Parent: 0}, {Row: 1, Parent: 1}, {Row: 1, Parent: -1}, {Row: 1, Parent: 0, Turn: 2}, {Row: 1, Parent: 0, Turn: -1},
		{Row: 3, Group: 1, Parent: 2, Turn: 1}, {Row: 3, Group: 1, Parent: 0, Turn: 1},
	} {
		require.ErrorIs(t, fork(turns(), []ForkRow{f}), store.ErrInvalid, "%v", f)
	}
	require.NoError(t, fork(turns(), nil), "no row needs to branch")
	_, err := Forks(spec.Trees{Trees: 1, Branches: 1, Expansions: 1}, 2, turns(), nil)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// With fresh outcomes a turn meets the luck of the row that played it, with shared ones that of its tree's
// first leaf.
func TestChancesOfBranches(t *testing.T) {
	rc := &Context{}
	task := &Task{Groups: 1, Members: 3, Slots: 3, Trees: spec.Trees{Trees: 1, Branches: 2, Expansions: 1}}
	history := []Turn{{Slots: []int32{0, 0, 0}}, {Slots: []int32{0, 1, 0}}}
	members := func() (out []int64) {
		for _, a := range rc.Chances(task, 0, activities.Rollout{}, GenerateRow{Row: 1, Member: 1}, history) {
			require.Equal(t, draw.Chance, a.Purpose)
			out = append(out, a.Member)
		}
		return out
	}
	require.Equal(t, []int64{0, 1, 1}, members())
	task.Trees.Shared = true
	require.Equal(t, []int64{0, 0, 0}, members())
	task.Trees = spec.Trees{Trees: 3}
	require.Equal(t, []int64{1, 1, 1}, members(), "without branches each row has its own")
}
