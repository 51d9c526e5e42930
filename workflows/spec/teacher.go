package spec

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/credit"
)

// Teacher is a model that scores the policy's rows and is not trained.
type Teacher struct {
	// From is as Policy.From, but for the starter, or OriginRun, a run's id and, behind @, a version; see Origin.
	From string `json:"from"`
	// Model is the digest of the model's folder in the store (store.FolderDigest): the start of a run writes it down.
	Model string `json:"model,omitempty"`
	// Network is its shape, by which sizes are estimated; nil where it is not known. It is not part of the spec.
	Network *cost.Network `json:"-"`
}

// OriginRun is the kind of an Origin that is a snapshot of a run. A policy has none of it: a run begins with another's by
// Train.From.
const OriginRun = "run"

// teacherAllowed is what teacher.from may be.
const teacherAllowed = `"hf:NAME", "hf:NAME@REVISION", "folder:PATH", "model:" and 12 hex digits, or "run:ID@VERSION"`

var folderDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Origin takes From apart. The error says what is wrong with it.
func (t Teacher) Origin() (Origin, error) {
	name, is := strings.CutPrefix(t.From, OriginRun+":")
	if !is {
		out, err := originOf(t.From)
		if err == nil && out.Kind == OriginStarter {
			err = errors.New(`a starter is made by a run: name that run, as "run:ID@VERSION"`)
		}
		return out, err
	}
	out := Origin{Kind: OriginRun, Name: name, Version: NewestSnapshot}
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		n, err := strconv.Atoi(name[at+1:])
		if err != nil || n < 0 || strconv.Itoa(n) != name[at+1:] {
			return Origin{}, fmt.Errorf("%s is no version", strict.Quote(name[at+1:]))
		}
		out.Name, out.Version = name[:at], n
	}
	if wrong := checkRun(out.Name); wrong != "" {
		return Origin{}, fmt.Errorf("%s is no run's id: %s", strict.Quote(out.Name), wrong)
	}
	return out, nil
}

// NewestSnapshot is the Origin.Version of a run's newest snapshot.
const NewestSnapshot = -1

func checkTeacher(from string) string {
	if _, err := (Teacher{From: from}).Origin(); err != nil {
		return err.Error()
	}
	return ""
}

func checkFolderDigest(text string) string {
	if folderDigest.MatchString(text) {
		return ""
	}
	return strict.Quote(text) + " is not 64 hex digits in lower case"
}

// teacherRules are the fields of the section teacher.
var teacherRules = []*rule{
	{path: "teacher.from", typ: typeString, source: fromOurs, text: checkTeacher, textAllowed: teacherAllowed,
		doc: "The teacher, which scores the policy's rows and is not trained (docs/algorithms.md#distill): a whole model, of the hub, a folder on the host worker or the store, " +
			"or a run's snapshot of a version, the newest without @VERSION (version 0 is the run's base model). Its architecture may be another than the policy's, its tokenizer's vocabulary may not. " +
			"The start of the run copies it into the store."},
	{path: "teacher.model", typ: typeString, source: fromOurs, text: checkFolderDigest, textAllowed: "the SHA-256 of a model's folder in the store",
		doc: "The teacher's digest. Leave it out: the start of the run writes it down. Where it is given, another model at `teacher.from` is refused."},
}

// withTeacher are the algorithms that read the log-probs of a teacher.
func withTeacher() []string {
	return algorithms(func(a credit.Algorithm) bool { return a.ReadsTeacher })
}

// ReadsTeacher reports whether the algorithm reads the log-probs of a teacher.
func (c Credit) ReadsTeacher() bool { return c.algorithm().ReadsTeacher }

// teacherRelations are the rules between a teacher and other fields.
func teacherRelations() []relation {
	return []relation{
		{
			paths: []string{"credit.algorithm", "teacher.from"},
			doc:   "teacher.from is given if credit.algorithm is " + listed(withTeacher(), "or") + ", which reads a teacher's log-probs.",
			broken: func(t Train) (bool, string, string) {
				return t.Credit.ReadsTeacher() && (t.Teacher == nil || t.Teacher.From == ""), strict.Quote(t.Credit.Algorithm),
					`teacher.from beside it, the model to learn from; or an algorithm without a teacher`
			},
		},
		{
			paths: []string{"teacher", "credit.algorithm"},
			doc:   "teacher is given only if credit.algorithm is " + listed(withTeacher(), "or") + ": nothing else reads it.",
			broken: func(t Train) (bool, string, string) {
				return t.Teacher != nil && !t.Credit.ReadsTeacher(), "an object, with credit.algorithm " + t.Credit.Algorithm,
					"nothing, unless credit.algorithm is " + oneOf(withTeacher())
			},
		},
		{
			paths: []string{"credit.algorithm", "update.passes.order"},
			doc:   "credit.algorithm " + listed(withTeacher(), "or") + " excludes update.passes: between two passes the policy alone scores the rows again.",
			broken: func(t Train) (bool, string, string) {
				return t.Credit.ReadsTeacher() && t.Update.Passes.On(), strict.Quote(t.Credit.Algorithm) + " with update.passes",
					"one of the two: leave update.passes out, or take an algorithm without a teacher"
			},
		},
	}
}
