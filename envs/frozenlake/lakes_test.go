package frozenlake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// Ten thousand lakes: a way from start to goal, and the same lakes on every run
// and machine. A digest that changes here changes every recorded run.
func TestLakes(t *testing.T) {
	for options, digest := range map[string]string{
		``: "2005738322bbb49e1a7c123df42907587fb6e390003b1833352c6da7f3f9abec",
		`{"size":8,"random_ends":false,"frozen_probability":0.7}`: "e8aeb33c598d98d7fe04036180a8676e2e41ccbac51f830049c72ea493305214",
	} {
		env := mustNew(t, options)
		h := sha256.New()
		frozen, free := 0, 0
		for k := range int64(10_000) {
			e := env.Reset(instance(k), draw.Address{}).(*episode)
			layout := strings.Join(e.lake.Rows(), "\n")
			parsed, err := Parse(layout)
			require.NoError(t, err, "one start, a goal, a way")
			require.Equal(t, 1, strings.Count(layout, "G"))
			require.Equal(t, *e.lake, parsed)
			if !env.(*FrozenLake).options.RandomEnds {
				require.True(t, layout[0] == 'S' && layout[len(layout)-1] == 'G')
			}
			frozen += strings.Count(layout, "F")
			free += strings.Count(layout, "F") + strings.Count(layout, "H")
			h.Write([]byte(layout))
		}
		// More than drawn: lakes without a way are drawn again.
		require.Greater(t, float64(frozen)/float64(free), env.(*FrozenLake).options.FrozenProbability)
		require.Equal(t, digest, hex.EncodeToString(h.Sum(nil)), options)
	}
}

// Probabilities that hardly give a lake give one all the same.
func TestExtremes(t *testing.T) {
	for _, options := range []string{`{"frozen_probability":0}`, `{"frozen_probability":0,"size":9}`, `{"frozen_probability":1,"size":2}`, `{"frozen_probability":0.1,"size":20,"random_ends":false}`} {
		env := mustNew(t, options)
		for k := range int64(5) {
			e := env.Reset(instance(k), draw.Address{}).(*episode)
			_, err := Parse(strings.Join(e.lake.Rows(), "\n"))
			require.NoError(t, err, options)
		}
	}
}

// Slips are as frequent as they should be, within four standard errors, and are
// the member's own unless they are shared.
func TestSlips(t *testing.T) {
	const layout = "FFFFF\nFFFFF\nFFSFF\nFFFFF\nFFFFG"
	for _, rate := range []float64{1.0 / 3, 0.8, 0, 0.05} {
		for _, action := range moves {
			env := onLake(t, layout, fmt.Sprintf(`,"success_rate":%v`, rate))
			const n = 4000
			counts := map[int]int{}
			for k := range int64(n) {
				e := env.Reset(instance(k/16), chance(k/16, k%16)).(*episode)
				before := e.at
				e.Step(action)
				counts[e.at-before]++
			}
			table := env.Reset(instance(0), chance(0, 0)).(envs.Tabular).Transitions()
			for _, o := range table[12][index(action)] {
				p := o.Probability
				require.InDelta(t, p, float64(counts[o.Next-12])/n, 4*math.Sqrt(p*(1-p)/n)+1e-12, "%s at %v", action, rate)
			}
		}
	}
	own, shared := onLake(t, layout, ""), onLake(t, layout, `,"shared_chance":true`)
	differs := false
	for group := range int64(20) {
		a, b := shared.Reset(instance(group), chance(group, 0)), shared.Reset(instance(group), chance(group, 5))
		c, d := own.Reset(instance(group), chance(group, 0)), own.Reset(instance(group), chance(group, 5))
		for range 2 {
			require.Equal(t, a.Step("Left"), b.Step("Left"))
			require.Equal(t, a.StateKey(), b.StateKey())
			c.Step("Left")
			d.Step("Left")
			differs = differs || c.StateKey() != d.StateKey()
		}
	}
	require.True(t, differs)
}

