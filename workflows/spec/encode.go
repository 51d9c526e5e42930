package spec

import (
	"encoding/json"
	"fmt"
)

// JSON is the spec in canonical form: sorted keys, no spaces, integers as
// integers, shortest numbers. Equal specs have equal bytes, and Decode reads
// them back to an equal spec. The error is a number that JSON cannot express, or options
// that are not JSON.
func (t Train) JSON() ([]byte, error) { return canonicalJSON(t) }

func canonicalJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	n, _, ok := parse(b)
	if !ok {
		return nil, fmt.Errorf("encode spec: more than %d bytes or %d levels", MaxBytes, MaxDepth)
	}
	if b, err = canonical(n); err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	return b, nil
}
