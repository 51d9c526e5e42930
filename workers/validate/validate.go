// Package validate checks documents as the workflows' first activities do, a run's spec,
// a sweep, an evaluation's input, and says what follows from them.
package validate

import (
	"fmt"
	"io"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// Result is the result of checking a document. Its JSON is the output of --json.
type Result interface {
	// Sound reports whether no problem was found.
	Sound() bool
	// Fits reports whether what was checked fits the device that was named, true if none
	// was.
	Fits() bool
	problems() spec.Problems
	// text is the output for a sound document, summary the part of it without the
	// document itself.
	text(name string) (string, error)
	summary() string
}

// Verdict is part of every result. If there are problems, all other fields are empty.
type Verdict struct {
	OK       bool          `json:"ok"`
	Problems spec.Problems `json:"problems"`
}

// verdictOf is the verdict of a document with these problems.
func verdictOf(p spec.Problems) Verdict {
	return Verdict{OK: len(p) == 0, Problems: append(spec.Problems{}, p...)}
}

// Sound implements [Result].
func (v Verdict) Sound() bool { return v.OK }

// Fits implements [Result] for documents that are compared with no device.
func (v Verdict) Fits() bool { return true }

// summary implements [Result] for documents that are printed whole.
func (v Verdict) summary() string { return "" }

func (v Verdict) problems() spec.Problems { return v.Problems }

// Summarize is [Print] without the document itself, if that is sound.
func Summarize(out io.Writer, name string, r Result) error {
	text := r.summary()
	if !r.Sound() || text == "" {
		return Print(out, name, r)
	}
	_, err := io.WriteString(out, text)
	return err
}

// Print writes a result as text; name is the document's name.
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
