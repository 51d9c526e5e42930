package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// JSON is the spec in canonical form: sorted keys, no spaces, integers as
// integers, shortest numbers. Equal specs have equal bytes, and Decode reads
// them back to an equal spec. The error is a number that JSON cannot say, or
// options that are no JSON.
func (t Train) JSON() ([]byte, error) { return canonicalJSON(t) }

// JSON is the settings in the canonical form of Train.JSON.
func (s Settings) JSON() ([]byte, error) { return canonicalJSON(s) }

func canonicalJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	n, _, ok := parse(b)
	if !ok {
		return nil, fmt.Errorf("encode spec: more than %d bytes or %d levels", MaxBytes, MaxDepth)
	}
	var out bytes.Buffer
	n.canonical(&out)
	return out.Bytes(), nil
}
