package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Turn is one recorded turn of all rows.
type Turn struct {
	Generate []GenerateRow
	Step     []StepRow
}

// ReadTurns reads the tables of recorded turns and checks that they fit.
func ReadTurns(ctx context.Context, s store.Store, refs []store.TurnRefs) ([]Turn, error) {
	var out []Turn
	for i, r := range refs {
		g, err := tables.Get[GenerateRow](ctx, s, r.Generate)
		if err != nil {
			return nil, err
		}
		st, err := tables.Get[StepRow](ctx, s, r.Step)
		if err != nil {
			return nil, err
		}
		if len(g) != len(st) || len(out) > 0 && len(g) != len(out[0].Generate) {
			return nil, fmt.Errorf("turn %d has %d sampled and %d stepped rows: %w", i+1, len(g), len(st), store.ErrInvalid)
		}
		out = append(out, Turn{Generate: g, Step: st})
	}
	return out, nil
}

// Trajectories puts the turns of a rollout together, a row a member.
func Trajectories(s *Task, turns []Turn) []TrajectoryRow {
	rows := make([]TrajectoryRow, len(turns[0].Generate))
	for i := range rows {
		first := turns[0].Generate[i]
		r := TrajectoryRow{
			Row: first.Row, Group: first.Group, Member: first.Member, Environment: s.label(int(first.Group)), Valid: true,
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
			r.Rewards = append(r.Rewards, st.Reward)
			r.Penalties = append(r.Penalties, st.Penalty)
			r.Actions = append(r.Actions, strings.Join(st.Actions, separator))
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
