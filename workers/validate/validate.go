// Package validate checks documents as the workflows' first activities do, a run's spec,
// a sweep, an evaluation's input, and says what follows from them.
package validate

import (
	"fmt"
	"io"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// Result is what follows from a document. As JSON it is what programs read.
type Result interface {
	// Sound says that there are no problems.
	Sound() bool
	problems() spec.Problems
	// text is the result of a sound document for people.
	text(name string) (string, error)
}

// Verdict is whether a document is sound. Of one with problems nothing else is known.
type Verdict struct {
	OK       bool          `json:"ok"`
	Problems spec.Problems `json:"problems"`
}

// verdictOf is the verdict on a document with these problems, if any.
func verdictOf(p spec.Problems) Verdict {
	return Verdict{OK: len(p) == 0, Problems: append(spec.Problems{}, p...)}
}

// Sound implements [Result].
func (v Verdict) Sound() bool { return v.OK }

func (v Verdict) problems() spec.Problems { return v.Problems }

// Print writes a result for people; name is the document's.
func Print(out io.Writer, name string, r Result) error {
	text := fmt.Sprintf("%s: %v\n", name, r.problems())
	if r.Sound() {
		var err error
		if text, err = r.text(name); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, text)
	return err
}
