package host

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/search"
)

// Choose says which rows of a search are kept after a turn, and stores the choices with their
// scores; or, after a wave of trees, where the rows of the next one begin. It follows from the recorded
// turns alone.
func (h *Host) Choose(ctx context.Context, in activities.ChooseInput) (_ activities.ChooseResult, err error) {
	turn := len(in.Turns)
	defer run.Edge(ctx, &err, "choose after turn %d of run %s", turn, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.ChooseResult{}, err
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return activities.ChooseResult{}, err
	}
	turns, err := recorded.Turns(ctx, h.Store, in.Turns)
	if err != nil {
		return activities.ChooseResult{}, err
	}
	if turn > 0 && task.Trees.Branches > 0 {
		return h.fork(ctx, rc, task, in, turns, start)
	}
	if turn == 0 || len(turns[turn-1].Generate) != task.Groups*task.Slots || in.Turns[turn-1].Choices != nil {
		return activities.ChooseResult{}, fmt.Errorf("a choice is made once after a turn of %d groups of %d: %w", task.Groups, task.Slots, store.ErrInvalid)
	}
	rows, over, err := task.Method.Choose(task.Breadth, task.Slots, turns, in.Last)
	if err != nil {
		return activities.ChooseResult{}, err
	}
	ref, err := tables.Put(ctx, h.Store, run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, turn, "choices"), rows)
	return activities.ChooseResult{Table: ref, Over: over, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, err
}

// fork stores where the rows of the wave after this one begin.
func (h *Host) fork(ctx context.Context, rc *run.Context, task *run.Task, in activities.ChooseInput, turns []episode.Turn,
	start time.Time) (out activities.ChooseResult, err error) {
	if in.Turns[len(in.Turns)-1].Forks != nil || len(turns[0].Generate) != task.Rows() {
		return out, fmt.Errorf("branches are drawn once after a wave of %d groups of %d: %w", task.Groups, task.Members, store.ErrInvalid)
	}
	address := func(group int) draw.Address {
		a := rc.Drawn(draw.Fork, in.Branch, in.Rollout.Iteration)
		a.Group = int64(group + in.Rollout.Round*task.Groups)
		return a
	}
	before, err := run.Memory(ctx, h.Store, task.Method, in.Tables)
	if err != nil {
		return out, err
	}
	rows, err := task.Method.Fork(search.Forking{
		Trees: task.Trees, Options: rc.Train.Rollout.Own, Wave: in.Rollout.Wave + 1, Vocabulary: rc.Config.VocabSize, Turns: turns,
		Before: before, Address: address,
	})
	if err != nil {
		return out, err
	}
	if out.Over = len(rows) == 0; !out.Over {
		out.Turn = episode.FirstTurn(rows)
	}
	out.Table, err = tables.Put(ctx, h.Store, run.Dir(in.Run, in.Branch, in.Rollout), run.ForksName(in.Rollout), rows)
	out.Telemetry.Seconds = time.Since(start).Seconds()
	return out, err
}
