// Package own has the examples of environments that docs/own-environments.md shows, for programs
// that run them.
package own

import _ "embed"

// Guess is guess.py, an environment over standard input and output that needs Python's standard
// library alone.
//
//go:embed guess.py
var Guess []byte
