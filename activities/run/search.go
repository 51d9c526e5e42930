package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
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

// ChooseRows says which rows of a turn are kept, and which rows continue them. turns are those up to it.
// A group's slots are its searches, one after the other; a search's are its prefixes, and a prefix's
// its candidates. Those that are kept stay in the order of their slots, so that with one
// candidate nothing moves. last says that no turn follows; then each that is kept is a trajectory.
// over reports whether all that are kept have ended.
func ChooseRows(s spec.Search, slots int, turns []Turn, last bool) (rows []ChoiceRow, over bool, err error) {
	at := turns[len(turns)-1]
	size := s.Slots()
	if slots%size != 0 || len(at.Generate)%slots != 0 {
		return nil, false, fmt.Errorf("%d rows in groups of %d, a search has %d: %w", len(at.Generate), slots, size, store.ErrInvalid)
	}
	over = true
	for i, g := range at.Generate {
		rows = append(rows, ChoiceRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Score: ScoreOf(turns, i)})
	}
	if s.Depth > 0 {
		over, err = lookAhead(s, turns, rows, last)
		return rows, over, err
	}
	for from := 0; from < len(rows); from += size {
		beam, rewards := make([]search.Prefix, s.Width), make([][]float64, s.Width)
		for i := range s.Width {
			first := from + i*s.Candidates
			beam[i].Path = []int{i}
			if !s.Whole && !rows[first].Alive { // it ended before, so its other slots repeat it
				beam[i].Score = rows[first].Score
				continue
			}
			for j := range s.Candidates {
				rewards[i] = append(rewards[i], rows[first+j].Score)
			}
		}
		best, err := search.Widen(beam, rewards, s.Width)
		if err != nil {
			return nil, false, fmt.Errorf("search of row %d: %w: %w", from, err, store.ErrInvalid)
		}
		for _, prefix := range best {
			slot := from + prefix.Path[0]*s.Candidates
			if len(prefix.Path) > 1 {
				slot += prefix.Path[1]
			}
			rows[slot].Kept = true
			over = over && (!rows[slot].Alive || at.Step[slot].Done)
		}
	}
	each := s.Candidates
	if last || over {
		each = 1
	}
	next := int32(0)
	for i := range rows {
		for range each {
			if rows[i].Kept {
				rows[i].Next = append(rows[i].Next, next)
				next++
			}
		}
	}
	return rows, over, nil
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

// readChoices reads what was chosen after a turn.
func readChoices(ctx context.Context, s store.Store, ref store.Ref) ([]ChoiceRow, error) {
	rows, err := tables.Get[ChoiceRow](ctx, s, ref)
	if err != nil {
		return nil, fmt.Errorf("choices of a search: %w", err)
	}
	return rows, nil
}

// BranchesArtifact is the table of the turns of searched trajectories, among a manifest's further
// artifacts.
const BranchesArtifact = "branches"

// BranchRow says in which slot a turn of a trajectory was sampled, in the order of rows and turns.
type BranchRow struct {
	Row  int32 `parquet:"row"`
	Turn int32 `parquet:"turn"` // from 0
	// Slot is the row of the turn's generate table.
	Slot int32 `parquet:"slot"`
	// Inherited says that a trajectory before this one has the same turn.
	Inherited bool `parquet:"inherited"`
}

// Branches are the turns of a round's trajectories, of which the first is row first. It is nil where
// nothing was chosen.
func Branches(turns []Turn, first int32) []BranchRow {
	if len(turns) == 0 || turns[0].Slots == nil {
		return nil
	}
	out := []BranchRow{}
	seen := map[turnSlot]bool{}
	for i := range turns[0].Generate {
		for k, t := range turns {
			if !t.Generate[i].Alive {
				break
			}
			at := turnSlot{int32(k), t.Slot(i)}
			out = append(out, BranchRow{Row: first + int32(i), Turn: at.turn, Slot: at.slot, Inherited: seen[at]})
			seen[at] = true
		}
	}
	return out
}

type turnSlot struct{ turn, slot int32 }

// Trained says which turns of rows an update learns from: each turn that rows share, once, in the
// first of them, [rows][turns]. It is nil without branches. branches may have other rows too. A turn
// without a branch is a store.ErrInvalid.
func Trained(rows []TrajectoryRow, branches []BranchRow) ([][]bool, error) {
	if branches == nil {
		return nil, nil
	}
	slots := map[[2]int32]int32{}
	for _, b := range branches {
		slots[[2]int32{b.Row, b.Turn}] = b.Slot
	}
	seen := map[turnSlot]int32{} // the group that has the turn, by its slot: groups of other rounds have the same slots
	out := make([][]bool, len(rows))
	for i, r := range rows {
		for k := range r.Turns() {
			slot, ok := slots[[2]int32{r.Row, int32(k)}]
			if !ok {
				return nil, fmt.Errorf("turn %d of row %d has no branch: %w", k+1, r.Row, store.ErrInvalid)
			}
			at := turnSlot{int32(k), slot}
			group, known := seen[at]
			out[i] = append(out[i], !known || group != r.Group)
			seen[at] = r.Group
		}
	}
	return out, nil
}

// Searched counts what a search generated and did not keep: turns of rows, and their sampled tokens.
type Searched struct{ Turns, Tokens int }

// SearchedOf counts a round's. played are its turns as they were generated; branches its
// trajectories.
func SearchedOf(played []Turn, branches []BranchRow) (out Searched) {
	kept := map[turnSlot]bool{}
	for _, b := range branches {
		kept[turnSlot{b.Turn, b.Slot}] = true
	}
	for k, t := range played {
		for i, g := range t.Generate {
			if g.Alive && !kept[turnSlot{int32(k), int32(i)}] {
				out.Turns++
				out.Tokens += len(g.SampledIDs)
			}
		}
	}
	return out
}