// Ten thousand lakes walked over at random: every slip goes to one of the
// direction's two sides or not at all, as often as it should within four standard
// errors, and leads where the table says.
func TestSlipsOfLakes(t *testing.T) {
	for _, rate := range []float64{1.0 / 3, 0.8} {
		env := mustNew(t, fmt.Sprintf(`{"success_rate":%v}`, rate))
		var turns [4]int // by how far the direction is from the one meant
		total := 0
		for k := range int64(10_000) {
			e := env.Reset(instance(k), chance(k, k%16)).(*episode)
			table := e.Transitions()
			r := draw.Address{Seed: 7, Group: k}.Rand()
			for n := 0; n < 10 && !e.Done(); n++ {
				move, before := r.IntN(len(moves)), e.at
				direction := e.direction(move)
				e.Step(moves[move])
				require.Equal(t, e.lake.to(before, direction), e.at)
				possible := false
				for _, o := range table[before][move] {
					possible = possible || o.Next == e.at && o.Done == e.Done() && o.Probability > 0
				}
				require.True(t, possible)
				turns[(direction-move+4)%4]++
				total++
			}
		}
		require.Zero(t, turns[2], "never backwards")
		for turn, p := range map[int]float64{0: rate, 1: (1 - rate) / 2, 3: (1 - rate) / 2} {
			n := float64(total)
			require.InDelta(t, p, float64(turns[turn])/n, 4*math.Sqrt(p*(1-p)/n), "%d actions", total)
		}
	}
}

// The k-th action slips the same whatever the turns.
func TestSlipsGoByAction(t *testing.T) {
	env := mustNew(t, `{"frozen_probability":1,"size":9}`)
	one, _, err := envs.Replay(env, instance(1), chance(1, 2), [][]string{{"Left", "Up", "Up"}})
	require.NoError(t, err)
	other, _, err := envs.Replay(env, instance(1), chance(1, 2), [][]string{{"Left"}, {"Up"}, {}, {"Up"}})
	require.NoError(t, err)
	require.Equal(t, one.StateKey(), other.StateKey())
}

// A branch meets what its parent met, and luck of its own from there on, unless the group shares one luck.
func TestBranchesHaveLuckOfTheirOwn(t *testing.T) {
	actions := [][]string{{"Left", "Up"}, {"Right", "Down"}, {"Left", "Down", "Up"}}
	play := func(options string, members ...int64) []string {
		var chances []draw.Address
		for _, m := range members {
			chances = append(chances, chance(1, m))
		}
		env := mustNew(t, options)
		var seen []string
		for n := range members {
			e, _, err := envs.ReplayForked(env, instance(1), chances[:n+1], actions[:n])
			require.NoError(t, err)
			seen = append(seen, e.StateKey())
		}
		return seen
	}
	const lake = `{"frozen_probability":1,"size":9,"max_actions_per_turn":3}`
	same, differ := 0, 0
	for m := range int64(8) {
		parent, branch := play(lake, 20, 20, 20, 20), play(lake, 20, 20, m, m)
		require.Equal(t, parent[:2], branch[:2])
		alone := play(lake, m, m, m, m)
		if parent[3] != branch[3] {
			differ++
		}
		if alone[3] == branch[3] {
			same++
		}
	}
	require.Positive(t, differ)
	require.Less(t, same, 8, "not the luck of an episode of its own either")
	const shared = `{"frozen_probability":1,"size":9,"max_actions_per_turn":3,"shared_chance":true}`
	require.Equal(t, play(shared, 1, 1, 1, 1), play(shared, 2, 2, 3, 4))

	_, _, err := envs.ReplayForked(mustNew(t, lake), instance(1), nil, nil)
	require.ErrorIs(t, err, envs.ErrReplay)
}

