package sokoban

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs/board"
)

// Codes of cells, in gym-sokoban's order.
const (
	wall = iota
	floor
	target
	boxOnTarget
	box
	player
	playerOnTarget
)

// Glyphs are how cells are written, by their code: wall, floor, target, box on
// target, box, player, player on target.
type Glyphs [7]string

// Standard are RAGEN's glyphs. Layouts use them too.
var Standard = Glyphs{"#", "_", "O", "√", "X", "P", "S"}

// NewVocabulary are the glyphs of RAGEN's SokobanDifferentGridVocab.
var NewVocabulary = Glyphs{"W", ".", "G", "C", "B", "A", "@"}

// The moves, by their number; a player who moves against a box pushes it.
const (
	up = iota
	down
	left
	right
)

// moves are the actions' names in RAGEN's order (its ids are 1 to 4).
var moves = []string{"Up", "Down", "Left", "Right"}

// Room is a state of the game. The zero value has no cells; Parse and the
// environment make rooms.
type Room struct {
	Width, Height int
	// fixed are walls, floor and targets: [Height × Width]. Rooms share them.
	fixed []uint8
	// boxes are where boxes are: [Height × Width].
	boxes  []bool
	player int
	// open is how many boxes are on no target.
	open int
}

// Parse reads a room from rows of the standard glyphs. It must have walls all around, one
// player, as many boxes as targets, and a box that is on no target. Solve says whether it
// can be solved. Errors are of type *board.LayoutError.
func Parse(text string) (Room, error) {
	rows, err := board.Rows(text, strings.Join(Standard[:], ""))
	if err != nil {
		return Room{}, err
	}
	r := Room{Width: len(rows[0]), Height: len(rows), player: -1}
	r.fixed, r.boxes = make([]uint8, r.Width*r.Height), make([]bool, r.Width*r.Height)
	count, targets := 0, 0
	for i, row := range rows {
		for j, glyph := range row {
			code, at := code(glyph), i*r.Width+j
			wrong := func(want string) error {
				return &board.LayoutError{Line: i + 1, Column: j + 1, Found: fmt.Sprintf("%q", glyph), Want: want}
			}
			if code != wall && (i == 0 || j == 0 || i == r.Height-1 || j == r.Width-1) {
				return Room{}, wrong("a wall, " + Standard[wall] + ", all around")
			}
			switch code {
			case wall, floor, target:
				r.fixed[at] = code
			case boxOnTarget, playerOnTarget:
				r.fixed[at] = target
			default:
				r.fixed[at] = floor
			}
			if code == player || code == playerOnTarget {
				if r.player >= 0 {
					return Room{}, wrong(fmt.Sprintf("one player; the first is in line %d, column %d", r.player/r.Width+1, r.player%r.Width+1))
				}
				r.player = at
			}
			if code == box || code == boxOnTarget {
				r.boxes[at] = true
				count++
				if code == box {
					r.open++
				}
			}
			if r.fixed[at] == target {
				targets++
			}
		}
	}
	whole := func(found, want string) error { return &board.LayoutError{Found: found, Want: want} }
	switch {
	case r.player < 0:
		return Room{}, whole("no player", Standard[player]+" or, on a target, "+Standard[playerOnTarget])
	case count == 0:
		return Room{}, whole("no box", "at least one "+Standard[box])
	case count != targets:
		return Room{}, whole(fmt.Sprintf("%d boxes and %d targets", count, targets), "as many of both")
	case r.open == 0:
		return Room{}, whole("every box on a target", "at least one "+Standard[box]+" on none")
	}
	return r, nil
}

// code is the code of a standard glyph.
func code(glyph rune) uint8 {
	for c, g := range Standard {
		if g == string(glyph) {
			return uint8(c)
		}
	}
	panic(fmt.Sprintf("sokoban: glyph %q", glyph))
}

// cell is the code of what is seen at a place.
func (r *Room) cell(at int) uint8 {
	onTarget := r.fixed[at] == target
	switch {
	case at == r.player && onTarget:
		return playerOnTarget
	case at == r.player:
		return player
	case r.boxes[at] && onTarget:
		return boxOnTarget
	case r.boxes[at]:
		return box
	}
	return r.fixed[at]
}

// Rows writes the room in glyphs, a string a row.
func (r *Room) Rows(glyphs Glyphs) []string {
	rows := make([]string, r.Height)
	var s strings.Builder
	for i := range rows {
		s.Reset()
		for j := range r.Width {
			s.WriteString(glyphs[r.cell(i*r.Width+j)])
		}
		rows[i] = s.String()
	}
	return rows
}

// Solved says that every box is on a target.
func (r *Room) Solved() bool { return r.open == 0 }

// clone is a room that moves on its own.
func (r *Room) clone() Room {
	c := *r
	c.boxes = append([]bool(nil), r.boxes...)
	return c
}

// step is what a move adds to a place. Walls all around keep every place in the room.
func (r *Room) step(move int) int {
	switch move {
	case up:
		return -r.Width
	case down:
		return r.Width
	case left:
		return -1
	}
	return 1
}

// tenths of a point: every reward is a sum of these, and exact as a decimal.
const (
	moveTenths   = -1
	onTenths     = 10
	offTenths    = -10
	solvedTenths = 100
)

// move moves the player, and the box in front of it if the cell beyond is free. It
// returns the reward in tenths, and whether anything moved.
func (r *Room) move(move int) (tenths int, effective bool) {
	tenths = moveTenths
	d := r.step(move)
	to := r.player + d
	if r.fixed[to] == wall {
		return tenths, false
	}
	if r.boxes[to] {
		behind := to + d
		if r.fixed[behind] == wall || r.boxes[behind] {
			return tenths, false
		}
		r.boxes[to], r.boxes[behind] = false, true
		if r.fixed[to] == target {
			tenths += offTenths
			r.open++
		}
		if r.fixed[behind] == target {
			tenths += onTenths
			r.open--
		}
		if r.open == 0 {
			tenths += solvedTenths
		}
	}
	r.player = to
	return tenths, true
}

// places are where cells are that have a property, in order.
func (r *Room) places(has func(at int) bool) []int {
	var cells []int
	for at := range r.fixed {
		if has(at) {
			cells = append(cells, at)
		}
	}
	return cells
}
