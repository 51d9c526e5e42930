package spec

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
)

// JSON is the spec in canonical form: sorted keys, no spaces, integers as
// integers, shortest numbers. Equal specs have equal bytes, and Decode reads
// them back to an equal spec. The error is a number that JSON cannot express, or options
// that are not JSON.
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
	if b, err = canonical(n); err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	return b, nil
}

// canonical is the canonical form of a value of a spec.
func canonical(n strict.Node) ([]byte, error) { return canon.Marshal(plain(n)) }

// plain is a value for encoding/json. Each key is there once, and a negative zero
// is 0: the same number must be the same bytes.
func plain(n strict.Node) any {
	switch n.Kind() {
	case strict.Array:
		items := []any{}
		for _, item := range n.Items() {
			items = append(items, plain(item))
		}
		return items
	case strict.Object:
		members := map[string]any{}
		for _, m := range n.Members() {
			members[m.Key] = plain(m.Value)
		}
		return members
	case strict.Number:
		if f, ok := n.Float(); ok && f == 0 {
			return 0
		}
	}
	return json.RawMessage(n.Raw())
}

// formatNumber is the shortest text of a finite f, as encoding/json writes it.
func formatNumber(f float64) string {
	if f == 0 {
		return "0" // −0 too
	}
	text, err := json.Marshal(f)
	if err != nil {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(text)
}
