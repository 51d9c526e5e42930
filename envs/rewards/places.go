package rewards

import (
	"maps"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/reward"
)

// kind is one kind of object, and the standard glyphs of cells that have it.
type kind struct{ name, glyphs string }

// layout says how an environment's grid is read.
type layout struct {
	player string // glyphs
	kinds  []kind
	// mover is what has to come to goals.
	mover, goals string
}

// layouts are the environments whose grids modules read, by name.
var layouts = map[string]layout{
	"frozenlake": {player: "PX√", kinds: []kind{{"goal", "G√"}, {"hole", "OX"}}, mover: "PX√", goals: "G√"},
	"sokoban":    {player: "PS", kinds: []kind{{"box", "X√"}, {"target", "O√S"}}, mover: "X√", goals: "O√S"},
}

// gridded are the names of the environments whose grids modules read.
func gridded() []string { return slices.Sorted(maps.Keys(layouts)) }

// Objects are the kinds of objects that claims about an environment's grid can name; nil if
// modules do not read its grid.
func Objects(environment string) []string {
	var names []string
	for _, k := range layouts[environment].kinds {
		names = append(names, k.name)
	}
	return names
}

// placed reports whether modules know the objects of an environment's grid.
func placed(env envs.Environment) bool {
	_, known := layouts[env.Name()]
	cases := env.Cases()
	if !known || len(cases) == 0 {
		return false
	}
	_, ok := cases[0].(envs.Gridded)
	return ok
}

// place is a cell's row and column, from 0 at the top left.
type place struct{ row, column int }

// places are the cells that have one of the glyphs, row by row.
func places(grid []string, glyphs string) []place {
	var out []place
	for i, row := range grid {
		for j, glyph := range []rune(row) {
			if strings.ContainsRune(glyphs, glyph) {
				out = append(out, place{i, j})
			}
		}
	}
	return out
}

// truth are the relations of a state, seen from the player.
func truth(l layout, grid []string) []reward.Relation {
	players := places(grid, l.player)
	if len(players) == 0 {
		return nil
	}
	var out []reward.Relation
	for _, k := range l.kinds {
		for _, at := range places(grid, k.glyphs) {
			out = append(out, reward.Relation{
				Object:     k.name,
				Vertical:   side(at.row-players[0].row, "above", "below"),
				Horizontal: side(at.column-players[0].column, "left", "right"),
			})
		}
	}
	return out
}

func side(d int, less, more string) string {
	switch {
	case d < 0:
		return less
	case d > 0:
		return more
	}
	return "same"
}

// distance is how far a state is from solved: from each goal to the nearest of what has to
// come to one, in cells along rows and columns, added up.
func distance(l layout, grid []string) float64 {
	sum := 0
	movers := places(grid, l.mover)
	for _, g := range places(grid, l.goals) {
		nearest := -1
		for _, m := range movers {
			d := max(g.row-m.row, m.row-g.row) + max(g.column-m.column, m.column-g.column)
			if nearest < 0 || d < nearest {
				nearest = d
			}
		}
		sum += max(nearest, 0)
	}
	return float64(sum)
}
