package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// Device is the activities of a device worker. All but Describe run in a
// session, and compute while holding the engine's lease.
type Device struct {
	Store  store.Store
	Engine *Engine

	contexts runContexts
}

// work is what an activity that computes needs.
type work struct {
	*runContext
	engine   *Engine
	measured Telemetry
	start    time.Time
}

// begin takes the lease and reads the run's context. The caller ends it with done.
func (d *Device) begin(ctx context.Context, of Run) (w *work, done func(), err error) {
	stop := heartbeat(ctx)
	release, waited, err := d.Engine.acquire(ctx, of.ID)
	if err != nil {
		stop()
		return nil, nil, err
	}
	w = &work{engine: d.Engine, start: time.Now()}
	w.measured.WaitSeconds = waited.Seconds()
	done = func() { release(); stop() }
	if w.runContext, err = d.contexts.read(ctx, d.Store, of); err != nil {
		done()
		return nil, nil, err
	}
	return w, done, nil
}

// telemetry returns the attempt's telemetry.
func (w *work) telemetry() Telemetry {
	w.measured.Seconds = time.Since(w.start).Seconds()
	return w.measured
}

// Describe answers what this worker's device is: which fingerprint's work it
// can take.
func (d *Device) Describe(context.Context) (DeviceInfo, error) { return d.Engine.Info(), nil }

