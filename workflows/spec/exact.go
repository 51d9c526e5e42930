package spec

// ScoredBySampler reports whether the log-probs and entropies that the sampler gives are those that an iteration learns
// from: they are those of the version that learns, nothing else scores the rows, and credit reads nothing that the sampler
// does not give. An agent may ask for another temperature than the run's, at which rows are compared, so that its rows are
// scored. It follows from the spec alone.
func (t Train) ScoredBySampler() bool {
	return t.Policy.Exact && t.Rollout.Lag == 0 && t.Rollout.Agent == "" && !t.Update.Reference() && !t.Credit.Second() &&
		!t.Credit.ReadsSumSquares() && t.Teacher == nil
}
