package cost

// Storage is an estimate of the bytes a run writes to S3, before compression.
type Storage struct {
	// Iteration is the turn files, the trajectories and the batch of an iteration.
	Iteration int64 `json:"iteration"`
	// Batch is the batch alone: retention never removes it.
	Batch int64 `json:"batch"`
	// Snapshot is one snapshot: weights and moments in float32.
	Snapshot int64 `json:"snapshot"`
	// Published is what the sampler's programs read of a version, stored in each iteration that rolls
	// out for other workers: see model.Sampler.Files. 0 without.
	Published int64 `json:"published,omitempty"`
	// Snapshots and Evaluations are how many a run has.
	Snapshots   int `json:"snapshots"`
	Evaluations int `json:"evaluations"`
	// Run is all of it, the base model's copy included.
	Run int64 `json:"run"`
}

// Artifacts is what a run writes.
type Artifacts struct {
	Iterations, Snapshots, Evaluations int
	// EvaluationRows are the trajectories of an evaluation.
	EvaluationRows int
	// Batches are those of an iteration. BatchNumbers are a token's beside those that every batch has.
	Batches, BatchNumbers int
	// Published says that versions are stored for other workers.
	Published bool
}

const (
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

// Storage is what the run writes. Batch, Iteration and Run are 0 if the widths of contexts are not known.
func (j Job) Storage(a Artifacts) Storage {
	models := j.models()
	trained := int64(len(models)) * j.Network.Trained(j.Adapters)
	s := Storage{Snapshot: 3 * float32Bytes * trained, Snapshots: a.Snapshots, Evaluations: a.Evaluations}
	if a.Published {
		s.Published = models[0].copied()
	}
	if j.Update.Width == 0 {
		return s
	}
	s.Batch = int64(a.Batches) * int64(batchTokenBytes+float32Bytes*a.BatchNumbers) * j.Update.Tokens()
	s.Iteration = j.Rollout.rowsBytes(j.Rollout.Rows) + s.Batch
	// In float64, so that an absurd spec does not overflow.
	run := float64(a.Iterations)*(float64(s.Iteration)+float64(s.Published)) + float64(s.Snapshots)*float64(s.Snapshot) +
		float64(s.Evaluations)*float64(j.Rollout.rowsBytes(a.EvaluationRows)) + float64(float32Bytes*j.Network.Parameters())
	s.Run = int64(min(run, 1<<62))
	return s
}

// rowsBytes is the bytes of so many rows in the turn files and the trajectories.
func (r Rollout) rowsBytes(rows int) int64 {
	turns, context := int64(len(r.Turns)), int64(0)
	for _, turn := range r.Turns {
		context += int64(turn.Width)
	}
	return int64(rows) * (contextTokenBytes*context + sampledTokenBytes*2*turns*int64(r.Fresh) + rowBytes*(turns+1))
}
