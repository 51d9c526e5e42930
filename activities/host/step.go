package host

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/credit"
)

// Step lets the environments answer a turn's samples and stores the turn's step
// table. The states are rebuilt by replaying the recorded actions.
func (h *Host) Step(ctx context.Context, in activities.StepInput) (_ activities.StepResult, err error) {
	defer run.Edge(ctx, &err, "step turn %d of run %s", in.Turn, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.StepResult{}, err
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return activities.StepResult{}, err
	}
	generated, err := tables.Get[episode.GenerateRow](ctx, h.Store, in.Generate)
	if err != nil {
		return activities.StepResult{}, err
	}
	wave, err := recorded.Wave(ctx, h.Store, in.Rollout.Wave, in.Turn, in.Turns)
	if err != nil {
		return activities.StepResult{}, err
	}
	task, broken, err := h.answered(ctx, task, in)
	if err != nil {
		return activities.StepResult{}, err
	}
	results, err := run.Results(ctx, h.Store, in.Calls, len(generated))
	if err != nil {
		return activities.StepResult{}, err
	}
	past, err := h.pastResults(ctx, task, in, len(generated))
	if err != nil {
		return activities.StepResult{}, err
	}
	rows := make([]episode.StepRow, len(generated))
	alive := wave.Asleep
	for i, g := range generated {
		rows[i] = episode.StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: !g.Alive}
		if !g.Alive {
			continue
		}
		if broken[g.Row] {
			// Never a reward: Select leaves the episode out.
			rows[i].Text, rows[i].Done = rc.Tokenizer.Decode(g.SampledIDs), true
			continue
		}
		if err := playRow(rc, task, in, &rows[i], g, wave.Turns, results[i], past); err != nil {
			return activities.StepResult{}, fmt.Errorf("row %d: %w", g.Row, err)
		}
		if !rows[i].Done {
			alive++
		}
	}
	ref, err := tables.Put(ctx, h.Store, run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, in.Turn, "step"), rows)
	if err != nil {
		return activities.StepResult{}, err
	}
	return activities.StepResult{Table: ref, Alive: alive, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, nil
}

// answered is a task with the recorded answers to a turn, and the rows whose foreign environment
// broke in it.
func (h *Host) answered(ctx context.Context, task *run.Task, in activities.StepInput) (*run.Task, map[int32]bool, error) {
	if !task.Foreign() {
		return task, nil, nil
	}
	refs := make([]*store.Ref, 0, len(in.Turns)+1)
	for _, t := range in.Turns {
		refs = append(refs, t.Answers)
	}
	answers, err := run.ReadAnswers(ctx, h.Store, in.Opening, append(refs, in.Answers))
	if err != nil {
		return nil, nil, err
	}
	broken := map[int32]bool{}
	for _, b := range answers.Broken() {
		broken[b.Row] = true
	}
	task, err = task.Recorded(answers)
	return task, broken, err
}

