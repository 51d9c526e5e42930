package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A document that was given to a workflow of another type is named, in one problem.
func TestDocumentOfAnotherWorkflow(t *testing.T) {
	decodeEvaluate := func(b []byte, known Known) error { _, err := DecodeEvaluate(b, known); return err }
	decode := func(b []byte, known Known) error { _, err := Decode(b, known); return err }
	for _, c := range []struct {
		read           func([]byte, Known) error
		document, want string
	}{
		{decode, `{"base":"bandit-demo","grid":{"update.learning_rate":[1e-4]},"seeds":2}`, `(spec): found a sweep (it has "base"); allowed: a run's spec (start it with --type Sweep)`},
		{decode, `{"policy":"bandit-1","suites":["sokoban"]}`, `(spec): found an evaluation's input (it has "policy"); allowed: a run's spec (start it with --type Evaluate)`},
		{decodeEvaluate, `{"environment":{"name":"bandit"}}`, `(spec): found a run's spec (it has "environment"); allowed: an evaluation's input (start it with --type Train)`},
		{decodeEvaluate, `{"base":"bandit-demo","seeds":2}`, `(spec): found a sweep (it has "base"); allowed: an evaluation's input (start it with --type Sweep)`},
		// A key of another type beside one's own is an unknown key.
		{decode, `{"environment":{"name":"bandit"},"seeds":2}`, "an unknown key"},
		{decode, `null`, "give it by --input-file FILE or --input JSON"},
	} {
		require.ErrorContains(t, c.read([]byte(c.document), Known{}), c.want, c.document)
	}
}
