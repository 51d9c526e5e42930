package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/starter"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// protocolOf is the turn protocol a spec asks for.
func protocolOf(t spec.Train) envs.Protocol {
	return envs.Protocol{Think: t.Rollout.Think, FormatPenalty: t.Rollout.FormatPenalty, Penalty: envs.Penalty(t.Rollout.Penalty)}
}

// firstPrompts are the initial states of a rollout: its rows, and each row's
// context. The prompt comes from the group's address, so it is the same for all
// members.
func (k *kit) firstPrompts(branch int, r Rollout) ([]GenerateRow, [][]int32, error) {
	groups, members := k.size(r)
	var rows []GenerateRow
	var contexts [][]int32
	for g := range groups {
		a := k.address(branch, r, g, 0)
		ids, err := k.protocol.PromptIDs(k.tokenizer, k.env, k.env.Reset(a.instance, a.chance))
		if err != nil {
			return nil, nil, fmt.Errorf("prompt of group %d: %w", g, err)
		}
		if width := k.train.Rollout.PromptTokens[0]; len(ids) > width {
			return nil, nil, fmt.Errorf("prompt of group %d has %d tokens, rollout.prompt_tokens allows %d: %w", g, len(ids), width, store.ErrInvalid)
		}
		for m := range members {
			rows = append(rows, GenerateRow{Row: int32(g*members + m), Group: int32(g), Member: int32(m), Alive: true, PromptIDs: ids})
			contexts = append(contexts, ids)
		}
	}
	return rows, contexts, nil
}

// Step lets the environments answer a turn's samples and stores the turn's step
// table. The states are rebuilt by replaying the recorded actions.
func (h *Host) Step(ctx context.Context, in StepInput) (StepResult, error) {
	out, err := h.step(ctx, in)
	return out, edge(ctx, fmt.Sprintf("step turn %d of run %s", in.Turn, in.Run.ID), err)
}

func (h *Host) step(ctx context.Context, in StepInput) (StepResult, error) {
	defer heartbeat(ctx)()
	start := time.Now()
	k, err := h.kits.read(ctx, h.Store, in.Run)
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
		if err := k.play(in, &rows[i], g, history); err != nil {
			return StepResult{}, fmt.Errorf("row %d: %w", g.Row, err)
		}
		if !rows[i].Done {
			alive++
		}
	}
	ref, err := store.PutTable(ctx, h.Store, dir(in.Run, in.Branch, in.Rollout), fmt.Sprintf("turn-%d.step", in.Turn), rows)
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
func (k *kit) play(in StepInput, row *StepRow, g GenerateRow, history []turn) error {
	a := k.address(in.Branch, in.Rollout, int(g.Group), int(g.Member))
	actions := make([][]string, len(history))
	context := len(g.PromptIDs) + len(g.SampledIDs)
	for t, h := range history {
		if int(g.Row) >= len(h.step) {
			return fmt.Errorf("turn %d has no such row: %w", t+1, store.ErrInvalid)
		}
		actions[t] = h.step[g.Row].Actions
		context += len(h.generate[g.Row].PromptIDs) + len(h.generate[g.Row].SampledIDs)
	}
	episode, played, err := envs.Replay(k.env, a.instance, a.chance, actions)
	if err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	left := k.env.MaxActions()
	if n := len(played); n > 0 {
		left = played[n-1].ActionsLeft
	}
	reply, truncated := k.protocol.ReadReply(k.tokenizer, k.env, g.SampledIDs)
	t := k.protocol.Play(episode, reply, left)
	row.Text = k.tokenizer.Decode(g.SampledIDs)
	row.Actions, row.Reward, row.Penalty = t.Actions, t.Reward, t.Penalty
	row.Valid = len(t.Actions) > 0 && t.Invalid == 0 && !(truncated && !reply.Formatted)
	row.Effective, row.Success = t.Effective > 0, t.Success
	row.StateKey, row.Observation = episode.StateKey(), episode.Observation()
	row.Done = t.Ended() || in.Turn >= k.train.Rollout.Turns
	if row.Done {
		return nil
	}
	next := envs.NextTurn{Number: in.Turn + 1, Reward: t.Reward, ActionsLeft: t.ActionsLeft}
	ids, err := k.protocol.ContinueIDs(k.tokenizer, k.env, episode, next, g.SampledIDs)
	if err != nil {
		return err
	}
	if context+len(ids) > k.train.Rollout.PromptTokens[in.Turn] {
		row.Done = true // the context is full: the episode ends, counted as truncated
		return nil
	}
	row.NextIDs = ids
	return nil
}

// trajectories puts the turns of a rollout together, a row a member.
func trajectories(turns []turn) []TrajectoryRow {
	rows := make([]TrajectoryRow, len(turns[0].generate))
	for i := range rows {
		first := turns[0].generate[i]
		r := TrajectoryRow{Row: first.Row, Group: first.Group, Member: first.Member, Valid: true}
		done := false
		for _, t := range turns {
			g, s := t.generate[i], t.step[i]
			if !g.Alive {
				break
			}
			r.IDs = append(r.IDs, g.PromptIDs...)
			r.IDs = append(r.IDs, g.SampledIDs...)
			r.PromptLengths = append(r.PromptLengths, int32(len(g.PromptIDs)))
			r.SampledLengths = append(r.SampledLengths, int32(len(g.SampledIDs)))
			r.RolloutLogProbs = append(r.RolloutLogProbs, g.RolloutLogProbs...)
			r.Rewards = append(r.Rewards, s.Reward)
			r.Penalties = append(r.Penalties, s.Penalty)
			r.Actions = append(r.Actions, strings.Join(s.Actions, " "+envs.Separator+" "))
			r.Valid = r.Valid && s.Valid
			r.Truncated = r.Truncated || g.Truncated
			r.Success, done = s.Success, s.Done
		}
		r.Truncated = r.Truncated || !done
		rows[i] = r
	}
	return rows
}

// PromptTokens are the widths of the context at each turn's start that a spec's
// environment needs with a model's tokenizer; files are the model folder's, nil
// for a starter.
func PromptTokens(t spec.Train, files map[string][]byte) ([]int, error) {
	if files == nil {
		files = starter.Files()
	}
	env, err := envs.New(t.Environment.Name, t.Environment.Options)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.Load(files)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, ErrModelInvalid)
	}
	widths, err := envs.MaxPromptTokens(env, tok, protocolOf(t), t.Rollout.Turns, t.Rollout.MaxNewTokens)
	if err != nil {
		return nil, fmt.Errorf("widths of the prompts: %w", err)
	}
	return widths, nil
}
