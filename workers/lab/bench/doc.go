// Package bench measures what the algorithms cost: credit and selection on a host;
// selection, critic and losses on a device. It measures the speed of the policy's
// programs, the cost of an iteration through Temporal and S3 over the same activities
// called directly, what a sweep adds to its trials, and how long a run stalls when a
// worker is killed.
//
// All figures of a comparison are medians, measured in turns by one process, so that
// other load on the machine slows both sides.
package bench
