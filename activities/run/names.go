package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Dir is the folder of a rollout's artifacts.
func Dir(run activities.Run, branch int, r activities.Rollout) string {
	if e := r.Evaluation; e != nil && e.Apart != "" {
		return store.ApartDir(e.Apart) + "/" + e.Suite
	} else if e != nil {
		return store.EvaluationDir(run.ID, branch, r.Iteration) + "/" + e.Suite
	}
	return store.IterationDir(run.ID, branch, r.Iteration)
}

// GradesName is the name of a piece of what is asked of a judge that is the run's own engine, or of what it answers.
func GradesName(r activities.Rollout, what string, piece int) string {
	name := fmt.Sprintf("%s-%d", what, piece+1)
	if r.Round > 0 {
		name = fmt.Sprintf("round-%d.%s", r.Round+1, name)
	}
	return name
}

// TurnName is the name of a turn's table.
func TurnName(r activities.Rollout, turn int, what string) string {
	name := fmt.Sprintf("turn-%d.%s", turn, what)
	if r.Wave > 0 {
		name = fmt.Sprintf("wave-%d.%s", r.Wave+1, name)
	}
	if r.Round > 0 {
		name = fmt.Sprintf("round-%d.%s", r.Round+1, name)
	}
	return name
}

// ForksName is the name of the table of where the rows of the next wave begin.
func ForksName(r activities.Rollout) string {
	name := fmt.Sprintf("wave-%d.forks", r.Wave+2)
	if r.Round > 0 {
		name = fmt.Sprintf("round-%d.%s", r.Round+1, name)
	}
	return name
}

// SortedKeys are a map's keys in their order: nothing ranges over a map into an artifact.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Canonical is a value as canonical JSON.
func Canonical(v any) (json.RawMessage, error) {
	b, err := canon.Marshal(v)
	return json.RawMessage(b), err
}

// DigestOf is the digest of a value's canonical JSON.
func DigestOf(v any) (string, error) {
	b, err := canon.Marshal(v)
	if err != nil {
		return "", err
	}
	return canon.Digest(b), nil
}
