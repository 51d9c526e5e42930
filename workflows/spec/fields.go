package spec

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Field describes one field of the spec, as docs/spec.md lists it.
type Field struct {
	// Path is the JSON path.
	Path string `json:"path"`
	// Type is the JSON type: integer, number, boolean, string, object, array of integers.
	Type string `json:"type"`
	// Default is the default as JSON. If the starter and other policies differ, it has
	// both; if there is no default, it says so in words.
	Default string `json:"default"`
	// Allowed says in words which values are allowed.
	Allowed string `json:"allowed"`
	// Source is where the default comes from.
	Source string `json:"source"`
	// Doc says what the field means.
	Doc string `json:"doc"`
	// Knob says that the change-knob command can change the field during a run.
	Knob bool `json:"knob"`
}

// Fields lists every field of the spec, in the order of its types.
func Fields() []Field {
	return fieldsOf(rules())
}

func fieldsOf(rules []*rule) []Field {
	fields := make([]Field, 0, len(rules))
	for _, r := range rules {
		fields = append(fields, Field{
			Path: r.path, Type: r.typ.String(), Default: r.describeDefault(), Allowed: r.allowed(),
			Source: r.source, Doc: r.doc, Knob: r.knob,
		})
	}
	return fields
}

func (r *rule) describeDefault() string {
	switch {
	case r.required:
		return "none: required"
	case r.typ == typeIntegers:
		return "given by the environment"
	case r.inherits != "":
		return "`" + r.inherits + "`"
	case r.typ == typeTexts:
		return fmt.Sprintf("[]; `[%s]` for other policies than the starter", strings.Join(quoted(r.loaded.([]string)), ", "))
	case r.loaded != nil && r.starter == nil:
		return fmt.Sprintf("–; %s for other policies than the starter", literal(r.loaded))
	case r.typ == typeObjects || r.fallback(FromStarter) == nil && (r.typ == typeString || r.typ == typeInteger || r.typ == typeNumber || r.typ == typeBool):
		return "–"
	case r.typ == typeCollapse:
		return "every detector warns"
	case r.typ == typeOptions && r.node != nil:
		return "–"
	case r.typ == typeOptions:
		return "{}"
	case r.decided != "":
		return fmt.Sprintf("%s; for other policies than the starter %s", literal(r.fallback(FromStarter)), r.decided)
	case r.loaded != nil:
		return fmt.Sprintf("%s; %s for other policies than the starter", literal(r.starter), literal(r.loaded))
	}
	return literal(r.fallback(FromStarter))
}

func literal(v any) string {
	if f, ok := v.(float64); ok {
		return formatNumber(f)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
