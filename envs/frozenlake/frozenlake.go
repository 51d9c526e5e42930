// Package frozenlake is the walk over a frozen lake of gymnasium (1.4), with the
// random start and goal, the glyphs and the limits of RAGEN (arXiv 2504.20073).
//
// The policy must learn to plan under chance: a move that slips goes perpendicular to the
// chosen direction. Success is standing on the goal, and is compared with the best there
// is, which value iteration gives: on a slippery lake that is often far below 1.
package frozenlake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "frozenlake"

func init() { envs.Register(Name, summary, New) }

// FrozenLake is the environment with its options resolved.
type FrozenLake struct {
	options Options
	slip    Slip
	layout  *Lake // the only lake, or nil

	casesOnce sync.Once
	cases     []Lake
}

// Name implements envs.Environment.
func (f *FrozenLake) Name() string { return Name }

// Instructions implements envs.Environment: the task and the glyphs. Glyphs of an
// episode's end are left out, because no prompt shows them.
func (f *FrozenLake) Instructions() string {
	task := "You are the player. Move to the goal, not to a hole."
	if f.options.Slippery {
		task += " A move may slip to one side."
	}
	return fmt.Sprintf("%s\n%s frozen, %s hole, %s goal, %s player", task, frozenGlyph, holeGlyph, goalGlyph, playerGlyph)
}

// Actions implements envs.Environment.
func (f *FrozenLake) Actions() []string { return slices.Clone(moves) }

// Examples implements envs.Exemplary: two moves that do not undo each other, and then the other two.
func (f *FrozenLake) Examples(envs.Episode) []string { return []string{"Right", "Down", "Left", "Up"} }

// MaxActions implements envs.Environment.
func (f *FrozenLake) MaxActions() int { return f.options.MaxActions }

// MaxActionsPerTurn implements envs.Environment.
func (f *FrozenLake) MaxActionsPerTurn() int { return f.options.MaxActionsPerTurn }

// Certain implements envs.Certain.
func (f *FrozenLake) Certain() bool { return f.slip.sure() }

// Reset implements envs.Environment. The instance draws the lake; the chance, one stream
// for each action, draws the slips. It is the group's chance and not the member's if
// shared_chance selects RAGEN's behaviour.
func (f *FrozenLake) Reset(instance, chance draw.Address) envs.Episode {
	if f.options.SharedChance {
		chance.Member = 0
	}
	lake := f.lake(board.Instance(instance, f.options.Instances, f.options.Pool))
	return f.episode(&lake, chance)
}

func (f *FrozenLake) lake(addr draw.Address) Lake {
	if f.layout != nil {
		return *f.layout
	}
	return generate(f.options.Size, f.options.FrozenProbability, f.options.RandomEnds, addr)
}

func (f *FrozenLake) episode(lake *Lake, chance draw.Address) *episode {
	return &episode{env: f, lake: lake, chance: chance, at: lake.start}
}

// makeCases makes the lakes of Cases once: the layout, a pool's first 64, or 64 fixed ones.
func (f *FrozenLake) makeCases() []Lake {
	f.casesOnce.Do(func() {
		if f.layout != nil {
			f.cases = []Lake{*f.layout}
			return
		}
		for _, addr := range board.Cases(f.options.Instances, f.options.Pool) {
			f.cases = append(f.cases, f.lake(addr))
		}
	})
	return f.cases
}

// Cases implements envs.Environment.
func (f *FrozenLake) Cases() []envs.Episode {
	lakes := f.makeCases()
	episodes := make([]envs.Episode, len(lakes))
	for i := range lakes {
		episodes[i] = f.episode(&lakes[i], draw.Address{Purpose: draw.WarmStart.With(draw.Chance), Group: int64(i)})
	}
	return episodes
}

// Widest implements envs.Bounded.
func (f *FrozenLake) Widest() []envs.Episode {
	lakes := f.makeCases()
	l := &lakes[0]
	last := len(l.cells) - 1
	goals, holes := len(l.places('G')), len(l.places('H'))
	if f.layout == nil {
		goals, holes = 1, len(l.cells)-2
	}
	rows := board.WideRows(l.Height, l.Width, homeGlyph, 1)
	return []envs.Episode{board.Widest(f.episode(l, draw.Address{}),
		f.observe(rows, l.Width, last, slices.Repeat([]int{last}, goals), slices.Repeat([]int{last}, holes)))}
}

