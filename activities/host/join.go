package host

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Join stores the generate table of a turn whose blocks are sampled: the bytes that Generate stores.
func (h *Host) Join(ctx context.Context, in activities.JoinInput) (_ activities.GenerateResult, err error) {
	defer run.Edge(ctx, &err, "join the blocks of turn %d of run %s", in.Turn, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	rows := make([]episode.GenerateRow, 0, in.Rows)
	for i, ref := range in.Blocks {
		block, err := tables.Get[episode.GenerateRow](ctx, h.Store, ref)
		if err != nil {
			return activities.GenerateResult{}, fmt.Errorf("block %d: %w", i+1, err)
		}
		for _, row := range block {
			if int(row.Row) != len(rows) {
				return activities.GenerateResult{}, fmt.Errorf("block %d has row %d at place %d of the turn: %w", i+1, row.Row, len(rows), store.ErrInvalid)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) != in.Rows {
		return activities.GenerateResult{}, fmt.Errorf("%d blocks have %d rows of the turn, want %d: %w", len(in.Blocks), len(rows), in.Rows, store.ErrInvalid)
	}
	ref, err := tables.Put(ctx, h.Store, run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, in.Turn, "generate"), rows)
	if err != nil {
		return activities.GenerateResult{}, err
	}
	return activities.GenerateResult{Table: ref, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, nil
}
