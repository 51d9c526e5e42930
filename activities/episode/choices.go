package episode

import (
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
)

// ChoiceRow says what became of a row of a turn after which a search chose.
type ChoiceRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"` // the slot in the group
	// Alive is false for a row that had ended before the turn.
	Alive bool `parquet:"alive"`
	// Score is the sum of rewards and penalties of the row's turns, up to this one.
	Score float64 `parquet:"score"`
	Kept  bool    `parquet:"kept"`
	// Next are the rows that continue it in the next turn or, after the last one, the trajectory
	// that it is. Empty if it was not kept.
	Next []int32 `parquet:"next,list"`
}

// ScoreOf is the sum of a row's rewards and penalties, turn by turn.
func ScoreOf(turns []Turn, row int) float64 {
	var score float64
	for _, t := range turns {
		if t.Generate[row].Alive {
			score += t.Step[row].Reward + t.Step[row].Penalty
		}
	}
	return score
}

// Follow puts at each row's place the past of the row that it continues, by the choices after the
// last of the turns.
func Follow(turns []Turn, choices []ChoiceRow) error {
	if len(choices) != len(turns[0].Generate) {
		return fmt.Errorf("%d choices about %d rows: %w", len(choices), len(turns[0].Generate), store.ErrInvalid)
	}
	groups := int(choices[len(choices)-1].Group) + 1
	var from []int
	for i, c := range choices {
		for _, next := range c.Next {
			if int(next) != len(from) {
				return fmt.Errorf("row %d continues row %d, want row %d: %w", next, i, len(from), store.ErrInvalid)
			}
			from = append(from, i)
		}
	}
	if len(from) == 0 || len(from)%groups != 0 {
		return fmt.Errorf("%d rows of %d groups continue: %w", len(from), groups, store.ErrInvalid)
	}
	members := len(from) / groups
	for n, t := range turns {
		after := Turn{Generate: make([]GenerateRow, len(from)), Step: make([]StepRow, len(from)), Slots: make([]int32, len(from))}
		for row, parent := range from {
			g, st := t.Generate[parent], t.Step[parent]
			g.Row, g.Member = int32(row), int32(row%members)
			st.Row, st.Member = g.Row, g.Member
			if int(g.Group) != row/members {
				return fmt.Errorf("row %d of group %d continues row %d of group %d: %w", row, row/members, parent, g.Group, store.ErrInvalid)
			}
			after.Generate[row], after.Step[row], after.Slots[row] = g, st, t.Slot(parent)
		}
		turns[n] = after
	}
	return nil
}
