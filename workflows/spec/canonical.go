package spec

import (
	"encoding/json"
	"strconv"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
)

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
