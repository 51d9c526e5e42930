package frozenlake

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// The glyphs of layouts are gymnasium's: start, frozen, hole, goal.
const layoutGlyphs = "SFHG"

// The moves in gymnasium's order, which is the table's order too: the neighbours of a
// move in the circle are the two perpendicular directions.
const (
	left = iota
	down
	right
	up
)

// moves are the actions' names.
var moves = []string{"Left", "Down", "Right", "Up"}

// Lake is a layout. States are its cells, counted from 0 by rows.
type Lake struct {
	Width, Height int
	// cells are layout glyphs: [Height × Width].
	cells []byte
	start int
}

// Parse reads a lake from rows of S, F, H and G: one start, at least one goal, and
// a way from one to the other. Errors are of type *board.LayoutError.
func Parse(text string) (Lake, error) {
	rows, err := board.Rows(text, layoutGlyphs)
	if err != nil {
		return Lake{}, err
	}
	l := Lake{Width: len(rows[0]), Height: len(rows), start: -1}
	goals := 0
	for i, row := range rows {
		for j, glyph := range row {
			if glyph == 'S' {
				if l.start >= 0 {
					return Lake{}, &board.LayoutError{Line: i + 1, Column: j + 1, Found: "'S'", Want: fmt.Sprintf("one start; the first is in line %d, column %d", l.start/l.Width+1, l.start%l.Width+1)}
				}
				l.start = i*l.Width + j
			}
			if glyph == 'G' {
				goals++
			}
			l.cells = append(l.cells, byte(glyph))
		}
	}
	switch {
	case l.start < 0:
		return Lake{}, &board.LayoutError{Found: "no start", Want: "one S"}
	case goals == 0:
		return Lake{}, &board.LayoutError{Found: "no goal", Want: "at least one G"}
	case len(l.way(l.start)) == 0:
		return Lake{}, &board.LayoutError{Found: "no way from S to G that has no hole", Want: "one"}
	}
	return l, nil
}

// Rows gives the layout, a string a row.
func (l *Lake) Rows() []string {
	rows := make([]string, l.Height)
	for i := range rows {
		rows[i] = string(l.cells[i*l.Width : (i+1)*l.Width])
	}
	return rows
}

// ends says that an episode ends in a cell.
func (l *Lake) ends(at int) bool { return l.cells[at] == 'H' || l.cells[at] == 'G' }

// to is where a move leads when nothing slips: at the edge one stays.
func (l *Lake) to(at, move int) int {
	row, column := at/l.Width, at%l.Width
	switch move {
	case left:
		column = max(column-1, 0)
	case down:
		row = min(row+1, l.Height-1)
	case right:
		column = min(column+1, l.Width-1)
	case up:
		row = max(row-1, 0)
	}
	return row*l.Width + column
}

