package spec

import "github.com/reprise-rl/reprise/model/cost"

// Shape is the starter's model with a vocabulary of the given size; its head is
// tied to the embedding.
func (s Starter) Shape(vocabulary int) cost.Network {
	return cost.Network{
		Layers: s.Layers, HiddenSize: s.HiddenSize, IntermediateSize: s.IntermediateSize,
		Heads: s.Heads, KVHeads: s.KVHeads, VocabSize: vocabulary, Tied: true,
	}
}

// Storage is an estimate of the bytes a run writes to S3, before compression.
type Storage struct {
	// Iteration is the turn files, the trajectories and the batch of an iteration.
	Iteration int64 `json:"iteration"`
	// Batch is the batch alone: retention never removes it.
	Batch int64 `json:"batch"`
	// Snapshot is one snapshot: weights and moments in float32.
	Snapshot int64 `json:"snapshot"`
	// Published is what the sampler's programs read of a version, stored in each iteration that rolls
	// out with rollout.workers above 1: see model.Programs.SamplerFiles. 0 without.
	Published int64 `json:"published,omitempty"`
	// Snapshots and Evaluations are how many a run has.
	Snapshots   int `json:"snapshots"`
	Evaluations int `json:"evaluations"`
	// Run is all of it, the base model's copy included.
	Run int64 `json:"run"`
}

// Derived are the numbers that follow from a spec and a model.
type Derived struct {
	// Trajectories, KeptGroups, RowsKept and MicroBatches are an iteration's:
	// made, and learned from.
	Trajectories int `json:"trajectories"`
	KeptGroups   int `json:"kept_groups"`
	RowsKept     int `json:"rows_kept"`
	MicroBatches int `json:"micro_batches"`
	// ContextsKnown says that rollout.prompt_tokens is known. If it is not, Sequence,
	// ContextTokens, UpdateTokens, Memory's Activations, KVCache and Peak, and Storage's
	// Batch, Iteration and Run are 0.
	ContextsKnown bool `json:"-"`
	// Sequence is the width of a row in Score and Update: the last turn's
	// context and what is sampled after it.
	Sequence int `json:"sequence,omitempty"`
	// SampledTokens is the most tokens an iteration samples.
	SampledTokens int64 `json:"sampled_tokens"`
	// ContextTokens is what an iteration's prefills read, padding included.
	ContextTokens int64 `json:"context_tokens,omitempty"`
	// UpdateTokens is what Score and Update each read, padding included.
	UpdateTokens int64 `json:"update_tokens,omitempty"`
	// Parameters is the model's, and LargestTensor the number of weights of its largest
	// tensor.
	Parameters int64 `json:"parameters,omitempty"`
	// Adapters is the number of weights of the adapters; 0 in a run that trains all weights.
	Adapters      int64       `json:"adapter_parameters,omitempty"`
	LargestTensor int64       `json:"-"`
	Memory        cost.Memory `json:"memory_bytes"`
	Storage       Storage     `json:"storage_bytes"`
	// Actions are what Temporal Cloud bills; nil where they were not counted.
	Actions *Actions `json:"billed_actions,omitempty"`
	// EvaluationRows is the trajectories of an evaluation, 0 without any.
	EvaluationRows int `json:"evaluation_rows"`
}

// Actions are the actions that Temporal Cloud bills for an iteration without retries,
// heartbeats aside.
type Actions struct {
	// Iteration is one that does nothing besides training; the mean of those that share a
	// rollout.
	Iteration float64 `json:"iteration"`
	// Snapshot, Evaluation and Diagnosis come besides, 0 where there is none in the run.
	Snapshot   int `json:"snapshot,omitempty"`
	Evaluation int `json:"evaluation,omitempty"`
	Diagnosis  int `json:"diagnosis,omitempty"`
}

const (
	float32Bytes = 4
	// contextTokenBytes and sampledTokenBytes are the bytes in the tables: id and text of
	// a token of the context; and id, log-prob, mask and text of a sampled token, which
	// is in the turn's files and again in the trajectories. rowBytes is everything else
	// in a row.
	contextTokenBytes = 8
	sampledTokenBytes = 13
	rowBytes          = 256
	// batchTokenBytes is a token's id, mask, old log-prob and advantage.
	batchTokenBytes = 16
)

