package sweep

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	// maxLabel bounds a label in bytes: it is part of a workflow's id.
	maxLabel = 200
	// maxValue is the longest value a label shows whole.
	maxValue = 40
)

// label reads the label a person gives to a setting.
func (r *reader) label(at string, n strict.Node) string {
	at += ".label"
	s, ok := r.text(at, n, 80)
	if ok && (s == "" || s != clean(s) || strings.ContainsAny(s, "/,=")) {
		r.add(at, found(n), "a text of visible ASCII characters without '/', ',' and '='", "")
	}
	return s
}

// labelOf names changes as they were written: "selection.keep=0.25,update.epochs=2".
func labelOf(changes []change) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		parts[i] = c.path + "=" + valueText(c.value)
	}
	label := clean(strings.Join(parts, ","))
	if len(label) > maxLabel {
		label = label[:maxLabel-9] + "~" + canon.Digest([]byte(label))[:8]
	}
	return label
}

// seedLabel is a setting's label with a seed.
func seedLabel(setting string, seed uint64) string {
	return joinLabels(setting, "seed="+strconv.FormatUint(seed, 10))
}

// valueText is a value in a label: a text without quotes, an object by its name if it has
// one, by its digest if it is long.
func valueText(raw json.RawMessage) string {
	var text string
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' && len(text) <= maxValue {
		return text
	}
	if json.Unmarshal(raw, &named) == nil && named.Name != "" && len(named.Name) <= maxValue {
		return named.Name
	}
	if len(raw) > maxValue {
		return "#" + canon.Digest(raw)[:8]
	}
	return string(raw)
}

// clean changes a text so that shells and terminals show it as it is.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return '_'
		}
		return c
	}, s)
}

func underLabel(label, path string) string { return fmt.Sprintf("trial %q: %s", label, path) }
