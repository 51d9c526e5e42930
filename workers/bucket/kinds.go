// Package bucket says what a bucket holds, by run, sweep and evaluation, and removes what a person does not need any more.
package bucket

import (
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
)

// The kinds of objects, in the order in which they are shown.
const (
	Snapshots    = "snapshots"    // full training states
	Batches      = "batches"      // what updates read; a version without a snapshot is rebuilt from them
	Turns        = "turns"        // samples and the environment's answers
	Trajectories = "trajectories" // whole episodes
	Scores       = "scores"       // the device's figures of rows
	Evaluations  = "evaluations"  // tables of evaluations
	Manifests    = "manifests"    // commits and specs
	Other        = "other"        // telemetry, reports, a sweep's definitions and tables, leftovers
)

// Kinds are all kinds of objects of a run, a sweep or an evaluation.
var Kinds = []string{Snapshots, Batches, Turns, Trajectories, Scores, Evaluations, Manifests, Other}

// place is a key below one of the bucket's top folders: runs/SEGMENT/rest.
type place struct{ top, segment, rest string }

// placeOf takes a key apart; segment and rest are empty for an object that is in no folder of a folder.
func placeOf(key string) place {
	top, below, ok := strings.Cut(key, "/")
	if !ok {
		return place{top: key}
	}
	segment, rest, ok := strings.Cut(below, "/")
	if !ok {
		return place{top: top}
	}
	return place{top: top, segment: segment, rest: rest}
}

// The top folders, and what is in each of their folders.
const (
	topRuns        = store.RunsDir
	topSweeps      = "sweeps"
	topEvaluations = "evaluations"
	topModels      = "models"
	topPrograms    = store.ProgramsFolder
)

var (
	inBranch   = regexp.MustCompile(`^b[0-9]+/([a-z]+)/[^/]+/?(.*)$`)
	turnOfName = regexp.MustCompile(`^(round-[0-9]+\.|wave-[0-9]+\.)*(turn-[0-9]+|wave-[0-9]+)\.`)
)

// kindOf is the kind of an object of a run, a sweep or an evaluation.
func (p place) kindOf() string {
	if p.rest == "removed.json" {
		return Other
	}
	switch p.top {
	case topEvaluations:
		return Evaluations
	case topRuns:
	default:
		return Other
	}
	if p.rest == "spec.json" {
		return Manifests
	}
	in := inBranch.FindStringSubmatch(p.rest)
	if in == nil {
		return Other
	}
	switch in[1] {
	case "snapshots":
		return Snapshots
	case "evaluations":
		return Evaluations
	case "iterations":
		return ofIteration(in[2])
	}
	return Other
}

// ofIteration is the kind of a file of an iteration's folder: by what its name says before its digest.
func ofIteration(name string) string {
	if name == "manifest.json" {
		return Manifests
	}
	if turnOfName.MatchString(name) {
		return Turns
	}
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '/' || r == '-' }) {
		switch part {
		case "batch", "corrections":
			return Batches
		case "trajectories", "everything":
			return Trajectories
		case "scores":
			return Scores
		}
	}
	return Other
}
