// Package bench measures what the algorithms cost, credit and selection on a host,
// selection, critic and losses on a device; the speed of the policy's programs; what
// an iteration costs through Temporal and S3 beside the same activities called
// directly; what a sweep adds to its trials; and how long a run stands still when a
// worker is killed.
//
// All figures of a comparison come from one process and one sitting, taken in
// turns, and are medians: a machine that is busy with something else slows both
// sides.
package bench

import "slices"

// lowQuarter is the value a quarter of xs is below: on a machine that others
// use too, the iterations that were disturbed least. 0 where there are none.
func lowQuarter(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(xs))[(len(xs)-1)/4]
}
