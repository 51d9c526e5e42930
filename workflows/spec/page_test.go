package spec

import (
	"fmt"
	"strings"
)

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
	for _, f := range Fields() {
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
	}{{"A part of a mixture", partRules}, {"A suite", suiteRules}, {"Bounds of a turn", clipRules}, {"A reward", rewardRules}, {"A scheduled setting", scheduleRules}} {
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
func (f Field) line(key string) string {
	mark := ""
	if f.Knob {
		mark = " ◆"
	}
	return fmt.Sprintf("| `%s`%s | %s | %s | %s | %s | %s |\n", key, mark, f.Type, f.Default, f.Allowed, f.Source, f.Doc)
}
