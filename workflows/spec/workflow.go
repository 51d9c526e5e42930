package spec

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

// The types of the workflows that a person starts with a document. Each reads its own only.
const (
	TrainType    = "Train"
	SweepType    = "Sweep"
	EvaluateType = "Evaluate"
)

// about is what the document of each type is, in words.
var about = map[string]string{TrainType: "a run's spec", SweepType: "a sweep", EvaluateType: "an evaluation's input"}

// marks are the keys that only the documents of a type have at the top.
var marks = map[string][]string{
	TrainType:    {"environment", "rollout", "iterations", "update", "credit", "selection", "snapshot", "evaluation"},
	SweepType:    {"base", "grid", "list", "random", "seeds", "early_stopping"},
	EvaluateType: {"suites"},
}

// marked is the first key of a document that only those of a workflow's type have, "" if there is none. A policy by its
// run's id, or with a version, is an evaluation's.
func marked(root strict.Node, workflow string) string {
	for _, m := range root.Members() {
		if slices.Contains(marks[workflow], m.Key) {
			return m.Key
		}
		if workflow == EvaluateType && m.Key == "policy" {
			_, named := m.Value.Text()
			if named || slices.ContainsFunc(m.Value.Members(), func(m strict.Member) bool { return m.Key == "run" || m.Key == "version" }) {
				return m.Key
			}
		}
	}
	return ""
}

// OfAnother is the problem of a document that a workflow of another type reads, and whether it is one. want is the type
// that was given it, path the name of the whole document.
func OfAnother(root strict.Node, want, path string) (Problem, bool) {
	if marked(root, want) != "" {
		return Problem{}, false
	}
	for _, is := range []string{SweepType, TrainType, EvaluateType} {
		if key := marked(root, is); key != "" {
			return Problem{
				Path: path, Found: fmt.Sprintf("%s (it has %q)", about[is], key), Allowed: about[want],
				Hint: fmt.Sprintf("start it with --type %s", is),
			}, true
		}
	}
	return Problem{}, false
}
