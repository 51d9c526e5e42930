package spec

import (
	"cmp"
	"errors"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	// MaxBytes is the largest spec Decode reads.
	MaxBytes = 1 << 20
	// MaxDepth is the deepest nesting of objects and arrays Decode reads.
	MaxDepth = 32
)

// wholeSpec is the path of what is wrong with the whole document.
const wholeSpec = "(spec)"

// Problem is one thing wrong with a spec or with a change of a knob.
type Problem = strict.Problem

// Problems is everything wrong with a spec. As an error it is the text a person
// reads, from `reprise validate` and from the Resolve activity alike.
type Problems = strict.Problems

// parse reads one JSON value and nothing after it, and lists the repeated keys. The last
// result is false if there is nothing to read on.
func parse(b []byte) (strict.Node, Problems, bool) {
	n, err := strict.Parse(b, strict.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	if bad := (*strict.Unreadable)(nil); errors.As(err, &bad) {
		return n, Problems{{Path: wholeSpec, Found: bad.Found, Allowed: bad.Allowed}}, false
	}
	return n, n.Repeated(""), true
}

func orWhole(path string) string { return cmp.Or(path, wholeSpec) }

const nothing = "nothing"

// Writes reports whether a document has the field of a path, as "update.micro_batch".
func Writes(document []byte, path string) bool {
	n, _, ok := parse(document)
	for key := range strings.SplitSeq(path, ".") {
		if !ok {
			return false
		}
		ok = false
		for _, m := range n.Members() {
			if m.Key == key {
				n, ok = m.Value, true
				break
			}
		}
	}
	return ok
}