// way is a shortest way from a cell to a goal without a hole, the first in the
// order of the moves; empty if there is none.
func (l *Lake) way(from int) []string {
	type arrival struct{ from, move int }
	met := make([]arrival, len(l.cells))
	for at := range met {
		met[at].from = -1
	}
	met[from].from = from
	queue := []int{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if l.cells[at] == 'G' {
			var way []string
			for ; at != from; at = met[at].from {
				way = append(way, moves[met[at].move])
			}
			slices.Reverse(way)
			return way
		}
		for move := range moves {
			if to := l.to(at, move); met[to].from < 0 && l.cells[to] != 'H' {
				met[to] = arrival{at, move}
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// attempts is how many lakes are drawn for one with a path. After them a way is
// frozen into the last, so that any probability gives a lake.
const attempts = 1000

// generate draws a lake: start and goal different cells anywhere (RAGEN), or the
// first and the last cell (gymnasium), every other cell frozen with a probability.
func generate(size int, frozen float64, random bool, addr draw.Address) Lake {
	r := addr.Rand()
	l := Lake{Width: size, Height: size, cells: make([]byte, size*size)}
	goal := 0
	for range attempts {
		goal = l.draw(frozen, random, r)
		if len(l.way(l.start)) > 0 {
			return l
		}
	}
	l.freeze(goal)
	return l
}

// freeze makes the way to the goal frozen: along the row, then along the column.
func (l *Lake) freeze(goal int) {
	for at := l.start; at != goal; {
		move := right
		switch {
		case at%l.Width > goal%l.Width:
			move = left
		case at%l.Width < goal%l.Width:
		case at < goal:
			move = down
		default:
			move = up
		}
		if at = l.to(at, move); at != goal {
			l.cells[at] = 'F'
		}
	}
}

func (l *Lake) draw(frozen float64, random bool, r *rand.Rand) (goal int) {
	l.start, goal = 0, len(l.cells)-1
	if random {
		l.start, goal = r.IntN(len(l.cells)), r.IntN(len(l.cells)-1)
		if goal >= l.start {
			goal++
		}
	}
	for at := range l.cells {
		l.cells[at] = 'H'
		if r.Float64() < frozen {
			l.cells[at] = 'F'
		}
	}
	l.cells[l.start], l.cells[goal] = 'S', 'G'
	return goal
}

// Slip is how moves go astray.
type Slip struct {
	// Slippery says that they do; otherwise SuccessRate does not count.
	Slippery bool
	// SuccessRate is the probability of the direction meant; the rest is shared by
	// the two across (gymnasium 1.4).
	SuccessRate float64
}

// sure says that moves always go in the chosen direction.
func (s Slip) sure() bool { return !s.Slippery || s.SuccessRate == 1 }

// outcomes are the directions that a move may take and their probabilities, in
// gymnasium's order.
func (s Slip) outcomes(move int) (directions []int, probabilities []float64) {
	if !s.Slippery {
		return []int{move}, []float64{1}
	}
	astray := (1 - s.SuccessRate) / 2
	return []int{(move + 3) % 4, move, (move + 1) % 4}, []float64{astray, s.SuccessRate, astray}
}

// Transitions gives the exact dynamics, as gymnasium's P: [cells][4][1 or 3].
// A hole and a goal lead to themselves, without reward.
func (l *Lake) Transitions(slip Slip) envs.Table {
	table := make(envs.Table, len(l.cells))
	for at := range table {
		table[at] = make([][]envs.Transition, len(moves))
		for move := range moves {
			if l.ends(at) {
				table[at][move] = []envs.Transition{{Probability: 1, Next: at, Done: true}}
				continue
			}
			directions, probabilities := slip.outcomes(move)
			for k, direction := range directions {
				to := l.to(at, direction)
				t := envs.Transition{Probability: probabilities[k], Next: to, Done: l.ends(to)}
				if l.cells[to] == 'G' {
					t.Reward = 1
				}
				table[at][move] = append(table[at][move], t)
			}
		}
	}
	return table
}

// The glyphs of observations are RAGEN's.
const (
	playerGlyph = "P"
	frozenGlyph = "_"
	holeGlyph   = "O"
	goalGlyph   = "G"
	fallenGlyph = "X" // player in a hole
	homeGlyph   = "√" // player on a goal
)

// grid writes the lake with the player in it; the start is a frozen cell.
func (l *Lake) grid(player int) []string {
	rows := make([]string, l.Height)
	var s strings.Builder
	for i := range rows {
		s.Reset()
		for j := range l.Width {
			at := i*l.Width + j
			s.WriteString(glyph(l.cells[at], at == player))
		}
		rows[i] = s.String()
	}
	return rows
}

func glyph(cell byte, player bool) string {
	switch {
	case cell == 'H' && player:
		return fallenGlyph
	case cell == 'G' && player:
		return homeGlyph
	case player:
		return playerGlyph
	case cell == 'H':
		return holeGlyph
	case cell == 'G':
		return goalGlyph
	}
	return frozenGlyph
}

// places are the cells with a layout glyph, in order.
func (l *Lake) places(glyph byte) []int {
	var places []int
	for at, cell := range l.cells {
		if cell == glyph {
			places = append(places, at)
		}
	}
	return places
}