// Derive computes the numbers that follow from a resolved spec and a model.
func Derive(t Train, m cost.Network) Derived {
	d := Derived{
		Trajectories:  t.Rollout.Trajectories(),
		KeptGroups:    t.Selection.Kept(t.Rollout.Groups),
		ContextsKnown: len(t.Rollout.PromptTokens) > 0,
		Parameters:    m.Parameters(),
		Adapters:      m.Adapters(t.Policy.LoRA.adapters()),
		LargestTensor: m.LargestTensor(),
	}
	d.RowsKept = t.keptRows()
	d.SampledTokens = int64(t.Rollout.Slots()) * int64(t.Rollout.Turns) * int64(t.Rollout.MaxNewTokens)
	if t.Evaluation.Every > 0 {
		d.EvaluationRows = t.Evaluation.Rows()
	}
	d.MicroBatches = ceil(d.RowsKept, t.Update.MicroBatch)
	if d.ContextsKnown {
		widths := t.Rollout.PromptTokens
		d.Sequence = t.width()
		d.ContextTokens = int64(t.Rollout.firstPrompts()) * int64(widths[0])
		for _, width := range widths[1:] {
			d.ContextTokens += int64(t.Rollout.Slots()) * int64(width)
		}
		d.UpdateTokens = int64(d.MicroBatches) * int64(t.Update.MicroBatch) * int64(d.Sequence)
	}
	d.Memory = t.Job(m).Memory()
	d.Storage = storage(t, m, d)
	return d
}

// keptRows is the number of rows that an iteration learns from.
func (t Train) keptRows() int {
	rows := t.Selection.KeptRows(t.Rollout)
	if s := t.Update.Supervised; !s.Alone() {
		rows += t.Freshness.Replayed(rows)
		rows += s.Rows(rows)
	}
	return rows * t.Rollout.stretches()
}

// HostBytes is an estimate of what the steps of a run hold in the memory of a host at once,
// in Go's heap: the largest tensor, since snapshots are read and written one tensor at a time,
// or the tables of an iteration, encoded and decoded. What the device holds is not in it, also
// where the device is the CPU.
func (d Derived) HostBytes() int64 {
	return max(float32Bytes*d.LargestTensor, 4*d.Storage.Iteration)
}

func storage(t Train, m cost.Network, d Derived) Storage {
	s := Storage{Snapshot: 3 * float32Bytes * m.Trained(t.Policy.LoRA.adapters())}
	tokenBytes := int64(batchTokenBytes)
	if t.Credit.Second() {
		s.Snapshot *= 2
		tokenBytes += 2 * float32Bytes * int64(t.Credit.Values()) // returns and old values
		if t.Credit.BySubgoals() {
			tokenBytes += float32Bytes * int64(t.Credit.Values()) // which of them are learned
		}
	}
	if t.Update.KLIn == KLLoss {
		tokenBytes += float32Bytes
	}
	if t.Rollout.Workers > 1 {
		s.Published = t.Job(m).Published()
	}
	for version := range t.Iterations + 1 {
		if t.Snapshot.Due(version, t.Iterations) {
			s.Snapshots++
		}
		if t.Evaluation.Due(version, t.Iterations) {
			s.Evaluations++
		}
	}
	if !d.ContextsKnown {
		return s
	}
	s.Batch = tokenBytes * d.UpdateTokens
	if t.Update.Passes.On() { // each pass has a batch, of all rows if none ends before its last turn
		s.Batch *= int64(t.Rollout.Turns)
	}
	rows := func(trajectories int64) int64 {
		turns, context := int64(t.Rollout.Turns), int64(0)
		for _, width := range t.Rollout.PromptTokens {
			context += int64(width)
		}
		sampled := turns * int64(t.Rollout.MaxNewTokens)
		return trajectories * (contextTokenBytes*context + sampledTokenBytes*2*sampled + rowBytes*(turns+1))
	}
	s.Iteration = rows(int64(t.Rollout.Slots())) + s.Batch
	// In float64, so that an absurd spec does not overflow.
	run := float64(t.Iterations)*(float64(s.Iteration)+float64(s.Published)) + float64(s.Snapshots)*float64(s.Snapshot) +
		float64(s.Evaluations)*float64(rows(int64(d.EvaluationRows))) + float64(float32Bytes*d.Parameters)
	s.Run = int64(min(run, 1<<62))
	return s
}