func (f *FrozenLake) observe(rows []string, width, player int, goals, holes []int) string {
	return board.Observe(f.options.Observation, rows, width,
		board.Things{Glyph: playerGlyph, Cells: []int{player}},
		board.Things{Glyph: goalGlyph, Cells: goals},
		board.Things{Glyph: holeGlyph, Cells: holes})
}

// episode is the state of a member's episode. Lakes do not change and are shared.
type episode struct {
	env    *FrozenLake
	lake   *Lake
	chance draw.Address
	at     int
	steps  int
}

// Fork implements envs.Forked.
func (e *episode) Fork(chance draw.Address) {
	if e.env.options.SharedChance {
		chance.Member = 0
	}
	e.chance = chance
}

// Observation implements envs.Episode.
func (e *episode) Observation() string {
	return e.env.observe(e.Grid(), e.lake.Width, e.at, e.lake.places('G'), e.lake.places('H'))
}

// Grid implements envs.Gridded: RAGEN's glyphs, which show the player, as the
// layout's do not.
func (e *episode) Grid() []string { return e.lake.grid(e.at) }

// Legal implements envs.Episode.
func (e *episode) Legal(action string) (string, bool) { return envs.Lookup(moves, action) }

// Choices implements envs.Episode: every move, also those against the edge.
func (e *episode) Choices() []string { return slices.Clone(moves) }

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	move := slices.Index(moves, action)
	if move < 0 || e.Done() {
		panic(fmt.Sprintf("frozenlake: step %q is not legal (done: %t)", action, e.Done()))
	}
	before := e.at
	e.at = e.lake.to(e.at, e.direction(move))
	e.steps++
	o := envs.Outcome{Done: e.Done(), Effective: e.at != before, Success: e.Success()}
	if o.Success {
		o.Reward = 1
	}
	return o
}

// direction is where a move goes. The k-th action of an episode slips by the k-th
// stream of its chance, whatever was done before.
func (e *episode) direction(move int) int {
	directions, probabilities := e.env.slip.outcomes(move)
	if len(directions) == 1 {
		return move
	}
	addr := e.chance
	addr.Step = int64(e.steps)
	u := addr.Rand().Float64()
	switch {
	case u < probabilities[1]:
		return directions[1]
	case u < probabilities[1]+probabilities[0]:
		return directions[0]
	}
	return directions[2]
}

// StateKey implements envs.Episode: the layout and the player's cell.
func (e *episode) StateKey() string {
	return strings.Join(e.lake.Rows(), "\n") + "\n" + strconv.Itoa(e.at)
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.lake.ends(e.at) }

// Success implements envs.Episode.
func (e *episode) Success() bool { return e.lake.cells[e.at] == 'G' }

// Transitions implements envs.Tabular.
func (e *episode) Transitions() envs.Table { return e.lake.Transitions(e.env.slip) }

// Advice implements envs.Advised: the best move if moves may slip, otherwise a shortest
// way.
func (e *episode) Advice(n int) []string {
	if n <= 0 || e.Done() {
		return nil
	}
	if e.env.slip.sure() {
		if way := e.lake.way(e.at); len(way) <= n {
			return way
		}
		return nil
	}
	table := e.Transitions()
	values := make([]float64, len(table))
	if n > 1 {
		values = Values(table, n-1)
	}
	move, value := best(table[e.at], values)
	if value == 0 {
		return nil
	}
	return []string{moves[move]}
}

// BestSuccess implements envs.Advised.
func (e *episode) BestSuccess(n int) float64 {
	if e.Done() || n <= 0 {
		if e.Success() {
			return 1
		}
		return 0
	}
	return Values(e.Transitions(), n)[e.at]
}

// BestReward implements envs.Valued: the reward of reaching a goal is 1, so what is
// to be had is the probability of it.
func (e *episode) BestReward(n int) float64 {
	if e.Done() {
		return 0
	}
	return e.BestSuccess(n)
}
