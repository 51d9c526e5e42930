package trees

import (
	"testing"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/stretchr/testify/require"
)

func forksOf(t search.Trees, wave int, turns []episode.Turn, address func(int) draw.Address) ([]episode.ForkRow, error) {
	return Search.Fork(search.Forking{Trees: t, Wave: wave, Turns: turns, Address: address})
}

// A branch has the turns of its parent before it, and those that it samples itself. Every turn is learned from
// once: in the row that sampled it.
func TestTreesGrow(t *testing.T) {
	trees := search.Trees{Trees: 1, Branches: 1, Expansions: 2}
	wave := func(member int, turns ...episode.Turn) []episode.Turn { // what one member of each of two groups of three plays
		for n := range turns {
			for i := range turns[n].Generate {
				if i%3 != member {
					turns[n].Generate[i], turns[n].Step[i] = episode.GenerateRow{Row: int32(i), Group: int32(i / 3), Member: int32(i % 3)}, episode.StepRow{Done: true}
				}
			}
		}
		return turns
	}
	end := []bool{true, true, true, true, true, true}
	turns := wave(0, episodetest.Turn(1, 3, make([]float64, 6), nil, nil), episodetest.Turn(2, 3, make([]float64, 6), nil, nil), episodetest.Turn(3, 3, make([]float64, 6), nil, end))
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(group)} }
	forks, err := forksOf(trees, 1, turns, address)
	require.NoError(t, err)
	require.Len(t, forks, 2)
	for i, f := range forks {
		a := address(i)
		a.Member, a.Turn = 1, 1
		u := a.Rand().Float64()
		require.Equal(t, episode.ForkRow{Row: int32(3*i + 1), Group: int32(i), Member: 1, Parent: int32(3 * i), Turn: int32(3 * u), Places: 3, Draw: u}, f)
	}

	// The first group branches after two turns, the second at its beginning.
	forks[0].Turn, forks[1].Turn = 2, 0
	require.Equal(t, 1, episode.FirstTurn(forks))
	require.NoError(t, episode.Inherit(turns, forks))
	for n, played := range wave(1, episodetest.Turn(11, 3, make([]float64, 6), nil, end), episodetest.Turn(12, 3, make([]float64, 6), nil, nil), episodetest.Turn(13, 3, make([]float64, 6), nil, nil), episodetest.Turn(14, 3, make([]float64, 6), nil, end)) {
		for _, i := range []int{1, 4} { // asleep before, ended after
			asleep, over := n < int(forks[i/3].Turn), i == 4 && n > 0
			played.Generate[i].Alive = !asleep && !over
		}
		turns = episode.Grow(turns, n, played)
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
	forks, err = forksOf(trees, 2, turns, address)
	require.NoError(t, err)
	require.Equal(t, []int32{4, 3}, []int32{forks[0].Places, forks[1].Places})

	branches := episode.Branches(turns, 0)
	require.Equal(t, []episode.BranchRow{{Row: 1, Inherited: true}, {Row: 1, Turn: 1, Inherited: true}, {Row: 1, Turn: 2, Slot: 1}, {Row: 1, Turn: 3, Slot: 1}}, branches[3:7])
	rows := []episode.TrajectoryRow{{Row: 0, PromptLengths: make([]int32, 3)}, {Row: 1, PromptLengths: make([]int32, 4)}}
	trained, err := episode.Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true, true}, {false, false, true, true}}, trained)
}

// Rows of a wave draw by their group, member and wave, among the places of their own tree.
func TestForksOfSeveralTrees(t *testing.T) {
	trees := search.Trees{Trees: 2, Branches: 1, Expansions: 2}
	chains := func() []episode.Turn { // of two groups of six, in which the first tree has three turns, the second one
		alive, short := make([]bool, 12), make([]bool, 12)
		for _, row := range []int{0, 1, 6, 7} {
			alive[row], short[row] = true, row == 0 || row == 6
		}
		return []episode.Turn{episodetest.Turn(1, 6, make([]float64, 12), alive, nil), episodetest.Turn(2, 6, make([]float64, 12), short, nil), episodetest.Turn(3, 6, make([]float64, 12), short, nil)}
	}
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(10 + group)} }
	u := func(group, member, wave int) float64 {
		a := address(group)
		a.Member, a.Turn = int64(member), int64(wave)
		return a.Rand().Float64()
	}
	turns := chains()
	forks, err := forksOf(trees, 1, turns, address)
	require.NoError(t, err)
	want := func(group, member, parent, places, wave int) episode.ForkRow {
		draws := u(group, member, wave)
		return episode.ForkRow{Row: int32(6*group + member), Group: int32(group), Member: int32(member), Parent: int32(6*group + parent), Turn: int32(float64(places) * draws), Places: int32(places), Draw: draws}
	}
	require.Equal(t, []episode.ForkRow{want(0, 2, 0, 3, 1), want(0, 3, 1, 1, 1), want(1, 2, 0, 3, 1), want(1, 3, 1, 1, 1)}, forks)

	// In the second wave the branches of the first are leaves too; their inherited turns are no places of
	// their own.
	require.NoError(t, episode.Inherit(turns, []episode.ForkRow{{Row: 2, Member: 2, Turn: 1}, {Row: 3, Member: 3, Parent: 1}, {Row: 8, Group: 1, Member: 2, Parent: 6, Turn: 2}, {Row: 9, Group: 1, Member: 3, Parent: 7}}))
	for n := range 4 {
		alive := make([]bool, 12)
		for row, from := range map[int]int{2: 1, 8: 2, 3: 0, 9: 0} {
			alive[row] = n >= from && n < 3 || row == 9 && n == 3
		}
		turns = episode.Grow(turns, n, episodetest.Turn(11+n, 6, make([]float64, 12), alive, nil))
	}
	forks, err = forksOf(trees, 2, turns, address)
	require.NoError(t, err)
	require.Equal(t, []int32{3 + 1, 1 + 2, 3 + 0, 1 + 3}, func() (out []int32) {
		for _, f := range forks {
			out = append(out, f.Places)
		}
		return out
	}())
}

// There is no wave after the last.
func TestForksOfNoWave(t *testing.T) {
	_, err := forksOf(search.Trees{Trees: 1, Branches: 1, Expansions: 1}, 2, []episode.Turn{episodetest.Turn(1, 2, make([]float64, 4), nil, nil)}, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
}
