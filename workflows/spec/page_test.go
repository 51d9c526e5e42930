package spec

import (
	"encoding/json"
	"fmt"
	"strings"
)

// pageRow is a row of docs/spec.md.
type pageRow struct {
	// Path is the JSON path.
	Path string
	// Type is the JSON type: integer, number, boolean, string, object, array of integers.
	Type string
	// Default is the default as JSON. If the starter and other policies differ, it has
	// both; if there is no default, it says so in words.
	Default string
	// Allowed says in words which values are allowed.
	Allowed string
	// Source is where the default comes from.
	Source string
	// Doc says what the field means.
	Doc string
	// Knob says that the change-knob command can change the field during a run.
	Knob bool
}

func fieldsOf(rules []*rule) []pageRow {
	fields := make([]pageRow, 0, len(rules))
	for _, r := range rules {
		fields = append(fields, pageRow{
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

// markdown is the reference page of the spec, docs/spec.md.
func markdown() string {
	var b strings.Builder
	b.WriteString(`# The spec of a run

<!-- Generated from workflows/spec/defaults.go; go test ./workflows/spec -update writes this page. -->

A run starts from one JSON object, the input of the Train workflow. The smallest one is

` + "```json" + `
{"environment": {"name": "bandit"}}
` + "```" + `

Everything else has a default. ` + "`reprise validate FILE`" + ` checks a spec: it prints all problems, or the spec with its
defaults and the numbers that follow from it. The Resolve activity makes the same check at the start of a run.
[A whole spec](whole-spec.md) shows all fields with their defaults in one block.

The document is read strictly. Keys are case-sensitive; unknown keys, duplicate keys and null are refused; integers are
written as integers; and nothing may follow the object. The document has at most 1 MiB and 32 levels. All problems are
reported at once.

A field marked ◆ is a knob: the change-knob command changes it during the run, from the next iteration on.

Defaults come from the paper (StarPO and StarPO-S, arXiv 2504.20073) or from its program RAGEN, which uses verl. They
are ours if a model of a million parameters on a laptop's CPU needs other values.
`)
	// One table a section, in the order in which the sections first come.
	var sections []string
	tables := map[string]string{}
	for _, f := range fieldsOf(rules()) {
		section, key := "At the top", f.Path
		if i := strings.LastIndexByte(f.Path, '.'); i >= 0 {
			section, key = f.Path[:i], f.Path[i+1:]
		}
		if tables[section] == "" {
			sections = append(sections, section)
		}
		tables[section] += f.line(key)
	}
	for _, section := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s", section, fieldsHead, tables[section])
	}
	for _, list := range []struct {
		title    string
		elements []*rule
	}{{"A part of a mixture", partRules}, {"A suite", suiteRules}, {"Bounds of a turn", clipRules}, {"A reward", rewardRules}, {"A tool", toolRules}, {"A rule for contexts", contextRules}, {"A scheduled setting", scheduleRules}} {
		fmt.Fprintf(&b, "\n## %s\n\n", list.title)
		b.WriteString(fieldsHead)
		for _, f := range fieldsOf(list.elements) {
			f.Knob = false
			b.WriteString(f.line(f.Path))
		}
	}
	b.WriteString("\n## Between fields\n\n")
	for _, r := range relations() {
		fmt.Fprintf(&b, "* %s\n", r.doc)
	}
	return b.String()
}

const fieldsHead = "| Field | Type | Default | Allowed | Source of the default | Meaning |\n|---|---|---|---|---|---|\n"

// line is the field's line of a table, by the name given.
func (f pageRow) line(key string) string {
	mark := ""
	if f.Knob {
		mark = " ◆"
	}
	return fmt.Sprintf("| `%s`%s | %s | %s | %s | %s | %s |\n", key, mark, f.Type, f.Default, f.Allowed, f.Source, f.Doc)
}