// The best success agrees with what playing by advice reaches.
func TestBestSuccess(t *testing.T) {
	for options, sure := range map[string]bool{`{"slippery":false}`: true, ``: false, `{"success_rate":0.8}`: false} {
		env := mustNew(t, options)
		expected, variance, reached := 0.0, 0.0, 0.0
		for k := range int64(300) {
			e := env.Reset(instance(k), chance(k, 0)).(*episode)
			p := e.BestSuccess(10)
			require.True(t, p >= 0 && p <= 1)
			require.LessOrEqual(t, e.BestSuccess(9), p)
			require.Equal(t, p, e.BestReward(10))
			if sure {
				require.Contains(t, []float64{0, 1}, p)
			}
			expected += p
			variance += p * (1 - p)
			var advice []string
			for left := 10; left > 0 && !e.Done(); left-- {
				if len(advice) == 0 {
					if advice = e.Advice(left); len(advice) == 0 {
						break
					}
				}
				e.Step(advice[0])
				advice = advice[1:]
			}
			if e.Success() {
				reached++
				require.Equal(t, 1.0, e.BestSuccess(0))
			}
			if e.Done() {
				require.Zero(t, e.BestReward(5), "nothing more is to be had")
			}
		}
		t.Logf("%s: best success %.3f, reached %.3f", options, expected/300, reached/300)
		require.InDelta(t, expected, reached, 4*math.Sqrt(variance)+1e-9, options)
	}
}

// Values by hand, and of gymnasium's 4×4 map without a limit (0.8235, known from
// its literature).
func TestValues(t *testing.T) {
	row := onLake(t, "SFG", `,"slippery":false`).Reset(instance(0), chance(0, 0)).(*episode)
	require.Equal(t, []float64{0, 1, 0}, Values(row.Transitions(), 1))
	require.Equal(t, []float64{1, 1, 0}, Values(row.Transitions(), 2))
	require.Equal(t, []string{"Right", "Right"}, row.Advice(10))
	require.Empty(t, row.Advice(1))
	require.Zero(t, row.BestSuccess(0))
	slips := onLake(t, "SFG", "").Reset(instance(0), chance(0, 0)).(*episode)
	require.InDelta(t, 1.0/9, slips.BestSuccess(2), 1e-12)
	require.InDelta(t, 1, Values(slips.Transitions(), 0)[0], 1e-9)
	known := onLake(t, "SFFF\nFHFH\nFFFH\nHFFG", "").Reset(instance(0), chance(0, 0)).(*episode)
	require.InDelta(t, 14.0/17, Values(known.Transitions(), 0)[0], 1e-6)
}

func BenchmarkGenerate(b *testing.B) {
	k := int64(0)
	for b.Loop() {
		k++
		generate(4, 0.8, true, instance(k))
	}
}

func BenchmarkStep(b *testing.B) {
	env, err := envs.New(Name, nil)
	if err != nil {
		b.Fatal(err)
	}
	e := env.Reset(instance(1), chance(1, 1))
	for b.Loop() {
		if e.Done() {
			e = env.Reset(instance(1), chance(1, 1))
		}
		e.Step("Left")
	}
}

// Of the 32 lakes of the preset smol-frozenlake the best path of eight moves that ignores the board crosses 13.
func TestBestBlindPath(t *testing.T) {
	env := mustNew(t, `{"slippery":false,"instances":32,"pool":11,"max_actions":8,"max_actions_per_turn":4}`)
	best := 0
	for path := range 1 << 16 { // two bits a move
		crossed := 0
		for _, c := range env.(*FrozenLake).Cases() {
			at, lake := c.(*episode).at, c.(*episode).lake
			for move := 0; move < 8 && !lake.ends(at); move++ {
				at = lake.to(at, path>>(2*move)&3)
			}
			if lake.cells[at] == 'G' {
				crossed++
			}
		}
		best = max(best, crossed)
	}
	require.Equal(t, 13, best)
}