// Generate samples one turn of all rows and stores the turn's generate table.
// The prompts of turn 1 come from the environment's initial states, those of a
// later turn from the step table before it.
func (d *Device) Generate(ctx context.Context, in GenerateInput) (_ GenerateResult, err error) {
	defer edge(ctx, &err, "generate turn %d of run %s", in.Turn, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.begin(ctx, of)
	if err != nil {
		return GenerateResult{}, err
	}
	defer done()
	if err := d.Engine.resident(in.Policy); err != nil {
		return GenerateResult{}, err
	}
	task, err := w.task(in.Rollout)
	if err != nil {
		return GenerateResult{}, err
	}
	rows, contexts, err := contexts(ctx, w.runContext, d.Store, task, in)
	if err != nil {
		return GenerateResult{}, err
	}
	p, err := d.Engine.programsFor(w.runContext, of, w.shapes(task, in.Turn))
	if err != nil {
		return GenerateResult{}, err
	}
	temperature := in.Settings.Rollout.Temperature
	if task.suite != nil {
		temperature = task.suite.Temperature
	}
	gen := model.GenerateInput{
		Prompts: contexts, Temperature: float32(temperature), Stop: w.tokenizer.EndOfTurn(),
		Greedy: temperature == 0,
	}
	for i := range rows {
		a := w.address(task, in.Policy.Branch, in.Rollout, int(rows[i].Group), int(rows[i].Member)).sample
		a.Turn = int64(in.Turn)
		u := make([]float32, task.maxNewTokens)
		a.Uniforms(u)
		gen.Uniforms = append(gen.Uniforms, u)
		gen.Alive = append(gen.Alive, rows[i].Alive)
	}
	got, err := p.Generate(ctx, d.Engine.state, gen)
	if err != nil {
		return GenerateResult{}, fmt.Errorf("generate: %w", err)
	}
	for i := range rows {
		if rows[i].Alive {
			rows[i].SampledIDs, rows[i].RolloutLogProbs, rows[i].Truncated = got.Tokens[i], got.LogProbs[i], got.Truncated[i]
			w.measured.Tokens += len(got.Tokens[i])
		}
	}
	ref, err := store.PutTable(ctx, d.Store, dir(of, in.Policy.Branch, in.Rollout), turnName(in.Rollout, in.Turn, "generate"), rows)
	if err != nil {
		return GenerateResult{}, err
	}
	return GenerateResult{Table: ref, Telemetry: w.telemetry()}, nil
}

// Score computes the old log-probs and entropies of the selected rows with
// Update's own graph, micro-batch by micro-batch, the reference's log-probs and the
// critic's values where the run has them, and stores the scores table.
func (d *Device) Score(ctx context.Context, in ScoreInput) (_ ScoreResult, err error) {
	defer edge(ctx, &err, "score iteration %d of run %s", in.Iteration, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.begin(ctx, of)
	if err != nil {
		return ScoreResult{}, err
	}
	defer done()
	if err := d.Engine.resident(in.Policy); err != nil {
		return ScoreResult{}, err
	}
	rows, err := selectedRows(ctx, d.Store, in.Trajectories)
	if err != nil {
		return ScoreResult{}, err
	}
	p, err := d.Engine.programsFor(w.runContext, of, w.shapes(w.training, 1))
	if err != nil {
		return ScoreResult{}, err
	}
	scorer := scorer{policy: p, state: d.Engine.state, temperature: float32(in.Settings.Rollout.Temperature)}
	if w.train.Update.Reference() {
		if scorer.reference, err = w.reference(ctx, d.Store, of); err != nil {
			return ScoreResult{}, err
		}
	}
	if w.train.Credit.Critic() {
		scorer.value = d.Engine.critic
		if scorer.critic, err = d.Engine.criticFor(w.runContext, of); err != nil {
			return ScoreResult{}, err
		}
	}
	table := make([]ScoreRow, len(rows))
	for i, r := range rows {
		table[i].Row = r.Row
	}
	cut := pieces(rows)
	for i, batch := range w.microBatches(cut) {
		first := i * len(batch.IDs)
		of := cut[first:min(first+len(batch.IDs), len(cut))]
		if err := scorer.score(ctx, of, batch, table); err != nil {
			return ScoreResult{}, fmt.Errorf("score: %w", err)
		}
		for _, p := range of {
			w.measured.Tokens += len(p.ids)
		}
	}
	ref, err := store.PutTable(ctx, d.Store, store.IterationDir(of.ID, in.Policy.Branch, in.Iteration), "scores", table)
	if err != nil {
		return ScoreResult{}, err
	}
	return ScoreResult{Scores: ref, Metrics: scoreMetrics(rows, table), Telemetry: w.telemetry()}, nil
}

// Update makes version n+1 from version n and the batch. A worker that made it
// before answers from memory.
func (d *Device) Update(ctx context.Context, in UpdateInput) (_ UpdateResult, err error) {
	defer edge(ctx, &err, "update version %d of run %s", in.Policy.Version, in.Policy.Run.ID)
	w, done, err := d.begin(ctx, in.Policy.Run)
	if err != nil {
		return UpdateResult{}, err
	}
	defer done()
	key, err := keyOf(in)
	if err != nil {
		return UpdateResult{}, err
	}
	if r, ok := d.Engine.updates[key]; ok && d.Engine.fingerprint == r.State {
		r.Telemetry = w.telemetry()
		return r, nil
	}
	if err := d.Engine.resident(in.Policy); err != nil {
		return UpdateResult{}, err
	}
	r, err := w.apply(ctx, d.Store, in)
	if err != nil {
		return UpdateResult{}, err
	}
	d.Engine.remember(key, r)
	r.Telemetry = w.telemetry()
	return r, nil
}

// Snapshot stores the full training state of the resident version: a Hugging
// Face model folder and the optimizer's moments.
func (d *Device) Snapshot(ctx context.Context, in SnapshotInput) (_ SnapshotResult, err error) {
	defer edge(ctx, &err, "snapshot version %d of run %s", in.Policy.Version, in.Policy.Run.ID)
	w, done, err := d.begin(ctx, in.Policy.Run)
	if err != nil {
		return SnapshotResult{}, err
	}
	defer done()
	if err := d.Engine.resident(in.Policy); err != nil {
		return SnapshotResult{}, err
	}
	prefix := store.SnapshotPrefix(in.Policy.Run.ID, in.Policy.Branch, in.Policy.Version)
	ref, err := w.putState(ctx, d.Store, in.Policy.Run, prefix, in.Policy.Version)
	if err != nil {
		return SnapshotResult{}, err
	}
	return SnapshotResult{Snapshot: ref, Telemetry: w.telemetry()}, nil
}
