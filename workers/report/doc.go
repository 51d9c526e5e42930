// Package report makes pages of runs and sweeps for people: one HTML file that works
// offline, opened from a folder, and beside it the trajectories in pieces that the page
// loads on demand.
//
// [Load] reads a run through the store into a [Run]: its branches, its curves, what the
// detectors saw, evaluations, timings, and a list of everything that is missing. So a
// running, failed or half-deleted run is shown as far as it exists. [Write] reads a run
// and gives the report's files to a [Sink], which puts them in a folder or a bucket;
// [WriteSweep] does the same for several runs that were made to be compared. The same
// store gives the same bytes, whatever the clock and the machine.
//
// # Files
//
//	index.html          the page: styles, program, curves and tables are in it
//	data/index.js       which trajectories there are, and what became of each
//	data/b0-000012.0.js trajectories of an iteration, in parts of bounded size
//	data/b0-e000020-1.0.js  those of an evaluation: version 20, its second suite
//
// A browser does not let a page from a folder fetch files. Script elements work there, so
// the pieces are programs that pass one JSON value to the page.
//
// # Trust
//
// Sampled text, text of an environment and specs are data: they are written as JSON
// without <, >, & and line separators, and become text nodes, never markup. The page's
// policy (CSP) allows the two programs in it by their hashes, and with trusted types no
// string can become markup or a program even by mistake.
package report
