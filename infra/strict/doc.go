// Package strict reads JSON that people write by hand: specs, sweeps, options of
// environments, the input of commands. Parse gives a tree of nodes that keeps what
// encoding/json loses: the order of the keys, repeated keys, and every value as it is
// written. Typed reads convert nothing silently: 1.0 is not an integer and "1" is not a
// number.
//
// A reader reports all problems at once, as Problems, each with its path, what was found,
// what is allowed and a hint. Nearest and DidYouMean guess what a misspelt word means.
//
// Canonical JSON is written by infra/store/canon. The package does no I/O.
package strict
