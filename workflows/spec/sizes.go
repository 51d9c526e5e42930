package spec

import (
	"math"
	"slices"

	"github.com/reprise-rl/reprise/model/cost"
)

// WithSizes fills in what a spec leaves to the size of the model: rows of a pass and of a
// micro-batch that fit into limits.device_gb, whether activations that also fit are kept, the tokens of a chunk of sampling, the widths
// of micro-batches, the vocabulary that the detector entropy_uniform reads, the shards and the iterations between snapshots of
// a pretrained model, and the pieces of Generate, Score, Diagnose and Snapshot where a step is
// estimated to take longer than limits.activity_seconds. It leaves out what is as ever,
// so that such a spec has the bytes it had. Everything follows from the spec and the model
// alone, never from a device, so that a run is the same wherever it is computed. document
// is what a person wrote; a micro-batch and snapshot.every that it names stay. Without the widths of the
// contexts (rollout.prompt_tokens) the spec stays as it is.
func (t Train) WithSizes(m cost.Network, document []byte) Train {
	if len(t.Rollout.PromptTokens) == 0 {
		return t
	}
	t = t.withVocabulary(m.VocabSize)
	long := func(g generation) bool { return g.fresh > loadedChunk }
	if t.Rollout.ChunkTokens == 0 && t.Policy.Starter == nil && slices.ContainsFunc(t.generations(), long) {
		t.Rollout.ChunkTokens = loadedChunk
	}
	t = t.divided(document)
	t = t.fitting(m, !Writes(document, MicroBatch)).WithRecompute(m)
	budget := cost.CoresWork * int64(t.Limits.ActivitySeconds) / max(m.Parameters(), 1)
	if t.Limits.GenerateRows == 0 {
		rows, tokens := t.generated(m)
		t.Limits.GenerateRows = pieceOf(rows, tokens, budget, t.Rollout.Block())
	}
	if t.Limits.ScoreRows == 0 {
		rows, tokens := t.scored(m)
		t.Limits.ScoreRows = pieceOf(rows, tokens, budget, t.Update.MicroBatch)
	}
	if most := cost.CoresSnapshot * int64(t.Limits.ActivitySeconds); t.Limits.SnapshotMiB == 0 && Derive(t, m).Storage.Snapshot > most {
		t.Limits.SnapshotMiB = int(most >> 20)
	}
	if t.Policy.Starter == nil && !Writes(document, SnapshotEvery) {
		t.Snapshot.Every = t.snapshotEvery(m)
	}
	return t
}

// divided divides the optimizer steps of a pretrained model, unless a person has written how: into
// micro-batches of loadedWidths widths where its rows are long, since each width has programs of
// its own to compile; and with adapters into loadedShards shards, so that several devices can
// compute them. Gradients of adapters are small; those of all weights would need memory for a
// second one.
func (t Train) divided(document []byte) Train {
	if t.Policy.Starter != nil {
		return t
	}
	if !Writes(document, Widths) && t.width() >= wideRow {
		t.Update.Widths = loadedWidths
	}
	if !Writes(document, Shards) && t.Policy.LoRA != nil && t.stepBatches() > 1 {
		t.Update.Shards = loadedShards
	}
	return t
}

// snapshotEvery is the least number of iterations between two snapshots with which they
// take at most snapshotShare of the time.
func (t Train) snapshotEvery(m cost.Network) int {
	passes := t.Rollout.waves() * piecesOf(t.Rollout.Trajectories(), t.Rollout.Pass())
	steps := float64(passes) * float64(t.Rollout.Turns) * float64(t.Rollout.MaxNewTokens)
	rollouts := float64(t.Freshness.Rounds()) / float64(t.Freshness.Updates())
	iterations := float64(Derive(t, m).Storage.Snapshot) / cost.H100Snapshot / (snapshotShare * t.Job(m).Seconds(steps, rollouts))
	return int(min(max(math.Ceil(iterations), 1), mostEvery))
}

// fitting halves the default rows of a micro-batch, where they may change, and then those
// of a pass, until the estimate fits into the device's memory. Where not even one row
// fits, the defaults stay.
func (t Train) fitting(m cost.Network, changeable bool) Train {
	fits := func(pass, micro int) bool {
		tried := t
		tried.Rollout.PassRows, tried.Update.MicroBatch = pass, micro
		return tried.Job(m).Peak(1) <= t.Limits.DeviceBytes()
	}
	least := t.Rollout.Pass()
	if t.Rollout.PassRows == 0 {
		least = 1
	}
	micro := t.Update.MicroBatch
	for changeable && micro%2 == 0 && !fits(least, micro) {
		micro /= 2
	}
	if !fits(least, micro) {
		return t
	}
	t.Update.MicroBatch = micro
	pass := t.Rollout.Pass()
	for !fits(pass, micro) {
		pass /= 2
	}
	if pass != t.Rollout.Pass() {
		t.Rollout.PassRows = pass
	}
	return t
}

// WithRecompute decides update.recompute, if a person has not: activations are kept where the
// run's peak is then within keepShare of the device's memory.
func (t Train) WithRecompute(m cost.Network) Train {
	if t.Update.Sized() {
		return t
	}
	t.Update.Recompute = RecomputeNever
	if float64(t.Job(m).Peak(1)) > keepShare*float64(t.Limits.DeviceBytes()) {
		t.Update.Recompute = RecomputeAlways
	}
	return t
}

