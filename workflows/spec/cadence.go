package spec

import "math"

// The names of the algorithms a spec may ask for.
const (
	// SelectAll keeps every group.
	SelectAll = "all"
	// SelectTopFraction keeps the fraction of groups that ranks highest.
	SelectTopFraction = "top_fraction"
	// MetricRewardStd ranks groups by the sample standard deviation of the
	// penalised reward.
	MetricRewardStd = "reward_std"
	// CreditGRPO is the group-normalised advantage.
	CreditGRPO = "grpo"
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

// Kept is how many of an iteration's groups an update learns from: all of
// them, or ⌊keep × groups⌋. The product is taken with a tolerance of 1e-9, so
// that 0.29 of 100 groups are 29 although 0.29 × 100 < 29 in float64.
func (s Selection) Kept(groups int) int {
	if s.Method == SelectAll {
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
