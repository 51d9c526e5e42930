package sokoban

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// Ten thousand rooms of each preset: what they promise, and that they are the
// same on every run and machine. A digest that changes here changes every
// recorded run.
func TestRooms(t *testing.T) {
	for _, c := range []struct {
		preset               string
		rooms                int
		width, height, boxes int
		most                 int    // moves of the longest solution
		digest, short        string // of all rooms, of the first thousand
	}{
		{"simple", 10_000, 6, 6, 1, 0, "41817d59b4b0620b41a09b64c34f98cdca29eba04f6598b0f28f5f3383b35341", "5b1c72ba78de4bb8869f29959a0b76f2de27ba33d3f120eee2f9b5a2d1f47be9"},
		{"large", 10_000, 8, 8, 2, 13, "461d9e43e99f4096413eb3e43250fa3322dabcb140091647cd1b55e28c7333a3", "d132a96c0dd7aed9791703a49cb89b7bc6941609fb2ccc1f35061e995b684edf"},
		{"new-vocabulary", 10_000, 6, 6, 1, 33, "41817d59b4b0620b41a09b64c34f98cdca29eba04f6598b0f28f5f3383b35341", "5b1c72ba78de4bb8869f29959a0b76f2de27ba33d3f120eee2f9b5a2d1f47be9"},
	} {
		t.Run(c.preset, func(t *testing.T) {
			env := mustNew(t, `{"preset":"`+c.preset+`"}`)
			rooms, digest := c.rooms, c.digest
			if testing.Short() {
				rooms, digest = 1000, c.short
			}
			h := sha256.New()
			different := map[string]bool{}
			inTen, longest := 0, 0
			for k := range int64(rooms) {
				e := env.Reset(instance(k), draw.Address{}).(*episode)
				grid := strings.Join(e.Grid(), "\n")
				// Walls all around, one player, as many boxes as targets: Parse's rules.
				parsed, err := Parse(grid)
				require.NoError(t, err, grid)
				require.Equal(t, []int{c.width, c.height}, []int{parsed.Width, parsed.Height})
				require.Equal(t, c.boxes, strings.Count(grid, "X"), "every box is off the targets")
				require.Equal(t, c.boxes, strings.Count(grid, "O")+strings.Count(grid, "S"))
				solution, ok := Solve(parsed, c.most)
				require.True(t, ok, grid)
				for i, action := range solution {
					o := e.Step(action)
					require.True(t, o.Effective)
					require.Equal(t, i == len(solution)-1, o.Done)
				}
				require.True(t, e.Success())
				if longest = max(longest, len(solution)); len(solution) <= 10 {
					inTen++
				}
				different[grid] = true
				h.Write([]byte(grid))
			}
			t.Logf("%d different rooms; %d solved in 10 moves; longest solution %d", len(different), inTen, longest)
			require.Greater(t, len(different), rooms*7/10)
			require.Equal(t, digest, hex.EncodeToString(h.Sum(nil)))
		})
	}
}

// Every size and number of boxes either gives rooms or is refused with a reason.
func TestSizes(t *testing.T) {
	made := 0
	for width := 3; width <= 7; width++ {
		for height := 3; height <= 6; height++ {
			for boxes := 1; boxes <= 4; boxes++ {
				env, err := envs.New(Name, json.RawMessage(fmt.Sprintf(`{"width":%d,"height":%d,"boxes":%d,"search_depth":40}`, width, height, boxes)))
				if err != nil {
					require.ErrorContains(t, err, "no room was found")
					require.True(t, (width-2)*(height-2) < 3*boxes+2, "%d×%d with %d", width, height, boxes)
					continue
				}
				made++
				for k := range int64(3) {
					e := env.Reset(instance(k), draw.Address{}).(*episode)
					room, err := Parse(e.StateKey())
					require.NoError(t, err)
					_, ok := Solve(room, 43)
					require.True(t, ok, e.StateKey())
				}
			}
		}
	}
	require.Greater(t, made, 40)
	for _, options := range []string{`{"width":50,"height":50,"boxes":2,"search_depth":300}`, `{"width":20,"height":9,"boxes":10,"search_depth":300}`} {
		room, err := Parse(mustNew(t, options).Reset(instance(1), draw.Address{}).StateKey())
		require.NoError(t, err)
		require.Positive(t, room.open)
	}
	_, err := envs.New(Name, json.RawMessage(`{"width":50,"height":50,"boxes":10,"search_depth":50}`))
	require.ErrorContains(t, err, "a greater search_depth", "refused, and soon")
}

// search_depth bounds the shortest solution, except for the walk.
func TestSearchDepth(t *testing.T) {
	for depth := 1; depth <= 6; depth++ {
		env := mustNew(t, fmt.Sprintf(`{"search_depth":%d,"walk":0}`, depth))
		for k := range int64(30) {
			room := env.Reset(instance(k), draw.Address{}).(*episode).room
			solution, ok := Solve(room, depth)
			require.True(t, ok)
			require.NotEmpty(t, solution)
		}
	}
}

func TestSolve(t *testing.T) {
	for name, c := range map[string]struct {
		layout string
		want   string // "" for none
	}{
		"one push":          {"#####\n#PXO#\n#####", "Right"},
		"around the box":    {"#####\n#___#\n#PX_#\n#O__#\n#####", "Up Right Down Right Down Left"},
		"against a wall":    {"#####\n#X_O#\n#P__#\n#####", ""},
		"in a corner":       {"######\n#X___#\n#_P__#\n#__O_#\n######", ""},
		"two boxes":         {"#######\n#OXPXO#\n#######", "Left Right Right"},
		"blocked by a box":  {"######\n#PXXO#\n#O___#\n######", ""},
		"over another's":    {"######\n#PX√O#\n######", ""},
		"player on target":  {"######\n#SX__#\n######", ""},
		"shortest, not any": {"######\n#____#\n#_PXO#\n#____#\n######", "Right"},
	} {
		t.Run(name, func(t *testing.T) {
			room, err := Parse(c.layout)
			require.NoError(t, err)
			solution, ok := Solve(room, 0)
			if c.want == "" {
				require.False(t, ok, solution)
				return
			}
			require.True(t, ok)
			require.Equal(t, c.want, strings.Join(solution, " "))
			_, ok = Solve(room, len(solution))
			require.True(t, ok)
			if len(solution) > 1 {
				_, ok = Solve(room, len(solution)-1)
				require.False(t, ok)
			}
		})
	}
}

// The solver against a search without its short cuts.
func TestSolveIsShortest(t *testing.T) {
	env := mustNew(t, `{"preset":"large"}`)
	for k := range int64(20) {
		room := env.Reset(instance(k), draw.Address{}).(*episode).room
		solution, ok := Solve(room, 0)
		require.True(t, ok)
		require.Len(t, solution, plainLength(room))
	}
}

// plainLength is the length of a shortest solution, by a search over grids.
func plainLength(room Room) int {
	seen := map[string]bool{}
	level := []Room{room}
	for depth := 0; ; depth++ {
		var next []Room
		for _, r := range level {
			if r.Solved() {
				return depth
			}
			for move := range moves {
				c := r.clone()
				if _, effective := c.move(move); !effective {
					continue
				}
				if key := strings.Join(c.Rows(Standard), ""); !seen[key] {
					seen[key] = true
					next = append(next, c)
				}
			}
		}
		level = next
	}
}
