package sokoban

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

func TestBestReward(t *testing.T) {
	for _, c := range []struct {
		layout  string
		n       int
		success float64
		reward  float64
	}{
		{"######\n#P_XO#\n######", 2, 1, 10.8},
		{"######\n#P_XO#\n######", 9, 1, 10.8},
		{"######\n#P_XO#\n######", 1, 0, 0},
		{"######\n#P_XO#\n######", 0, 0, 0},
		{"#######\n#OXPXO#\n#######", 3, 1, 11.7},
		{"#######\n#OXPXO#\n#######", 2, 0, 0.9},
		{"######\n#SX__#\n######", 10, 0, 0},
		// The box in the corner is lost, the other is not.
		{"######\n#X__O#\n#OXP_#\n######", 9, 0, 0.9},
		// A box that is lost is pushed out of the way for the other's sake.
		{"#####\n#P#O#\n#X###\n#_XO#\n#_###\n#####", 9, 0, 0.7},
		{"#######\n#PX_XO#\n#O__###\n#######", 9, 0, 0.5},
		{"######\n#_X_##\n#PXXO#\n#OO_##\n######", 1, 0, 0},
	} {
		e := inRoom(t, c.layout, "").Reset(instance(1), draw.Address{}).(*episode)
		require.Equal(t, c.success, e.BestSuccess(c.n), c.layout)
		require.Equal(t, c.reward, e.BestReward(c.n), "%s in %d", c.layout, c.n)
	}
	last := inRoom(t, "#####\n#PXO#\n#####", "").Reset(instance(1), draw.Address{}).(*episode)
	for range MaxSteps - 1 {
		last.Step("Up")
	}
	require.Equal(t, 10.9, last.BestReward(10))
	last.Step("Right")
	require.Zero(t, last.BestReward(10))
	require.Equal(t, 1.0, last.BestSuccess(0))
}

// Against all sequences of moves.
func TestBestRewardIsBest(t *testing.T) {
	const most = 6
	for _, options := range []string{`{"preset":"large"}`, `{"boxes":2,"search_depth":12}`, `{"boxes":3,"search_depth":9}`, ``} {
		env := mustNew(t, options)
		partly := 0
		for k := range int64(30) {
			e := env.Reset(instance(k), draw.Address{}).(*episode)
			for n := range most + 1 {
				tenths, solved := tryAll(e.room, n)
				require.Equal(t, float64(tenths)/10, e.BestReward(n), "%s\nin %d", e.StateKey(), n)
				require.Equal(t, solved, e.BestSuccess(n) == 1)
				if tenths > 0 && !solved {
					partly++
				}
			}
		}
		t.Logf("%q: solved in part %d times", options, partly)
	}
}

// tryAll gives the best sum of rewards of at most n moves, and whether some solve the room.
func tryAll(room Room, n int) (best int, solved bool) {
	if room.Solved() || n == 0 {
		return 0, room.Solved()
	}
	for move := range moves {
		next := room.clone()
		tenths, _ := next.move(move)
		more, ok := tryAll(next, n-1)
		best, solved = max(best, tenths+more), solved || ok
	}
	return best, solved
}

// A search that is given up says so.
func TestBestRewardUnknown(t *testing.T) {
	e := mustNew(t, `{"width":20,"height":12,"boxes":8,"search_depth":200}`).Reset(instance(1), draw.Address{}).(*episode)
	require.NotEqual(t, e.BestSuccess(100), e.BestSuccess(100), "not a number")
	require.NotEqual(t, e.BestReward(100), e.BestReward(100))
}
