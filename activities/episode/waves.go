package episode

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/store"
)

// ForkRow says where a row of the next wave of a rollout begins.
type ForkRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Parent is the row of which it has the first Turn turns. With 0 turns it begins anew.
	Parent int32 `parquet:"parent"`
	Turn   int32 `parquet:"turn"`
	// Places is the number of candidates, and Draw the random number from [0, 1) that chose this one. Where
	// the policy's certainty decides, Draw is the number that decided its turn. Both are 0 for a new episode.
	Places int32   `parquet:"places"`
	Draw   float64 `parquet:"draw"`
}

// FirstTurn is the first turn that a row of a wave plays, from 1.
func FirstTurn(forks []ForkRow) int {
	first := slices.MinFunc(forks, func(a, b ForkRow) int { return int(a.Turn - b.Turn) })
	return int(first.Turn) + 1
}

// Inherit gives the rows of a wave the turns that they inherit.
func Inherit(turns []Turn, forks []ForkRow) error {
	rows := len(turns[0].Generate)
	for n := range turns {
		if turns[n].Slots == nil {
			turns[n].Slots = make([]int32, rows)
			for row := range rows {
				turns[n].Slots[row] = int32(row)
			}
		}
	}
	for _, f := range forks {
		if f.Row < 0 || int(f.Row) >= rows || f.Parent < 0 || f.Parent >= f.Row || f.Turn < 0 || int(f.Turn) >= len(turns) {
			return fmt.Errorf("row %d has %d turns of row %d, of %d rows and %d turns: %w", f.Row, f.Turn, f.Parent, rows, len(turns), store.ErrInvalid)
		}
		for _, t := range turns[:f.Turn] {
			g, st := t.Generate[f.Parent], t.Step[f.Parent]
			if !g.Alive || st.Done || g.Group != f.Group {
				return fmt.Errorf("row %d of group %d branches from row %d of group %d after a turn that ends it: %w", f.Row, f.Group, f.Parent, g.Group, store.ErrInvalid)
			}
			g.Row, g.Member = f.Row, f.Member
			st.Row, st.Member = f.Row, f.Member
			t.Generate[f.Row], t.Step[f.Row], t.Slots[f.Row] = g, st, t.Slot(int(f.Parent))
		}
	}
	return nil
}

// Grow adds a turn of a wave: turn n, from 0, of the rows that played it.
func Grow(turns []Turn, n int, played Turn) []Turn {
	if n == len(turns) {
		last := Turn{Slots: make([]int32, len(played.Generate))}
		for i, g := range played.Generate {
			last.Slots[i] = int32(i)
			last.Generate = append(last.Generate, GenerateRow{Row: g.Row, Group: g.Group, Member: g.Member})
			last.Step = append(last.Step, StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Done: true})
		}
		turns = append(turns, last)
	}
	for i, g := range played.Generate {
		if g.Alive {
			turns[n].Generate[i], turns[n].Step[i] = g, played.Step[i]
		}
	}
	return turns
}

// Wave is how far a wave of a rollout is.
type Wave struct {
	// Turns are those before the next one, from the first of the episodes on. Rows that do not play the next
	// one have ended.
	Turns []Turn
	// Playing says which rows play the next turn unless they have ended, [rows]; nil is all.
	Playing []bool
	// Asleep are the rows that begin in a later turn.
	Asleep int
}
