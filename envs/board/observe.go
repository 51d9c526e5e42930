package board

import (
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs"
)

// The forms of an observation (RAGEN v2's; v1 has the grid alone).
const (
	// Grid is the rows of glyphs, without separators.
	Grid = "grid"
	// Coord is the places of what matters.
	Coord = "coord"
	// GridCoord is the grid and, below it, the places.
	GridCoord = "grid_coord"
)

// Forms are the forms' names, in the order of the documentation.
var Forms = []string{Grid, Coord, GridCoord}

// Things are the places of one kind of thing.
type Things struct {
	// Glyph is the glyph of the kind.
	Glyph string
	// Cells are the places as row times width plus column, in the order they are listed.
	Cells []int
}

// Observe writes an observation in a form. Places are (row,column), both counted
// from 0 at the top left; a line for each kind of thing: "P (1,2)".
func Observe(form string, rows []string, width int, things ...Things) string {
	var s strings.Builder
	if form != Coord {
		s.WriteString(strings.Join(rows, "\n"))
	}
	if form == Grid {
		return s.String()
	}
	for i, t := range things {
		if i > 0 || form == GridCoord {
			s.WriteByte('\n')
		}
		s.WriteString(t.Glyph)
		if len(t.Cells) == 0 {
			s.WriteString(" none")
		}
		for _, cell := range t.Cells {
			s.WriteString(" (" + strconv.Itoa(cell/width) + "," + strconv.Itoa(cell%width) + ")")
		}
	}
	return s.String()
}

// Widest gives an episode that is only shown, never played: see envs.Bounded.
func Widest(episode envs.Episode, observation string) envs.Episode {
	return shown{episode, observation}
}

type shown struct {
	envs.Episode
	observation string
}

func (s shown) Observation() string { return s.observation }

// WideRows gives rows that take at least as many tokens as any rows of that size. They
// are digits and letters in turn, which no byte-level tokenizer merges, and count cells
// of a glyph that may be several tokens.
func WideRows(height, width int, glyph string, count int) []string {
	cells := make([][]string, height)
	for i := range cells {
		for j := range width {
			cells[i] = append(cells[i], [...]string{"3", "a"}[j%2])
		}
	}
	// First between digits: a tokenizer might merge it with other glyphs, letters or the
	// end of a line next to it.
	for _, between := range []bool{true, false} {
		for at := 0; at < height*width && count > 0; at++ {
			if i, j := at/width, at%width; between == (j%2 == 1 && j < width-1) {
				cells[i][j] = glyph
				count--
			}
		}
	}
	rows := make([]string, height)
	for i := range rows {
		rows[i] = strings.Join(cells[i], "")
	}
	return rows
}
