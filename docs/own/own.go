// Package own has the examples of environments that the pages show and link to, for programs that run
// them.
package own

import _ "embed"

// Bare is bare.py, an environment over standard input and output that needs Python's standard
// library alone.
//
//go:embed bare.py
var Bare []byte
