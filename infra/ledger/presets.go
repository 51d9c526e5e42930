package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// What a preset is cut down to.
const (
	iterations     = 2
	evaluationRows = 4
	// A warm start is a quarter of the preset's, at least so many updates. After a few no reply is valid:
	// all rewards are equal, all advantages are 0, and a change of credit or selection shows nowhere.
	warmStartPart  = 4
	warmStartSteps = 60
	// mostSteps bounds it: a preset takes some twenty seconds.
	mostSteps = 125
)

// document is a preset, decoded.
type document = map[string]any

// preset is a run that both builds make.
type preset struct {
	name string
	spec json.RawMessage // cut down
}

// digest names what is run.
func (p preset) digest() string { return canon.Digest(p.spec) }

// presetsOf chooses and cuts the presets of one side: file contents by name without ".json". wanted are
// names, or nothing for all.
func presetsOf(files map[string][]byte, wanted []string) (map[string]preset, error) {
	out := map[string]preset{}
	for name, content := range files {
		d := json.NewDecoder(bytes.NewReader(content))
		d.UseNumber()
		var doc document
		if err := d.Decode(&doc); err != nil {
			return nil, fmt.Errorf("preset %s: %w", name, err)
		}
		if !startsItself(doc) || len(wanted) > 0 && !slices.Contains(wanted, name) {
			continue
		}
		cut(doc)
		text, err := json.Marshal(doc)
		if err != nil {
			return nil, fmt.Errorf("preset %s: %w", name, err)
		}
		out[name] = preset{name, text}
	}
	return out, nil
}

// startsItself says whether a preset is one run whose policy is made from nothing. Sweeps have a base;
// published models have other policies.
func startsItself(doc document) bool {
	return doc["base"] == nil && text(object(doc, "policy"), "from") == "starter"
}

// cut shortens a run without changing its kind: what is due later is due in the second iteration. The
// rollout stays whole, because with fewer rows an update has fewer minibatches, and a selection less to
// choose from.
func cut(doc document) {
	doc["iterations"] = iterations
	if w := object(doc, "policy", "warm_start"); w != nil {
		lower(w, "steps", min(mostSteps, max(warmStartSteps, number(w, "steps")/warmStartPart)))
	}
	if e := object(doc, "evaluation"); e != nil {
		lower(e, "instances", evaluationRows)
		lower(e, "samples", 1)
		for _, suite := range list(e, "suites") {
			if s, ok := suite.(document); ok {
				lower(s, "instances", evaluationRows)
			}
		}
	}
	if d := object(doc, "diagnostics"); d != nil {
		lower(d, "every", 1)
	}
	// A stage of a reference ends with a snapshot.
	if u := object(doc, "update"); u != nil && u["reference_every"] != nil {
		u["reference_every"] = 1
		object(doc, "snapshot")["every"] = 1
	}
	if doc["schedule"] != nil {
		doc["schedule"] = firstChanges(list(doc, "schedule"))
	}
}

// firstChanges are the first change of each field that is scheduled, in the second iteration.
func firstChanges(schedule []any) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(schedule, func(change any) bool {
		c, ok := change.(document)
		if !ok || seen[text(c, "field")] {
			return ok
		}
		seen[text(c, "field")] = true
		c["from"] = 1
		return false
	})
}

// object is the object at a path; nil if there is none.
func object(doc document, path ...string) document {
	for _, name := range path {
		doc, _ = doc[name].(document)
	}
	return doc
}

func list(doc document, name string) []any {
	l, _ := doc[name].([]any)
	return l
}

func text(doc document, name string) string {
	s, _ := doc[name].(string)
	return s
}

// number is a whole number; 0 if it is none.
func number(doc document, name string) int {
	n, _ := doc[name].(json.Number)
	i, _ := n.Int64()
	return int(i)
}

// lower sets a number that is above limit to it.
func lower(doc document, name string, limit int) {
	if number(doc, name) > limit {
		doc[name] = limit
	}
}

// namesOf are the names that a flag lists with commas.
func namesOf(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
