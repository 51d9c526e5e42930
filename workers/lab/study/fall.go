package study

import "math"

// Window is the number of iterations that a level is a mean of: early levels of the first
// Window, final levels of the last.
const Window = 10

const (
	// A reward has fallen if it is below the best by more than fallShare of the best and
	// by more than fallErrors standard errors of the difference.
	fallShare  = 0.10
	fallErrors = 3
)

// Fall describes the fall of a reward.
type Fall struct {
	// Begins is the first low iteration: the one after the last, up to Seen, that was at
	// or above 90 % of the best.
	Begins int
	// Seen is the first iteration at which the mean of the last Window was low.
	Seen int
	// From is the best mean of Window iterations before, To the lowest since.
	From float64
	To   float64
	// Recovered reports that the mean of the run's last Window is no longer low.
	Recovered bool
}

// FindFall finds where a reward falls; false if it does not, or if it has fewer than two
// windows. rewards: [iterations], expected values over the payouts, whose randomness would
// look like rises and falls.
//
// It falls at the first iteration n for which the mean of the Window
// iterations up to n is lower than the best mean of Window consecutive iterations
// that ended before these began, by more than a tenth of that best and by more than
// three standard errors of the difference of the two means (from the sample
// variances inside the windows).
func FindFall(rewards []float64) (Fall, bool) {
	best, bestVariance := math.Inf(-1), 0.0
	for n := 2*Window - 1; n < len(rewards); n++ {
		if m, v := window(rewards, n-Window); m > best {
			best, bestVariance = m, v
		}
		mean, variance := window(rewards, n)
		if !fallen(best, bestVariance, mean, variance) {
			continue
		}
		f := Fall{Begins: n, Seen: n, From: best, To: mean}
		for f.Begins > n-Window+1 && rewards[f.Begins-1] < (1-fallShare)*best {
			f.Begins--
		}
		for ; n < len(rewards); n++ {
			mean, variance = window(rewards, n)
			f.To = min(f.To, mean)
		}
		f.Recovered = !fallen(best, bestVariance, mean, variance)
		return f, true
	}
	return Fall{}, false
}

func fallen(best, bestVariance, mean, variance float64) bool {
	gap := best - mean
	return gap > fallShare*math.Abs(best) && gap > fallErrors*math.Sqrt((bestVariance+variance)/Window)
}

// window is the mean and the sample variance of the Window values up to n.
func window(xs []float64, n int) (mean, variance float64) {
	xs = xs[n-Window+1 : n+1]
	for _, x := range xs {
		mean += x / Window
	}
	for _, x := range xs {
		variance += float64((x-mean)*(x-mean)) / (Window - 1)
	}
	return mean, variance
}
