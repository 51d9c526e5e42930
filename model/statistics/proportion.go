// Package statistics computes intervals of success rates and of means, and pass@k, for
// evaluations.
//
// Functions here are pure. Sums run in the order of their slices, and products are
// rounded before they are added, so that the bits are the same on machines that fuse
// products with sums. Results for invalid arguments are NaN.
package statistics

import "math"

// Z95 is the z of a 95 % interval: the 97.5 % point of the normal distribution.
const Z95 = 1.959963984540054

// Wilson computes the score interval of a success rate (Wilson 1927, Probable Inference,
// the Law of Succession, and Statistical Inference): all rates p that differ from the
// observed rate by at most z standard errors of p. Unlike the usual interval it stays
// within 0 and 1, and it has a positive width even if all trials or none succeeded.
//
// Trials may be a fraction, as EffectiveTrials are. Without trials the interval is 0 to 1.
// It is NaN unless 0 ≤ successes ≤ trials and z > 0, all finite.
func Wilson(successes, trials, z float64) (low, high float64) {
	if !(successes >= 0 && successes <= trials && z > 0) || math.IsInf(trials, 0) || math.IsInf(z, 0) {
		return math.NaN(), math.NaN()
	}
	if trials == 0 {
		return 0, 1
	}
	// Multiplied by trials and divided by trials + z², so that all terms are positive:
	// successes + z²/2 ∓ z √(successes (trials − successes) / trials + z²/4).
	zz := float64(z * z)
	below := trials + zz
	middle := successes + zz/2
	half := float64(z * math.Sqrt(float64(successes*(trials-successes))/trials+zz/4))
	low, high = (middle-half)/below, (middle+half)/below
	// Remove rounding errors at the ends.
	if successes == 0 {
		low = 0
	}
	if successes == trials {
		high = 1
	}
	return max(low, 0), min(high, 1)
}

// EffectiveTrials is the number of independent trials that determine the success rate as
// precisely as several samples of each instance, whose outcomes are correlated:
//
//	N / (1 + (Σ mᵢ²/N − 1) ρ)
//
// for mᵢ samples of instance i, N in all (the design effect of Kish 1965, Survey
// Sampling). ρ is the correlation of two samples of an instance, estimated by analysis of
// variance (Donner and Koval 1980, The Estimation of Intraclass Correlation) and clamped
// to [0, 1]. If all samples have the same outcome, it cannot be estimated, and ρ is 1.
//
// With one sample of each instance the result is the number of instances. With m samples
// of each it is between the number of instances and the number of samples. successes and
// samples: [instances]. The result is NaN unless both have the same length and
// 0 ≤ successes ≤ samples and samples ≥ 1 for each instance.
func EffectiveTrials(successes, samples []int) float64 {
	sum, ok := total(successes, samples)
	if !ok {
		return math.NaN()
	}
	if sum.samples == 0 {
		return 0
	}
	if sum.squares == sum.samples {
		return sum.samples // one sample of each
	}
	n, rate := float64(len(samples)), sum.successes/sum.samples
	between, within := 0.0, 0.0
	for i, m := range samples {
		own := float64(successes[i]) / float64(m)
		between += float64(float64(m) * float64((own-rate)*(own-rate)))
		within += float64(float64(m) * float64(own*(1-own)))
	}
	correlation := 1.0
	if n > 1 && between+within > 0 {
		between /= n - 1
		within /= sum.samples - n
		typical := (sum.samples - sum.squares/sum.samples) / (n - 1)
		correlation = (between - within) / (between + float64((typical-1)*within))
	}
	correlation = min(max(correlation, 0), 1)
	return sum.samples / (1 + float64((sum.squares/sum.samples-1)*correlation))
}

// WilsonClustered computes the score interval of the success rate of several samples of
// each instance: Wilson with EffectiveTrials as the number of trials. With one sample of
// each instance it equals Wilson. successes and samples: [instances].
func WilsonClustered(successes, samples []int, z float64) (low, high float64) {
	sum, ok := total(successes, samples)
	trials := EffectiveTrials(successes, samples)
	if !ok || trials == sum.samples {
		return Wilson(sum.successes, trials, z)
	}
	return Wilson(min(sum.successes/sum.samples*trials, trials), trials, z)
}

// totals are the sums of successes, of samples and of the samples' squares.
type totals struct {
	successes, samples, squares float64
}

// total sums over the instances; ok is false for invalid numbers.
func total(successes, samples []int) (sum totals, ok bool) {
	if len(successes) != len(samples) {
		return totals{}, false
	}
	for i, m := range samples {
		if m < 1 || successes[i] < 0 || successes[i] > m {
			return totals{}, false
		}
		sum.successes += float64(successes[i])
		sum.samples += float64(m)
		sum.squares += float64(float64(m) * float64(m))
	}
	return sum, true
}
