package collapse

// DefaultDecay of moving averages: RAGEN v2's for its mutual-information figures,
// and about what the paper's curves are smoothed with.
const DefaultDecay = 0.9

// SmoothedSuffix marks the smoothed curve of a metric, as in RAGEN v2's
// mi_zscore_ema.
const SmoothedSuffix = "_ema"

// Curves are the metrics that a run publishes raw and smoothed: those in which a
// collapse shows.
func Curves() []string {
	return []string{
		MetricRewardStd, "reward/mean", MetricSuccess, MetricValid, "response_length/mean",
		MetricDistinct, MetricSimilarity, MetricEntropy, MetricGradNorm, "actor/pg_clipfrac", "actor/ppo_kl",
		"critic/vf_explained_var", MetricRolloutDiff,
	}
}

// Smooth gives the smoothed curves of an iteration: for each name that raw or
// previous knows, name + SmoothedSuffix:
//
//	ema = decay · ema before + (1 − decay) · raw
//
// beginning with the first raw value. previous is what the iteration before
// published, smoothed curves among it, so only its metrics must be carried along, and a
// branch continues the curves of its fork point. A raw value that is missing or not
// finite leaves the smoothed one as it is. decay is in [0, 1); a value's weight falls to
// 37 % in about 1/(1−decay) iterations.
func Smooth(previous, raw Metrics, names []string, decay float64) Metrics {
	smoothed := make(Metrics, len(names))
	for _, name := range names {
		before, known := previous[name+SmoothedSuffix]
		v, ok := raw[name]
		switch {
		case ok && v.Finite() && known && before.Finite():
			smoothed[name+SmoothedSuffix] = toward(before, float64(v), 1-decay)
		case ok && v.Finite():
			smoothed[name+SmoothedSuffix] = v
		case known:
			smoothed[name+SmoothedSuffix] = before
		}
	}
	return smoothed
}
