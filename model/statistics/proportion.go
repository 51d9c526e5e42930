// Package statistics says how far numbers of an evaluation can be trusted:
// intervals of success rates and of means, and pass@k. One file a subject.
//
// Functions here are pure; sums run in the order of their slices, and products are
// rounded before they are added, so that the bits are the same on machines that
// fuse them. What cannot be computed is NaN.
package statistics

import "math"

// Z95 is the z of a 95 % interval: the 97.5 % point of the normal distribution.
const Z95 = 1.959963984540054

// Wilson gives the score interval of a success rate (Wilson 1927, Probable
// Inference, the Law of Succession, and Statistical Inference): all rates p from
// which the one seen is at most z standard errors away, the standard error that
// of p. Unlike the usual interval it stays within 0 and 1 and has a width where
// all, or none, succeeded.
//
// Trials may be a fraction, as EffectiveTrials are. Without trials it is 0 to 1;
// NaN unless 0 ≤ successes ≤ trials and z > 0, all finite.
func Wilson(successes, trials, z float64) (low, high float64) {
	if !(successes >= 0 && successes <= trials && z > 0) || math.IsInf(trials, 0) || math.IsInf(z, 0) {
		return math.NaN(), math.NaN()
	}
	if trials == 0 {
		return 0, 1
	}
	// Times trials and divided by trials + z², so that all is a sum of positive terms:
	// successes + z²/2 ∓ z √(successes (trials − successes) / trials + z²/4).
	zz := float64(z * z)
	below := trials + zz
	middle := successes + zz/2
	half := float64(z * math.Sqrt(float64(successes*(trials-successes))/trials+zz/4))
	low, high = (middle-half)/below, (middle+half)/below
	// What rounding leaves at the ends.
	if successes == 0 {
		low = 0
	}
	if successes == trials {
		high = 1
	}
	return max(low, 0), min(high, 1)
}

// EffectiveTrials is how many independent trials tell as much about the success
// rate as several samples of each instance do, whose outcomes are alike:
//
//	N / (1 + (Σ mᵢ²/N − 1) ρ)
//
// for mᵢ samples of instance i, N in all (the design effect of Kish 1965, Survey
// Sampling). ρ is the correlation of two samples of an instance, by analysis of
// variance (Donner and Koval 1980, The Estimation of Intraclass Correlation), but
// at least 0 and at most 1. Where every sample has the same outcome nothing can
// be told of it, and ρ is 1.
//
// So with one sample of each it is their number, and with m of each it lies
// between the number of instances and that of samples. successes and samples:
// [instances]. NaN unless they match, and 0 ≤ successes ≤ samples ≥ 1 of each.
func EffectiveTrials(successes, samples []int) float64 {
	solved, all, squares, ok := totals(successes, samples)
	if !ok {
		return math.NaN()
	}
	if all == 0 {
		return 0
	}
	if squares == all {
		return all // one sample of each
	}
	n, rate := float64(len(samples)), solved/all
	between, within := 0.0, 0.0
	for i, m := range samples {
		own := float64(successes[i]) / float64(m)
		between += float64(float64(m) * float64((own-rate)*(own-rate)))
		within += float64(float64(m) * float64(own*(1-own)))
	}
	correlation := 1.0
	if n > 1 && between+within > 0 {
		between /= n - 1
		within /= all - n
		typical := (all - squares/all) / (n - 1)
		correlation = (between - within) / (between + float64((typical-1)*within))
	}
	correlation = min(max(correlation, 0), 1)
	return all / (1 + float64((squares/all-1)*correlation))
}

// WilsonClustered gives the score interval of the success rate of several samples
// of each instance: Wilson's, of as many trials as EffectiveTrials. With one
// sample of each it is Wilson's own. successes and samples: [instances].
func WilsonClustered(successes, samples []int, z float64) (low, high float64) {
	solved, all, _, ok := totals(successes, samples)
	trials := EffectiveTrials(successes, samples)
	if !ok || trials == all {
		return Wilson(solved, trials, z)
	}
	return Wilson(min(solved/all*trials, trials), trials, z)
}

// totals are the sums of successes, of samples and of the samples' squares.
func totals(successes, samples []int) (solved, all, squares float64, ok bool) {
	if len(successes) != len(samples) {
		return 0, 0, 0, false
	}
	for i, m := range samples {
		if m < 1 || successes[i] < 0 || successes[i] > m {
			return 0, 0, 0, false
		}
		solved += float64(successes[i])
		all += float64(m)
		squares += float64(float64(m) * float64(m))
	}
	return solved, all, squares, true
}
