package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/credit"
)

// Step lets the environments answer a turn's samples and stores the turn's step
// table. The states are rebuilt by replaying the recorded actions.
func (h *Host) Step(ctx context.Context, in StepInput) (_ StepResult, err error) {
	defer edge(ctx, &err, "step turn %d of run %s", in.Turn, in.Run.ID)
	defer heartbeat(ctx)()
	start := time.Now()
	rc, err := h.contexts.read(ctx, h.Store, in.Run)
	if err != nil {
		return StepResult{}, err
	}
	task, err := rc.task(in.Rollout)
	if err != nil {
		return StepResult{}, err
	}
	generated, err := store.GetTable[GenerateRow](ctx, h.Store, in.Generate)
	if err != nil {
		return StepResult{}, err
	}
	history, err := readTurns(ctx, h.Store, in.Turns)
	if err != nil {
		return StepResult{}, err
	}
	rows := make([]StepRow, len(generated))
	alive := 0
	for i, g := range generated {
		rows[i] = StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: !g.Alive}
		if !g.Alive {
			continue
		}
		if err := play(rc, task, in, &rows[i], g, history); err != nil {
			return StepResult{}, fmt.Errorf("row %d: %w", g.Row, err)
		}
		if !rows[i].Done {
			alive++
		}
	}
	ref, err := store.PutTable(ctx, h.Store, dir(in.Run, in.Branch, in.Rollout), turnName(in.Rollout, in.Turn, "step"), rows)
	if err != nil {
		return StepResult{}, err
	}
	return StepResult{Table: ref, Alive: alive, Telemetry: Telemetry{Seconds: time.Since(start).Seconds()}}, nil
}

// turn is one recorded turn of all rows.
type turn struct {
	generate []GenerateRow
	step     []StepRow
}

// readTurns reads the tables of recorded turns and checks that they fit.
func readTurns(ctx context.Context, s store.Store, refs []store.TurnRefs) ([]turn, error) {
	var out []turn
	for i, r := range refs {
		g, err := store.GetTable[GenerateRow](ctx, s, r.Generate)
		if err != nil {
			return nil, err
		}
		st, err := store.GetTable[StepRow](ctx, s, r.Step)
		if err != nil {
			return nil, err
		}
		if len(g) != len(st) || len(out) > 0 && len(g) != len(out[0].generate) {
			return nil, fmt.Errorf("turn %d has %d sampled and %d stepped rows: %w", i+1, len(g), len(st), store.ErrInvalid)
		}
		out = append(out, turn{generate: g, step: st})
	}
	return out, nil
}

// play answers one row's sample.
func play(rc *runContext, s *task, in StepInput, row *StepRow, g GenerateRow, history []turn) error {
	a := rc.address(s, in.Branch, in.Rollout, int(g.Group), int(g.Member))
	env := s.env(int(g.Group))
	actions := make([][]string, len(history))
	recorded := make([]envs.Recorded, len(history), len(history)+1)
	context := 0
	for t, h := range history {
		if int(g.Row) >= len(h.step) {
			return fmt.Errorf("turn %d has no such row: %w", t+1, store.ErrInvalid)
		}
		before := h.generate[g.Row]
		actions[t] = h.step[g.Row].Actions
		recorded[t] = envs.Recorded{Actions: actions[t], Sampled: before.SampledIDs}
		if before.Restart {
			context = 0
		}
		context += len(before.PromptIDs) + len(before.SampledIDs)
	}
	if g.Restart {
		context = 0
	}
	context += len(g.PromptIDs) + len(g.SampledIDs)
	episode, played, err := envs.Replay(env, a.instance, a.chance, actions)
	if err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	left := env.MaxActions()
	if n := len(played); n > 0 {
		left = played[n-1].ActionsLeft
	}
	reply, truncated := s.protocol.ReadReply(rc.tokenizer, env, g.SampledIDs)
	row.StateBefore = episode.StateKey()
	t := s.protocol.Play(episode, reply, left)
	row.Text = rc.tokenizer.Decode(g.SampledIDs)
	row.Actions, row.Reward, row.Penalty = t.Actions, t.Reward, t.Penalty
	if s.overlongCache > 0 {
		punishment, err := credit.Overlong(len(g.SampledIDs), s.maxNewTokens, s.overlongCache)
		if err != nil {
			return err
		}
		row.Penalty += punishment
	}
	row.Valid = len(t.Actions) > 0 && t.Invalid == 0 && !(truncated && !reply.Formatted)
	row.Effective, row.Invalid, row.Success = int32(t.Effective), int32(t.Invalid), t.Success
	row.StateKey, row.Observation = episode.StateKey(), episode.Observation()
	row.Done = t.Ended() || in.Turn >= s.turns
	if row.Done {
		return nil
	}
	var ids []int32
	if row.NextRestart = s.protocol.Restarts(in.Turn + 1); row.NextRestart {
		recorded = append(recorded, envs.Recorded{Actions: t.Actions, Sampled: g.SampledIDs})
		ids, err = s.protocol.WindowIDs(rc.tokenizer, env, a.instance, a.chance, recorded)
		context = 0
	} else {
		next := envs.NextTurn{Number: in.Turn + 1, Reward: t.Reward, ActionsLeft: t.ActionsLeft}
		ids, err = s.protocol.ContinueIDs(rc.tokenizer, env, episode, next, g.SampledIDs)
	}
	if err != nil {
		return err
	}
	if context+len(ids) > s.widths[in.Turn] {
		row.Done, row.NextRestart, row.ContextFull = true, false, true
		return nil
	}
	row.NextIDs = ids
	return nil
}

// trajectories puts the turns of a rollout together, a row a member.
func trajectories(s *task, turns []turn) []TrajectoryRow {
	rows := make([]TrajectoryRow, len(turns[0].generate))
	for i := range rows {
		first := turns[0].generate[i]
		r := TrajectoryRow{
			Row: first.Row, Group: first.Group, Member: first.Member, Environment: s.label(int(first.Group)), Valid: true,
			StateKeys: []string{turns[0].step[i].StateBefore},
		}
		for _, t := range turns {
			g, st := t.generate[i], t.step[i]
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
			r.Actions = append(r.Actions, strings.Join(st.Actions, " "+envs.Separator+" "))
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
