package presets

import (
	"encoding/json"
	"fmt"
)

// With is a preset with some fields replaced; an object's fields are
// replaced one by one, and nil leaves a field out.
func With(preset string, fields map[string]any) ([]byte, error) {
	raw, err := Read(preset)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("preset %s: %w", preset, err)
	}
	Replace(doc, fields)
	leaveOut(doc)
	return json.Marshal(doc)
}

// leaveOut removes the fields that are nil.
func leaveOut(doc map[string]any) {
	for name, value := range doc {
		if inner, ok := value.(map[string]any); ok {
			leaveOut(inner)
		} else if value == nil {
			delete(doc, name)
		}
	}
}

// Replace replaces fields of a document, the fields of an object one by one.
func Replace(doc, fields map[string]any) {
	for name, value := range fields {
		inner, isObject := value.(map[string]any)
		if old, ok := doc[name].(map[string]any); ok && isObject {
			Replace(old, inner)
			continue
		}
		doc[name] = value
	}
}
