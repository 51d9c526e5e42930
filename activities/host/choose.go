package host

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Choose says which rows of a search are kept after a turn, and stores the choices with their
// scores. It follows from the recorded turns alone.
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
	turns, err := run.ReadTurns(ctx, h.Store, in.Turns)
	if err != nil {
		return activities.ChooseResult{}, err
	}
	if turn == 0 || len(turns[turn-1].Generate) != task.Groups*task.Slots || in.Turns[turn-1].Choices != nil {
		return activities.ChooseResult{}, fmt.Errorf("a choice is made once after a turn of %d groups of %d: %w", task.Groups, task.Slots, store.ErrInvalid)
	}
	rows, over, err := run.ChooseRows(rc.Train.Rollout.SearchOf(), task.Slots, turns, in.Last)
	if err != nil {
		return activities.ChooseResult{}, err
	}
	ref, err := tables.Put(ctx, h.Store, run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, turn, "choices"), rows)
	return activities.ChooseResult{Table: ref, Over: over, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, err
}
