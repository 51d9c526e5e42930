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
	Adapters      int64        `json:"adapter_parameters,omitempty"`
	LargestTensor int64        `json:"-"`
	Memory        cost.Memory  `json:"memory_bytes"`
	Storage       cost.Storage `json:"storage_bytes"`
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

// Derive computes the numbers that follow from a resolved spec and a model.
func Derive(t Train, m cost.Network) Derived {
	j := t.Job(m)
	d := Derived{
		Trajectories:  t.Rollout.Trajectories(),
		KeptGroups:    t.Selection.Kept(t.Rollout.Groups),
		RowsKept:      t.keptRows(),
		MicroBatches:  j.Update.Batches,
		ContextsKnown: len(t.Rollout.PromptTokens) > 0,
		Sequence:      j.Update.Width,
		SampledTokens: int64(t.Rollout.Slots()) * int64(t.Rollout.Turns) * int64(t.Rollout.MaxNewTokens),
		ContextTokens: j.Rollout.ContextTokens(),
		UpdateTokens:  j.Update.Tokens(),
		Parameters:    m.Parameters(),
		Adapters:      m.Adapters(j.Adapters),
		LargestTensor: m.LargestTensor(),
		Memory:        j.Memory(),
	}
	if t.Evaluation.Every > 0 {
		d.EvaluationRows = t.Evaluation.Rows()
	}
	d.Storage = j.Storage(t.artifacts(d.EvaluationRows))
	return d
}

// HostBytes is an estimate of what the steps of a run hold in the memory of a host at once,
// in Go's heap: the largest tensor, since snapshots are read and written one tensor at a time,
// or the tables of an iteration, encoded and decoded. What the device holds is not in it, also
// where the device is the CPU.
func (d Derived) HostBytes() int64 {
	return max(4*d.LargestTensor, 4*d.Storage.Iteration)
}

// artifacts is what the run writes; an evaluation has so many rows.
func (t Train) artifacts(evaluationRows int) cost.Artifacts {
	a := cost.Artifacts{Iterations: t.Iterations, EvaluationRows: evaluationRows, Batches: 1, Published: t.Rollout.Workers > 1}
	if t.Update.Passes.On() { // each pass has a batch, of all rows if none ends before its last turn
		a.Batches = t.Rollout.Turns
	}
	if t.Credit.Second() {
		a.BatchNumbers = 2 * t.Credit.Values() // returns and old values
		if t.Credit.BySubgoals() {
			a.BatchNumbers += t.Credit.Values() // which of them are learned
		}
	}
	if t.Update.KLIn == KLLoss {
		a.BatchNumbers++
	}
	for version := range t.Iterations + 1 {
		if t.Snapshot.Due(version, t.Iterations) {
			a.Snapshots++
		}
		if t.Evaluation.Due(version, t.Iterations) {
			a.Evaluations++
		}
	}
	return a
}