// pastResults are the answers to the calls of the turns before, [turns][rows], if the next context is built from the
// start; otherwise nil.
func (h *Host) pastResults(ctx context.Context, task *run.Task, in activities.StepInput, rows int) ([][]run.Answered, error) {
	if task.Protocol.Tools == nil || !task.Protocol.Restarts(in.Turn+1) {
		return nil, nil
	}
	past := make([][]run.Answered, len(in.Turns))
	for i, t := range in.Turns {
		var err error
		if past[i], err = run.Results(ctx, h.Store, t.Calls, rows); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return past, nil
}

// rebuilt builds a row's episode again from the turns before. left are the actions left.
func rebuilt(rc *run.Context, s *run.Task, branch int, r activities.Rollout, g episode.GenerateRow, history []episode.Turn) (
	built envs.Episode, left int, err error,
) {
	env := s.Env(int(g.Group))
	actions := make([][]string, len(history))
	for t, h := range history {
		if int(g.Row) >= len(h.Step) {
			return nil, 0, fmt.Errorf("turn %d has no such row: %w", t+1, store.ErrInvalid)
		}
		actions[t] = h.Step[g.Row].Actions
	}
	instance := rc.Address(s, branch, r, int(g.Group), int(g.Member)).Instance
	built, played, err := envs.ReplayForked(env, instance, rc.Chances(s, branch, r, g, history), actions)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	if n := len(played); n > 0 {
		return built, played[n-1].ActionsLeft, nil
	}
	return built, env.MaxActions(), nil
}

// playRow answers one row's sample. past has the results of the turns before, nil where they are not needed.
func playRow(rc *run.Context, s *run.Task, in activities.StepInput, row *episode.StepRow, g episode.GenerateRow,
	history []episode.Turn, answered run.Answered, past [][]run.Answered) error {
	a := rc.Address(s, in.Branch, in.Rollout, int(g.Group), int(g.Member))
	env := s.Env(int(g.Group))
	recorded := make([]envs.Recorded, len(history), len(history)+1)
	context := 0
	for t, h := range history {
		if int(g.Row) >= len(h.Step) {
			return fmt.Errorf("turn %d has no such row: %w", t+1, store.ErrInvalid)
		}
		before := h.Generate[g.Row]
		recorded[t] = envs.Recorded{Actions: h.Step[g.Row].Actions, Sampled: before.SampledIDs}
		if past != nil {
			recorded[t].Results = past[t][g.Row].Results
		}
		if before.Restart {
			context = 0
		}
		context += len(before.PromptIDs) + len(before.SampledIDs)
	}
	if g.Restart {
		context = 0
	}
	context += len(g.PromptIDs) + len(g.SampledIDs)
	episode, left, err := rebuilt(rc, s, in.Branch, in.Rollout, g, history)
	if err != nil {
		return err
	}
	reply, open := s.Protocol.ReadReply(rc.Tokenizer, env, g.SampledIDs)
	row.StateBefore = episode.StateKey()
	results := answered.Results
	if _, _, asks := s.Protocol.Question(episode, reply); asks != (answered.Grade != nil) {
		return fmt.Errorf("the environment asks about the action: %t, and an answer is recorded: %t: %w", asks, answered.Grade != nil, store.ErrInvalid)
	}
	reply.Grade = answered.Grade
	t := s.Protocol.Play(episode, reply, left)
	if len(t.Calls) != len(results) {
		return fmt.Errorf("%d calls of tools and %d answers: %w", len(t.Calls), len(results), store.ErrInvalid)
	}
	row.Text = rc.Tokenizer.Decode(g.SampledIDs)
	row.Actions, row.Reward, row.Penalty = t.Actions, t.Reward, t.Penalty
	if s.OverlongCache > 0 {
		punishment, err := credit.Overlong(len(g.SampledIDs), s.MaxNewTokens, s.OverlongCache)
		if err != nil {
			return err
		}
		row.Penalty += punishment
	}
	row.Valid = len(t.Actions) > 0 && t.Invalid == 0 && !(open && !reply.Formatted)
	row.Effective, row.Invalid, row.Success = int32(t.Effective), int32(t.Invalid), t.Success
	row.StateKey, row.Observation = episode.StateKey(), episode.Observation()
	if n := len(history); n > 0 && s.Protocol.Tools != nil {
		row.StateBefore = history[n-1].Step[g.Row].StateKey
	}
	if len(results) > 0 {
		row.StateKey = envs.StateAfterCalls(row.StateKey, results)
	}
	row.Done = t.Ended() || in.Turn >= s.Turns || in.TurnLimit > 0 && in.Turn >= in.TurnLimit
	if row.Done {
		return nil
	}
	var ids []int32
	if row.NextRestart = s.Protocol.Restarts(in.Turn + 1); row.NextRestart {
		recorded = append(recorded, envs.Recorded{Actions: t.Actions, Sampled: g.SampledIDs, Results: results})
		ids, err = s.Protocol.WindowIDs(s.Tokenizer, env, a.Instance, a.Chance, recorded)
		context = 0
	} else {
		next := t.After(in.Turn, results)
		ids, err = s.Protocol.ContinueIDs(s.Tokenizer, env, episode, next, g.SampledIDs)
	}
	if err != nil {
		return err
	}
	if context+len(ids) > s.Widths[in.Turn] {
		row.Done, row.NextRestart, row.ContextFull = true, false, true
		return nil
	}
	row.NextIDs = ids
	return nil
}
