package device

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// Generate samples one turn of all rows, or of a piece of them, and stores the rows. The
// last piece stores the turn's generate table, with the rows of all pieces. The prompts of
// turn 1 come from the environment's initial states, the prompts of a later turn from the
// step table before it.
func (d *Device) Generate(ctx context.Context, in activities.GenerateInput) (_ activities.GenerateResult, err error) {
	defer run.Edge(ctx, &err, "generate turn %d of run %s", in.Turn, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.beginTurn(ctx, of)
	if err != nil {
		return activities.GenerateResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.GenerateResult{}, err
	}
	task, err := w.Task(in.Rollout)
	if err != nil {
		return activities.GenerateResult{}, err
	}
	var requests []run.RequestRow
	var rows []episode.GenerateRow
	var before [][]int32
	var lengths [][]int
	if in.Calls != nil {
		requests, err = tables.Get[run.RequestRow](ctx, d.Store, *in.Calls)
		rows = calledRows(task, requests)
	} else {
		rows, before, lengths, err = contexts(ctx, w.Context, d.Store, task, in)
	}
	if err != nil {
		return activities.GenerateResult{}, err
	}
	if len(in.Blocks) > 0 {
		if err := sampledBefore(ctx, d.Store, in.Blocks, rows); err != nil {
			return activities.GenerateResult{}, err
		}
		ref, err := tables.Put(ctx, d.Store, run.Dir(of, in.Policy.Branch, in.Rollout), run.TurnName(in.Rollout, in.Turn, "generate"), rows)
		return activities.GenerateResult{Table: ref, Telemetry: w.telemetry()}, err
	}
	piece, err := pieceOf(len(rows), w.Train.Limits.GenerateRows, len(in.Pieces))
	if err != nil {
		return activities.GenerateResult{}, err
	}
	var kept *model.Kept
	if w.Keeps(task) {
		if kept, err = w.keep(ctx, task, in, piece.from, rows[piece.from:piece.to], before[piece.from:piece.to], lengths); err != nil {
			return activities.GenerateResult{}, fmt.Errorf("generate: %w", err)
		}
	} else {
		w.engine.dropKept()
	}
	if in.Calls != nil {
		err = w.answer(ctx, task, in, requests, rows[piece.from:piece.to])
	} else {
		err = w.sample(ctx, w.engine.state, task, in, rows[piece.from:piece.to], before[piece.from:piece.to], kept)
	}
	if err != nil {
		return activities.GenerateResult{}, fmt.Errorf("generate: %w", err)
	}
	if in.Turn >= in.Settings.Rollout.Limit(task.Turns) {
		w.engine.dropKeptPiece(piece.from)
	}
	name := "generate"
	if in.Calls != nil {
		name = "answers"
	}
	if piece.more {
		name, rows = piece.name(name), rows[piece.from:piece.to]
	} else if err := sampledBefore(ctx, d.Store, in.Pieces, rows[:piece.from]); err != nil {
		return activities.GenerateResult{}, err
	}
	ref, err := tables.Put(ctx, d.Store, run.Dir(of, in.Policy.Branch, in.Rollout), run.TurnName(in.Rollout, in.Turn, name), rows)
	if err != nil {
		return activities.GenerateResult{}, err
	}
	return activities.GenerateResult{Table: ref, More: piece.more, Telemetry: w.telemetry()}, nil
}

// sample samples a turn of some of a rollout's rows by a policy. Their contexts are given, and the
// contexts' keys and values where they are kept.
func (w *work) sample(ctx context.Context, policy *model.State, task *run.Task, in activities.GenerateInput, rows []episode.GenerateRow,
	contexts [][]int32, kept *model.Kept) error {
	temperature := in.Settings.Rollout.Temperature
	if task.Suite != nil {
		temperature = task.Suite.Temperature
	}
	gen := model.GenerateInput{
		Prompts: contexts, Temperature: float32(temperature), StopTexts: model.NewStopTexts(task.StopAt, w.Tokenizer.Bytes),
		Greedy: temperature == 0, Kept: kept,
	}
	var addresses []draw.Address
	for i := range rows {
		a := w.Address(task, in.Policy.Branch, in.Rollout, int(rows[i].Group), int(rows[i].Member)).Sample
		a.Turn = int64(in.Turn)
		addresses, gen.Alive = append(addresses, a), append(gen.Alive, rows[i].Alive)
	}
	return w.sampleBy(ctx, policy, in.Policy.Run, w.Shapes(task, in.Turn), gen, addresses, rows)
}

// sampleBy samples rows by the programs of some shapes: those that are alive in gen, each by the draws of its address.
func (w *work) sampleBy(ctx context.Context, policy *model.State, of activities.Run, shapes model.Shapes, gen model.GenerateInput,
	addresses []draw.Address, rows []episode.GenerateRow) error {
	p, err := w.engine.programsFor(w.Context, of, shapes)
	if err != nil {
		return err
	}
	gen.Stop = w.Tokenizer.EndOfTurn()
	for _, a := range addresses {
		u := make([]float32, shapes.MaxNewTokens)
		a.Uniforms(u)
		gen.Uniforms = append(gen.Uniforms, u)
	}
	got, err := p.Sampler.Generate(ctx, policy, gen)
	if err != nil {
		return err
	}
	for i := range rows {
		if gen.Alive[i] {
			rows[i].SampledIDs, rows[i].RolloutLogProbs, rows[i].Truncated = got.Tokens[i], got.LogProbs[i], got.Truncated[i]
			if w.Train.Policy.Exact {
				rows[i].RolloutEntropies = got.Entropies[i]
			}
			w.measured.Tokens += len(got.Tokens[i])
		}
	}
	return nil
}

// sampledBefore fills in the rows that earlier pieces of the turn sampled.
func sampledBefore(ctx context.Context, s store.Store, pieces []store.Ref, rows []episode.GenerateRow) error {
	at := 0
	for i, ref := range pieces {
		piece, err := tables.Get[episode.GenerateRow](ctx, s, ref)
		if err != nil {
			return fmt.Errorf("piece %d: %w", i+1, err)
		}
		for _, row := range piece {
			if at >= len(rows) || row.Row != rows[at].Row || !slices.Equal(row.PromptIDs, rows[at].PromptIDs) {
				return fmt.Errorf("piece %d has row %d at place %d of the turn, which has others: %w", i+1, row.Row, at, store.ErrInvalid)
			}
			rows[at] = row
			at++
		}
	}
	if at != len(rows) {
		return fmt.Errorf("%d pieces have %d rows of the turn, want %d: %w", len(pieces), at, len(rows), store.ErrInvalid)
	}
	return nil
}
