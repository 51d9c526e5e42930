package activities

import "github.com/reprise-rl/reprise/infra/store/canon"

// The tokens that rollouts have sampled, among an iteration's metrics where the run ends after so
// many: the iteration's own, and those of its branch up to it. Tokens that a search sampled and did not keep
// count; those that trajectories inherit count once.
const (
	SampledTokens      = "rollout/sampled_tokens"
	TotalSampledTokens = "rollout/sampled_tokens_total"
)

// SuccessInARow is, among an iteration's metrics where the run ends by success, how many iterations
// of its branch in a row up to it have had the success that the spec asks for.
const SuccessInARow = "success/in_a_row"

// CountStops adds to an iteration's metrics what the end of the run depends on: how many tokens its
// branch has sampled, and for how many iterations in a row it has succeeded; previous are
// the metrics of the iteration before. An iteration that learns from an earlier rollout sampled
// none, and has no success of its own. Counted again, an iteration has the same counts.
func (p Plan) CountStops(previous, metrics Metrics) {
	if p.StopTokens > 0 {
		metrics[TotalSampledTokens] = canon.Float(float64(previous[TotalSampledTokens]) + float64(metrics[SampledTokens]))
	}
	if p.StopSuccess.For == 0 {
		return
	}
	success, rolledOut := metrics["success/mean"]
	switch {
	case !rolledOut:
		metrics[SuccessInARow] = previous[SuccessInARow]
	case float64(success) >= p.StopSuccess.AtLeast:
		metrics[SuccessInARow] = previous[SuccessInARow] + 1
	default:
		metrics[SuccessInARow] = 0
	}
}

// Reached reports whether an iteration with these metrics is the last one of its run, by its tokens or by
// its success.
func (p Plan) Reached(m Metrics) bool {
	return p.StopTokens > 0 && float64(m[TotalSampledTokens]) >= float64(p.StopTokens) ||
		p.StopSuccess.For > 0 && float64(m[SuccessInARow]) >= float64(p.StopSuccess.For)
}
