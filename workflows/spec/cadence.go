package spec

import "math"

// The names of the algorithms a spec may ask for.
const (
	// SelectAll keeps every group.
	SelectAll = "all"
	// SelectTopFraction keeps the fraction of groups that ranks highest.
	SelectTopFraction = "top_fraction"
	// SelectTopCount keeps the number of groups that rank highest.
	SelectTopCount = "top_count"
	// SelectTopP keeps the highest groups that make up a share of all scores.
	SelectTopP = "top_p"
	// SelectTopPSoftmax keeps those that make up a share of the scores' softmax.
	SelectTopPSoftmax = "top_p_softmax"
	// SelectMinP keeps the groups within a share of the best score.
	SelectMinP = "min_p"
	// MetricRewardStd ranks groups by the sample standard deviation of the
	// penalised reward.
	MetricRewardStd = "reward_std"
	// Float32 is the compute dtype that equals the weights'.
	Float32 = "float32"
	// BFloat16 is the compute dtype of half the width.
	BFloat16 = "bfloat16"
)

// Trajectories is how many trajectories an iteration has.
func (r Rollout) Trajectories() int { return r.Groups * r.GroupSize }

// Rows is how many trajectories an evaluation has.
func (e Evaluation) Rows() int {
	rows := 0
	for _, s := range e.Suites {
		rows += s.Rows()
	}
	return rows
}

// Kept is how many of an iteration's groups an update learns from, at most: all
// of them, a count, or ⌊keep × groups⌋. The product is taken with a tolerance of
// 1e-9, so that 0.29 of 100 groups are 29 although 0.29 × 100 < 29 in float64.
func (s Selection) Kept(groups int) int {
	switch s.Method {
	case SelectTopCount:
		return min(s.Count, groups)
	case SelectTopFraction:
	default:
		return groups
	}
	return min(groups, int(math.Floor(s.Keep*float64(groups)+1e-9)))
}

// Due tells whether policy version v of a run gets a snapshot. Version 0 is the
// policy the run starts from; iteration n makes version n+1. Version 0 never
// has one: it is the base model.
func (s Snapshot) Due(version, iterations int) bool {
	return version > 0 && (version == iterations || version%s.Every == 0)
}

// Due tells whether policy version v of a run is evaluated; see Snapshot.Due
// for versions.
func (e Evaluation) Due(version, iterations int) bool {
	return e.Every > 0 && (version == 0 || version == iterations || version%e.Every == 0)
}
