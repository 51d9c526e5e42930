package episode

import (
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
)

// Turn is one recorded turn of all rows.
type Turn struct {
	Generate []GenerateRow
	Step     []StepRow
	// Slots are the rows of the turn's tables in which the rows were sampled, where a search chose
	// after the turn or a later one; nil if they are the same.
	Slots []int32
}

// Slot is the row of the turn's tables in which a row was sampled.
func (t Turn) Slot(row int) int32 {
	if t.Slots == nil {
		return int32(row)
	}
	return t.Slots[row]
}

// Rounds are the turns of a rollout by its rounds. Turns after one of a round that is missing are left
// out.
func Rounds(refs []store.TurnRefs) (out [][]store.TurnRefs) {
	for len(refs) > 0 {
		n := 0
		for n < len(refs) && refs[n].Round == len(out) {
			n++
		}
		if n == 0 {
			return out
		}
		out, refs = append(out, refs[:n]), refs[n:]
	}
	return out
}

// Trajectories puts the turns of a rollout together, a row a member. label is the name of what a group
// plays.
func Trajectories(turns []Turn, label func(group int) string) []TrajectoryRow {
	rows := make([]TrajectoryRow, len(turns[0].Generate))
	for i := range rows {
		first := turns[0].Generate[i]
		r := TrajectoryRow{
			Row: first.Row, Group: first.Group, Member: first.Member, Environment: label(int(first.Group)), Valid: true,
			StateKeys: []string{turns[0].Step[i].StateBefore},
		}
		for _, t := range turns {
			g, st := t.Generate[i], t.Step[i]
			if !g.Alive {
				break
			}
			r.IDs = append(r.IDs, g.PromptIDs...)
			r.IDs = append(r.IDs, g.SampledIDs...)
			r.PromptLengths = append(r.PromptLengths, int32(len(g.PromptIDs)))
			r.SampledLengths = append(r.SampledLengths, int32(len(g.SampledIDs)))
			r.Restarts = append(r.Restarts, g.Restart)
			r.StateKeys = append(r.StateKeys, st.StateKey)
			r.RolloutLogProbs = append(r.RolloutLogProbs, g.RolloutLogProbs...)
			r.RolloutEntropies = append(r.RolloutEntropies, g.RolloutEntropies...)
			r.Rewards = append(r.Rewards, st.Reward)
			r.Penalties = append(r.Penalties, st.Penalty)
			r.Actions = append(r.Actions, strings.Join(st.Actions, Separator))
			r.Executed = append(r.Executed, int32(len(st.Actions)))
			r.Effective = append(r.Effective, st.Effective)
			r.Invalid = append(r.Invalid, st.Invalid)
			r.Valid = r.Valid && st.Valid
			r.Truncated = r.Truncated || g.Truncated || st.ContextFull
			r.Success = st.Success
		}
		rows[i] = r
	}
	return rows
}
