package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Select puts the trajectories of a rollout together and marks the groups that
// the update learns from. If the input asks for it, Select also computes the advantages.
func (h *Host) Select(ctx context.Context, in activities.SelectInput) (out activities.SelectResult, err error) {
	defer run.Edge(ctx, &err, "select of iteration %d of run %s", in.Rollout.Iteration, in.Run.ID)
	defer run.Heartbeat(ctx)()
	if out, err = h.selected(ctx, in); err != nil || out.More || in.Credit == nil {
		return out, err
	}
	part, rows := out.Shared(in.Branch, in.Rollout.Iteration), out.Rows
	if part != nil {
		rows = part.Rows[part.Update]
	}
	if !in.Credit.Due(rows) {
		return out, nil
	}
	credited, err := h.credit(ctx, in.Credit.Of(out, part))
	if err != nil {
		return activities.SelectResult{}, fmt.Errorf("credit: %w", err)
	}
	out.Credited = &credited
	return out, nil
}

// selected is the selection alone.
func (h *Host) selected(ctx context.Context, in activities.SelectInput) (activities.SelectResult, error) {
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.SelectResult{}, err
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return activities.SelectResult{}, err
	}
	rows, branches, answers, err := h.rounds(ctx, task, in.Turns)
	if err != nil {
		return activities.SelectResult{}, err
	}
	var broken []run.BrokenRow
	if task.Method.Roots {
		run.Unplayed(rows)
	}
	redrawn := 0
	for round, a := range answers {
		redrawn += a.Redrawn()
		broken = append(broken, a.BrokenOf(round*task.Rows())...)
	}
	for round, turns := range episode.Rounds(in.Turns) {
		left, err := h.agentBroken(ctx, turns, round*task.Rows())
		if err != nil {
			return activities.SelectResult{}, err
		}
		broken = append(broken, left...)
	}
	if err := run.CheckBroken(broken, redrawn, len(rows), task.Members, rc.Train.Environment.BrokenShare); err != nil {
		return activities.SelectResult{}, err
	}
	verdicts, err := run.ReadVerdicts(ctx, h.Store, in.Turns, task.Rows())
	if err != nil {
		return activities.SelectResult{}, err
	}
	left := append(broken[:len(broken):len(broken)], verdicts.Failed()...)
	dropped := run.Drop(rows, left, task.Members)
	if len(episode.Live(rows)) == 0 {
		return activities.SelectResult{}, fmt.Errorf("no group has enough episodes that are not left out: %s: %w", left[0].Message, activities.ErrEnvironment)
	}
	if task, err = task.Recorded(answers...); err != nil {
		return activities.SelectResult{}, err
	}
	dir := run.Dir(in.Run, in.Branch, in.Rollout)
	if in.Everything {
		for i := range rows {
			if !rows[i].Dropped {
				rows[i].Selected, rows[i].Weight = true, 1
			}
		}
		ref, err := tables.Put(ctx, h.Store, dir, "everything", rows)
		return activities.SelectResult{Trajectories: ref, Rows: len(episode.Live(rows)),
			Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, err
	}
	past, err := run.ReadTable[run.TextRow](ctx, h.Store, in.Tables, activities.TextsTable)
	if err != nil {
		return activities.SelectResult{}, err
	}
	rewarded, err := run.Reward(rc, in.Settings, task, in.Branch, in.Rollout, rows, past, verdicts)
	if err != nil {
		return activities.SelectResult{}, err
	}
	open, err := run.OpenOf(rc, in.Settings.Credit, task, in.Branch, in.Rollout, rows)
	if err != nil {
		return activities.SelectResult{}, err
	}
	if in.Scores != nil {
		scores, err := run.ReadScores(ctx, h.Store, in.Scores, "scores", in.Settings.Credit)
		if err != nil {
			return activities.SelectResult{}, err
		}
		if err := run.AddEntropies(rows, scores); err != nil {
			return activities.SelectResult{}, err
		}
	} else if in.Settings.Selection.Exact() {
		scores, err := episode.BySampler(rows)
		if err == nil {
			err = run.AddEntropies(rows, scores)
		}
		if err != nil {
			return activities.SelectResult{}, err
		}
	}
	rolled := *task
	rolled.Groups = len(rows) / task.Members
	// Branches of failed trajectories would make every figure worse than the policy is.
	ranked, counted := *task, func() []episode.TrajectoryRow { return rows }
	if task.Method.Roots {
		ranked.Members, rolled.Members = task.Trees.Trees, task.Trees.Trees
		counted = func() []episode.TrajectoryRow { return run.Roots(task.Trees, rows) }
	}
	choice, err := run.Choose(rc, in.Settings.Selection, counted(), &ranked)
	if err != nil || choice.More {
		return activities.SelectResult{More: choice.More, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, err
	}
	members, err := run.KeptMembers(in.Settings.Selection, rows, task.Members)
	if err != nil {
		return activities.SelectResult{}, err
	}
	count := 0
	for i := range rows {
		rows[i].Selected, rows[i].Weight = choice.Kept[rows[i].Group], choice.Weights[rows[i].Group]
		if members != nil && !members[i] || rows[i].Dropped {
			rows[i].Selected = false
		}
		if rows[i].Selected {
			count++
		}
	}
	ref, err := tables.Put(ctx, h.Store, dir, "trajectories", rows)
	if err != nil {
		return activities.SelectResult{}, err
	}
	var scored *activities.ScoreResult
	if rc.Train.ScoredBySampler() && count > 0 {
		selected := episode.SelectedOf(rows)
		scores, err := episode.BySampler(selected)
		if err != nil {
			return activities.SelectResult{}, err
		}
		scored = &activities.ScoreResult{Metrics: run.EntropyMetrics(scores)}
		if scored.Scores, err = tables.Put(ctx, h.Store, dir, "scores", scores); err != nil {
			return activities.SelectResult{}, err
		}
	}
	before, err := run.Memory(ctx, h.Store, task.Method, in.Tables)
	if err != nil {
		return activities.SelectResult{}, err
	}
	memory, remembered := run.Remember(task, before, rows, branches)
	side := activities.Tables{}
	if err := errors.Join(
		run.PutTable(ctx, h.Store, dir, side, activities.ComponentsTable, rewarded.Components),
		run.PutTable(ctx, h.Store, dir, side, activities.TextsTable, rewarded.Texts),
		run.PutTable(ctx, h.Store, dir, side, activities.BrokenTable, dropped),
		run.PutTable(ctx, h.Store, dir, side, activities.BranchesTable, branches),
		run.PutTable(ctx, h.Store, dir, side, activities.OpenTable, open),
		run.PutTable(ctx, h.Store, dir, side, activities.MemoryTable(task.Method), memory),
	); err != nil {
		return activities.SelectResult{}, err
	}
	metrics := run.RolloutMetrics(&rolled, counted())
	unkept := 0 // tokens
	switch {
	case branches != nil && task.Trees.Branches > 0:
		run.InheritedMetrics(metrics, rows, branches)
	case branches != nil:
		searched, err := h.searched(ctx, in.Turns, branches, task.Rows())
		if err != nil {
			return activities.SelectResult{}, err
		}
		run.SearchedMetrics(metrics, searched)
		unkept = searched.Tokens
	}
	if rc.Train.Stop.SampledTokens > 0 {
		metrics[activities.SampledTokens] = canon.Float(episode.SampledTokens(rows, branches) + unkept)
	}
	if task.Foreign() || task.ByAgent() {
		run.BrokenMetrics(metrics, broken, dropped, len(rows))
		if rc.Train.Environment.OnBroken == spec.Redraw {
			metrics["broken/redrawn"] = canon.Float(float64(redrawn) / float64(len(rows)))
		}
	}
	if err := h.callMetrics(ctx, metrics, task, in.Turns, len(rows)); err != nil {
		return activities.SelectResult{}, err
	}
	if err := h.agentMetrics(ctx, metrics, in.Turns); err != nil {
		return activities.SelectResult{}, err
	}
	verdicts.Metrics(metrics, dropped)
	if err := verdicts.ReadMetrics(rc, metrics); err != nil {
		return activities.SelectResult{}, err
	}
	maps.Copy(metrics, rewarded.Metrics)
	maps.Copy(metrics, remembered)
	if n := rolled.Groups / task.Groups; rc.Train.Selection.Resample > 1 || n > 1 {
		metrics["rollout/rounds"] = canon.Float(float64(n))
	}
	return activities.SelectResult{
		Trajectories: ref, Tables: side, Scored: scored, Rows: count, Parts: run.PartSizes(rc, rows, count, task), Metrics: metrics,
		Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}

// rounds reads the rounds of a rollout as trajectories: groups and rows of a later
// one continue the index. The branches of a search come with them, nil without one, and the answers
// of foreign environments, a round each.
func (h *Host) rounds(
	ctx context.Context, task *run.Task, refs []store.TurnRefs,
) ([]episode.TrajectoryRow, []episode.BranchRow, []run.Answers, error) {
	var all []episode.TrajectoryRow
	var branches []episode.BranchRow
	var answers []run.Answers
	for round, of := range episode.Rounds(refs) {
		turns, err := recorded.Turns(ctx, h.Store, of)
		if err != nil {
			return nil, nil, nil, err
		}
		rows, err := trajectories(task, turns)
		if err != nil {
			return nil, nil, nil, err
		}
		answered, err := run.ReadRound(ctx, h.Store, of)
		if err != nil {
			return nil, nil, nil, err
		}
		answers = append(answers, answered)
		if len(rows) != task.Rows() {
			return nil, nil, nil, fmt.Errorf("%d trajectories, want %d groups of %d: %w", len(rows), task.Groups, task.Members, store.ErrInvalid)
		}
		branches = append(branches, episode.Branches(turns, int32(len(all)))...)
		for i := range rows {
			rows[i].Row += int32(round * task.Rows())
			rows[i].Group += int32(round * task.Groups)
		}
		all = append(all, rows...)
	}
	if len(all) == 0 {
		return nil, nil, nil, fmt.Errorf("a rollout has at least a turn: %w", store.ErrInvalid)
	}
	return all, branches, answers, nil
}

// searched counts what the rounds of a search generated and did not keep. A round has so many
// trajectories.
func (h *Host) searched(ctx context.Context, refs []store.TurnRefs, branches []episode.BranchRow,
	rows int) (out episode.Searched, err error) {
	for round, of := range episode.Rounds(refs) {
		var played []episode.Turn
		for _, t := range of {
			t.Choices = nil
			turn, err := recorded.Turns(ctx, h.Store, []store.TurnRefs{t})
			if err != nil {
				return out, err
			}
			played = append(played, turn...)
		}
		var own []episode.BranchRow
		for _, b := range branches {
			if int(b.Row)/rows == round {
				own = append(own, b)
			}
		}
		s := episode.SearchedOf(played, own)
		out.Turns, out.Tokens = out.Turns+s.Turns, out.Tokens+s.Tokens
	}
	return out, nil
}

// episodes reads the turns of a round as trajectories.
func (h *Host) episodes(ctx context.Context, task *run.Task, refs []store.TurnRefs) ([]episode.TrajectoryRow, error) {
	turns, err := recorded.Turns(ctx, h.Store, refs)
	if err != nil {
		return nil, err
	}
	return trajectories(task, turns)
}

// trajectories puts the turns of a round together.
func trajectories(task *run.Task, turns []episode.Turn) ([]episode.TrajectoryRow, error) {
	if len(turns) == 0 || len(turns[0].Generate) == 0 {
		return nil, fmt.Errorf("a rollout has at least a turn and a row: %w", store.ErrInvalid)
	}
	return episode.Trajectories(turns, task.Label), nil
}
