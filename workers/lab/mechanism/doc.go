// Package mechanism compares every advantage with the true one, on a task that is small enough
// to enumerate: lakes of 2 × 2 cells, two turns, one answer a turn. A fixed policy plays
// [Groups] groups; each way to give credit turns their rewards into advantages, and [Judge] sets
// them beside the advantages that enumeration gives. There is no model, no device and no
// learning: what is measured is the estimate itself.
//
// A [Lake] is enumerated by [NewLake], [Play] rolls a batch out, [Methods] are the ways to give
// credit, listed in settings.json, and [Markdown] writes the first table of
// docs/results/mechanism.md. [PlayTrees] rolls out with branches. [MeasureSearches] says what searches keep, and
// how much of it is luck. The same program gives the same tables.
package mechanism
