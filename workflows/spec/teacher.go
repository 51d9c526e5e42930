package spec

import (
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/credit"
)

// teacherRules are the fields of the section teacher.
var teacherRules = []*rule{
	{path: "teacher.from", typ: typeString, source: fromOurs, text: checkFrozen, textAllowed: FrozenAllowed,
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
