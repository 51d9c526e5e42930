package report

import (
	"encoding/json"
)

// fieldPage is a field of the spec in which settings differ, and its value in each of
// them, in their order; empty where the spec has no such field.
type fieldPage struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// fields are the fields in which the settings' definitions differ, with the values of the
// resolved specs where a run has begun: a definition leaves out what is a default.
func (s Sweep) fields(of [][]int) []fieldPage {
	defined, resolved := make([]map[string]string, len(of)), make([]map[string]string, len(of))
	paths := map[string]bool{}
	for k, trials := range of {
		if text := s.Trials[trials[0]].Spec; len(text) > 0 {
			defined[k] = leaves("", text)
		}
		for _, i := range trials {
			if r := s.Trials[i].Run; r != nil && r.SpecText != nil && resolved[k] == nil {
				resolved[k] = leaves("", r.SpecText)
			}
		}
		for path := range defined[k] {
			paths[path] = true
		}
	}
	var out []fieldPage
	for _, path := range sortedKeys(paths) {
		if path == "seed" || path == "description" {
			continue
		}
		field, differs := fieldPage{Path: path}, false
		for k := range of {
			differs = differs || defined[k][path] != defined[0][path]
			value, known := defined[k][path]
			if !known {
				value = resolved[k][path]
			}
			if !known && resolved[k] == nil {
				value = "the default"
			}
			field.Values = append(field.Values, shortValue(value))
		}
		if differs {
			out = append(out, field)
		}
	}
	return out
}

// shortValue is a JSON value as a table shows it: a text without quotes, and not too long.
func shortValue(text string) string {
	var plain string
	if json.Unmarshal([]byte(text), &plain) == nil && plain != "" {
		text = plain
	}
	if runes := []rune(text); len(runes) > maxValue {
		text = string(runes[:maxValue]) + "…"
	}
	return text
}

// maxValue is the most characters of a value in the table.
const maxValue = 60
