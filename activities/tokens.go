package activities

import "github.com/reprise-rl/reprise/infra/store/canon"

// The tokens that rollouts have sampled, among an iteration's metrics where the run ends after so
// many: the iteration's own, and those of its branch up to it. Tokens that a search sampled and did not keep
// count; those that trajectories inherit count once.
const (
	SampledTokens      = "rollout/sampled_tokens"
	TotalSampledTokens = "rollout/sampled_tokens_total"
)

// CountTokens adds to an iteration's metrics how many tokens its branch has sampled; previous are
// the metrics of the iteration before. An iteration that learns from an earlier rollout sampled none.
func (p Plan) CountTokens(previous, metrics Metrics) {
	if p.StopTokens > 0 {
		metrics[TotalSampledTokens] = canon.Float(float64(previous[TotalSampledTokens]) + float64(metrics[SampledTokens]))
	}
}

// Spent reports whether an iteration with these metrics has sampled the last tokens of its run.
func (p Plan) Spent(m Metrics) bool {
	return p.StopTokens > 0 && float64(m[TotalSampledTokens]) >= float64(p.StopTokens)
}