// generation is the most that a run generates in a turn, in its rollout or a suite: rows, and tokens of a prompt, 0 if
// that is not known, and of what is sampled after it.
type generation struct {
	rows, prompt, fresh int
	judges              bool // of the run's own engine that judges
	byOther             bool // by another model than the policy
}

// pass is a pass of it.
func (g generation) pass(r Rollout) cost.Pass {
	return cost.Pass{Rows: int64(min(g.rows, r.Pass())), Prompt: int64(g.prompt), Fresh: int64(g.fresh)}
}

// generations are those of the rollout, of the suites and of a judge that is the run's own engine.
func (t Train) generations() []generation {
	out := []generation{{rows: t.Rollout.Slots(), prompt: last(t.Rollout.PromptTokens), fresh: t.Rollout.MaxNewTokens}}
	for _, s := range t.Evaluation.Suites {
		out = append(out, generation{rows: s.Rows(), prompt: last(s.PromptTokens), fresh: s.MaxNewTokens})
	}
	if own := t.OwnJudge(); own != nil {
		out = append(out, t.judging(own))
	}
	return out
}

// judging is the generation of a judge that is the run's own engine.
func (t Train) judging(own *OwnJudge) generation {
	return generation{rows: t.Questions(), prompt: own.PromptTokens, fresh: own.MaxTokens, judges: true, byOther: own.Model != nil}
}

// pieceOf is the rows of a piece whose rows cost so many tokens each: as many units as
// the budget of tokens allows, at least one, and at most maxPieces pieces. 0 is all rows.
func pieceOf(rows, tokens, budget int64, unit int) int {
	each := int64(unit)
	units := max(budget/max(tokens, 1)/each, (rows+each*maxPieces-1)/(each*maxPieces), 1)
	if units*each >= rows {
		return 0
	}
	return int(units * each)
}

// generated is the most rows of a turn, and the work of one of them in tokens of a
// prompt through the policy, over the run's rollout, its suites and its judge.
func (t Train) generated(m cost.Network) (rows, tokens int64) {
	judge := t.Job(m).Judge
	for _, g := range t.generations() {
		rows = max(rows, int64(g.rows))
		if g.prompt == 0 {
			continue
		}
		each := int64(g.prompt) + cost.SampledWork*int64(g.fresh)
		if g.byOther && judge != nil {
			each *= judge.Network.Times(m)
		}
		tokens = max(tokens, each)
	}
	return rows, tokens
}

// scored is the most rows of Score and of Diagnose, and the tokens that one of them is
// through the policy, the reference and the critic.
func (t Train) scored(m cost.Network) (rows, tokens int64) {
	rows = int64(t.Rollout.Trajectories()) * int64(t.Freshness.Rounds()) * int64(t.Rollout.stretches())
	if t.Diagnostics.Every > 0 {
		rows = max(rows, int64(t.diagnosed()))
	}
	return rows, int64(t.Job(m).Scored() * t.width())
}

// updateRows is the rows of an update: those of all its epochs, and of the second network's update by
// themselves.
func (t Train) updateRows(d Derived) int {
	rows := d.MicroBatches * t.Update.MicroBatch * max(t.Update.Epochs, 1)
	if t.Credit.Second() {
		rows *= 2
	}
	return rows
}

// updateSeconds estimates the time of an update: of a pretrained model on the device that such
// a run is made for, else on two cores.
func (t Train) updateSeconds(d Derived) float64 {
	second := float64(cost.CoresWork)
	if t.Policy.Starter == nil {
		second = cost.H100Work
	}
	return cost.TrainWork(t.Update.Keeps()) * float64(t.updateRows(d)) * float64(d.Sequence) * float64(d.Parameters) / second
}

// diagnosed is how many rows a diagnosis scores, if every reasoning is another.
func (t Train) diagnosed() int {
	n := t.Diagnostics.Samples
	return n * (t.Rollout.Groups + n)
}

// Pieces says in how many activities the steps of a device are made.
type Pieces struct {
	// GenerateRows is the rows of a piece of Generate; 0 is all.
	GenerateRows int
	// Score and Diagnose are the numbers of their pieces, where as many rows are selected
	// as selection.method says.
	Score, Diagnose int
	// Update is about the number of an update's pieces, which also end by time.
	Update int
	// Snapshot is about the number of a snapshot's pieces; 0 is one.
	Snapshot int
}

// Generate is the number of pieces of a turn of so many rows.
func (p Pieces) Generate(rows int) int { return piecesOf(rows, p.GenerateRows) }

// Pieces are those of the spec's steps; d is what follows from the spec and its model.
func (t Train) Pieces(d Derived) Pieces {
	kept := t.Selection.KeptRows(t.Rollout) * t.Freshness.Rounds()
	if t.Selection.Exact() {
		kept = t.Rollout.Trajectories() * t.Freshness.Rounds()
	}
	p := Pieces{
		GenerateRows: t.Limits.GenerateRows,
		Score:        piecesOf(kept*t.Rollout.stretches(), t.Limits.ScoreRows), Diagnose: piecesOf(t.diagnosed(), t.Limits.ScoreRows),
	}
	byTime := t.updateSeconds(d) / (float64(t.Limits.ActivitySeconds) / 2)
	p.Update = max(piecesOf(t.updateRows(d), t.Limits.UpdateRows), int(math.Ceil(byTime)))
	if mib := t.Limits.SnapshotMiB; mib > 0 {
		p.Snapshot = 1 + piecesOf(int(d.Storage.Snapshot>>20), mib) // the first hashes
	}
	return p
}

func piecesOf(rows, size int) int {
	if size == 0 {
		return 1
	}
	return max(ceil(rows, size), 1)
}
