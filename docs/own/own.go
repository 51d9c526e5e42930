// Package own has the examples of environments that docs/own-environments.md shows, for programs
// that run them.
package own

import _ "embed"

// Bare is bare.py, an environment over standard input and output that needs Python's standard
// library alone.
//
//go:embed bare.py
var Bare []byte
