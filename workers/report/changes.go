package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// changes are the iterations whose settings differ from those before.
func (r *Run) changes() []changePage {
	var out []changePage
	for _, b := range r.Branches {
		var before []byte
		if b.Fork != nil {
			if it, ok := r.At(*b.Fork); ok {
				before = it.Manifest.Settings
			}
		}
		for _, it := range b.Iterations {
			m := it.Manifest
			if before != nil {
				if changed := settingsChanged(before, m.Settings); len(changed) > 0 {
					out = append(out, changePage{Branch: b.Number, Iteration: m.Iteration, Changes: changed, Kept: m.Iteration <= b.Kept})
				}
			}
			before = m.Settings
		}
	}
	return out
}

// settingsChanged lists the fields in which two settings differ, by their path:
// "update.learning_rate: 0.0003 → 0.00015".
func settingsChanged(before, after []byte) []string {
	if bytes.Equal(before, after) {
		return nil
	}
	a, b := leaves("", before), leaves("", after)
	all := map[string]bool{}
	for path := range a {
		all[path] = true
	}
	for path := range b {
		all[path] = true
	}
	shown := func(v string, ok bool) string {
		if !ok {
			return "nothing"
		}
		return v
	}
	var out []string
	for _, path := range sortedKeys(all) {
		was, had := a[path]
		is, has := b[path]
		if was != is || had != has {
			out = append(out, fmt.Sprintf("%s: %s → %s", path, shown(was, had), shown(is, has)))
		}
	}
	return out
}

// leaves are a JSON document's values that are not objects, by path. Those of objects in a
// list are leaves too: "evaluation.suites[0].name".
func leaves(path string, text []byte) map[string]string {
	out := map[string]string{}
	var list []map[string]json.RawMessage
	isNull := func(m map[string]json.RawMessage) bool { return m == nil }
	if json.Unmarshal(text, &list) == nil && len(list) > 0 && !slices.ContainsFunc(list, isNull) {
		for i, fields := range list {
			for name, value := range fields {
				maps.Copy(out, leaves(fmt.Sprintf("%s[%d].%s", path, i, name), value))
			}
		}
		return out
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		return map[string]string{path: string(text)}
	}
	for name, value := range fields {
		if path != "" {
			name = path + "." + name
		}
		maps.Copy(out, leaves(name, value))
	}
	return out
}
