// Package sokoban is the puzzle in which a player pushes boxes onto targets, as RAGEN has
// it (arXiv 2504.20073, after gym-sokoban): moves cannot be taken back, so a policy must
// plan.
//
// Rooms come from an address by reverse play (see generate.go), or from a layout.
// There is no chance in an episode: the members of a group differ by what the
// policy does alone.
package sokoban

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "sokoban"

// MaxSteps is the number of actions after which the environment ends an episode
// (gym-sokoban as RAGEN configures it).
const MaxSteps = 100

func init() { envs.Register(Name, summary, New) }

// Sokoban is the environment with its options resolved.
type Sokoban struct {
	options   Options
	glyphs    Glyphs
	generator generator
	// spare is the layout's room, or a room for addresses that give none in a thousand
	// attempts.
	spare Room
	fixed bool // spare is the only room

	casesOnce sync.Once
	cases     []Room
}

// Name implements envs.Environment.
func (s *Sokoban) Name() string { return Name }

// Instructions implements envs.Environment: the task and the glyphs. The box on a target
// is left out if it means the end of an episode, because no prompt shows that.
func (s *Sokoban) Instructions() string {
	g := s.glyphs
	task, done := "Push the box to the target.", ""
	if s.boxes() > 1 {
		task, done = "Push each box to a target.", fmt.Sprintf(", %s box on target", g[boxOnTarget])
	}
	return fmt.Sprintf("You are the player. %s\n%s wall, %s floor, %s target, %s box, %s player, %s player on target%s",
		task, g[wall], g[floor], g[target], g[box], g[player], g[playerOnTarget], done)
}

// boxes is how many boxes every room has.
func (s *Sokoban) boxes() int {
	return len(s.spare.places(func(at int) bool { return s.spare.boxes[at] }))
}

// Actions implements envs.Environment.
func (s *Sokoban) Actions() []string { return slices.Clone(moves) }

// Examples implements envs.Exemplary: two moves that do not undo each other, and then the other two.
func (s *Sokoban) Examples(envs.Episode) []string { return []string{"Right", "Down", "Left", "Up"} }

// MaxActions implements envs.Environment.
func (s *Sokoban) MaxActions() int { return s.options.MaxActions }

// MaxActionsPerTurn implements envs.Environment.
func (s *Sokoban) MaxActionsPerTurn() int { return s.options.MaxActionsPerTurn }

// Certain implements envs.Certain.
func (*Sokoban) Certain() bool { return true }

// Reset implements envs.Environment. The instance draws the room; the chance is
// not looked at.
func (s *Sokoban) Reset(instance, _ draw.Address) envs.Episode {
	return s.episode(s.room(board.Instance(instance, s.options.Instances, s.options.Pool)))
}

func (s *Sokoban) room(addr draw.Address) Room {
	if s.fixed {
		return s.spare
	}
	if room, ok := s.generator.generate(addr); ok {
		return room
	}
	return s.spare
}

// Cases implements envs.Environment: the layout, a pool's first 64 rooms, or 64 fixed ones.
func (s *Sokoban) Cases() []envs.Episode {
	s.casesOnce.Do(func() {
		if s.fixed {
			s.cases = []Room{s.spare}
			return
		}
		for _, addr := range board.Cases(s.options.Instances, s.options.Pool) {
			s.cases = append(s.cases, s.room(addr))
		}
	})
	episodes := make([]envs.Episode, len(s.cases))
	for i, room := range s.cases {
		episodes[i] = s.episode(room)
	}
	return episodes
}

// Widest implements envs.Bounded.
func (s *Sokoban) Widest() []envs.Episode {
	r := s.spare
	boxes := s.boxes()
	far := slices.Repeat([]int{len(r.fixed) - 1}, boxes)
	rows := board.WideRows(r.Height, r.Width, s.glyphs[boxOnTarget], boxes)
	return []envs.Episode{board.Widest(s.episode(r), s.observe(rows, r.Width, far[:1], far, far))}
}

func (s *Sokoban) observe(rows []string, width int, player, boxes, targets []int) string {
	return board.Observe(s.options.Observation, rows, width,
		board.Things{Glyph: s.glyphs[playerCode], Cells: player},
		board.Things{Glyph: s.glyphs[box], Cells: boxes},
		board.Things{Glyph: s.glyphs[target], Cells: targets})
}

// playerCode is player where a parameter has that name.
const playerCode = player

func (s *Sokoban) episode(room Room) envs.Episode { return &episode{sokoban: s, room: room.clone()} }

// episode is the state of a member's episode.
type episode struct {
	sokoban *Sokoban
	room    Room
	steps   int
}

// Observation implements envs.Episode.
func (e *episode) Observation() string {
	r := &e.room
	return e.sokoban.observe(r.Rows(e.sokoban.glyphs), r.Width, []int{r.player},
		r.places(func(at int) bool { return r.boxes[at] }),
		r.places(func(at int) bool { return r.fixed[at] == target }))
}

// Grid implements envs.Gridded.
func (e *episode) Grid() []string { return e.room.Rows(Standard) }

// Legal implements envs.Episode.
func (e *episode) Legal(action string) (string, bool) { return envs.Lookup(moves, action) }

// Choices implements envs.Episode: every move, also those that change nothing.
func (e *episode) Choices() []string { return slices.Clone(moves) }

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	move := slices.Index(moves, action)
	if move < 0 || e.Done() {
		panic(fmt.Sprintf("sokoban: step %q is not legal (done: %t)", action, e.Done()))
	}
	e.steps++
	tenths, effective := e.room.move(move)
	return envs.Outcome{Reward: float64(tenths) / 10, Done: e.Done(), Effective: effective, Success: e.Success()}
}

// StateKey implements envs.Episode: the grid. The number of actions so far,
// which counts only at the hundredth, is left out.
func (e *episode) StateKey() string { return strings.Join(e.Grid(), "\n") }

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.room.Solved() || e.steps >= MaxSteps }

// Success implements envs.Episode.
func (e *episode) Success() bool { return e.room.Solved() }

// Advice implements envs.Advised: the beginning of a shortest solution, if it is
// short enough.
func (e *episode) Advice(n int) []string {
	n = min(n, MaxSteps-e.steps)
	if n <= 0 {
		return nil
	}
	solution, _ := Solve(e.room, n)
	return solution
}
