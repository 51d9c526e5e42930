package episode

import (
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
)

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

// SampledTokens counts the sampled tokens of trajectories, those that several share once.
func SampledTokens(rows []TrajectoryRow, branches []BranchRow) (tokens int) {
	for _, r := range rows {
		tokens += r.Sampled()
	}
	for _, b := range branches {
		if b.Inherited {
			tokens -= int(rows[b.Row].SampledLengths[b.Turn])
		}
	}
	return tokens
}
