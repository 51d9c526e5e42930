package validate

import "github.com/reprise-rl/reprise/workflows/spec"

// derivedJSON is spec.Derived as `validate --json` writes it. Unknown values are omitted:
// widths if the environment did not give the contexts, the rest if the model is not
// available.
type derivedJSON struct {
	Trajectories   int          `json:"trajectories"`
	KeptGroups     int          `json:"kept_groups"`
	RowsKept       int          `json:"rows_kept"`
	MicroBatches   int          `json:"micro_batches"`
	Sequence       int          `json:"sequence,omitempty"`
	SampledTokens  int64        `json:"sampled_tokens"`
	ContextTokens  int64        `json:"context_tokens,omitempty"`
	UpdateTokens   int64        `json:"update_tokens,omitempty"`
	EvaluationRows int          `json:"evaluation_rows"`
	Parameters     int64        `json:"parameters,omitempty"`
	Memory         *memoryJSON  `json:"memory_bytes,omitempty"`
	Storage        *storageJSON `json:"storage_bytes,omitempty"`
}

// memoryJSON is spec.Memory, in bytes.
type memoryJSON struct {
	Weights     int64 `json:"weights"`
	Moments     int64 `json:"moments"`
	Gradients   int64 `json:"gradients"`
	NextState   int64 `json:"next_state"`
	ComputeCopy int64 `json:"compute_copy"`
	Critic      int64 `json:"critic,omitempty"`
	Reference   int64 `json:"reference,omitempty"`
	Activations int64 `json:"activations"`
	KVCache     int64 `json:"kv_cache"`
	Peak        int64 `json:"peak"`
}

// storageJSON is spec.Storage, in bytes but for the counts.
type storageJSON struct {
	Iteration   int64 `json:"iteration"`
	Batch       int64 `json:"batch"`
	Snapshot    int64 `json:"snapshot"`
	Snapshots   int   `json:"snapshots"`
	Evaluations int   `json:"evaluations"`
	Run         int64 `json:"run"`
}

func newDerivedJSON(d spec.Derived, modelKnown bool) *derivedJSON {
	out := &derivedJSON{
		Trajectories: d.Trajectories, KeptGroups: d.KeptGroups, RowsKept: d.RowsKept, MicroBatches: d.MicroBatches,
		Sequence: d.Sequence, SampledTokens: d.SampledTokens, ContextTokens: d.ContextTokens, UpdateTokens: d.UpdateTokens,
		EvaluationRows: d.EvaluationRows,
	}
	if modelKnown {
		out.Parameters = d.Parameters
		memory, storage := memoryJSON(d.Memory), storageJSON(d.Storage)
		out.Memory, out.Storage = &memory, &storage
	}
	return out
}
