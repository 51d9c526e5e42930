package spec

import (
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/credit"
)

// Teacher is what scores the policy's rows beside it: a model that is not trained, or the policy itself, which is shown more.
type Teacher struct {
	// From, Model and Network are as those of a Frozen. From may also be FromSelf.
	From string `json:"from"`
	// Context is what a teacher that is the policy is shown before a row, and ContextTokens the most tokens of that; "" and 0 of others.
	Context       string `json:"context,omitempty"`
	ContextTokens int    `json:"context_tokens,omitempty"`

	Model   string        `json:"model,omitempty"`
	Network *cost.Network `json:"-"`
}

// FromSelf is the Teacher.From of a policy that is its own teacher: the version that learns, shown more
// than it had when it played.
const FromSelf = "self"

// What a policy that is its own teacher is shown.
const (
	// ShownSuccess is the actions of the first other trajectory of the row's group that succeeded.
	ShownSuccess = "success"
	// ShownDemonstration is the actions of the environment's solver in the row's own instance.
	ShownDemonstration = "demonstration"
)

// maxContextTokens bounds teacher.context_tokens.
const maxContextTokens = 65_536

// Self reports whether the policy is its own teacher. t may be nil.
func (t *Teacher) Self() bool { return t != nil && t.From == FromSelf }

// Apart is the teacher's model, or nil where there is none: the policy is its own teacher, or has none. t may be nil.
func (t *Teacher) Apart() *Frozen {
	if t == nil || t.Self() {
		return nil
	}
	return &Frozen{From: t.From, Model: t.Model, Network: t.Network}
}

// TeacherOf is the teacher that is a model.
func TeacherOf(f Frozen) *Teacher { return &Teacher{From: f.From, Model: f.Model, Network: f.Network} }

// teacherAllowed says what teacher.from may be.
const teacherAllowed = `"` + FromSelf + `", ` + FrozenAllowed

// checkTeacher says what is wrong with teacher.from; "" if nothing is.
func checkTeacher(from string) string {
	if from == FromSelf {
		return ""
	}
	return checkFrozen(from)
}

// teacherRules are the fields of the section teacher.
var teacherRules = []*rule{
	{path: "teacher.from", typ: typeString, source: fromOurs, text: checkTeacher, textAllowed: teacherAllowed,
		doc: "The teacher, which scores the policy's rows (docs/algorithms.md#distill): \"self\", the policy itself, which is shown `teacher.context`; or a model that is not trained, whole, of the hub, a folder on the host worker or the store, " +
			"or a run's snapshot of a version, the newest without @VERSION (version 0 is the run's base model). Its architecture may be another than the policy's, its tokenizer's vocabulary may not. " +
			"The start of the run copies it into the store."},
	{path: "teacher.context", typ: typeString, source: fromOurs, enum: []string{ShownSuccess, ShownDemonstration},
		doc: "What the policy is shown as its own teacher, in a message before the row: the actions of the first other trajectory of the row's group that succeeded (success), or those of the environment's solver in the row's instance (demonstration). " +
			"A row for which there is none has no teacher: its own log-probs stand for it."},
	{path: "teacher.context_tokens", typ: typeInteger, span: between(1, maxContextTokens), source: fromOurs,
		doc: "The most tokens of that message. The last turns are left out until it fits; if not even the first does, nothing is shown."},
	{path: "teacher.model", typ: typeString, source: fromOurs, text: checkFolderDigest, textAllowed: "the SHA-256 of a model's folder in the store",
		doc: "The teacher's digest. Leave it out: the start of the run writes it down. Where it is given, another model at `teacher.from` is refused."},
}

// teacher is the spec's teacher; zero without one.
func (t Train) teacher() Teacher {
	if t.Teacher == nil {
		return Teacher{}
	}
	return *t.Teacher
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
			paths: []string{"teacher.from", "teacher.context"},
			doc:   "teacher.context is given if teacher.from is self, and only then: another model is shown what the policy saw.",
			broken: func(t Train) (bool, string, string) {
				of := t.teacher()
				return of.From != "" && of.Self() != (of.Context != ""), strict.Quote(of.From),
					`"self" with teacher.context, or another teacher without`
			},
		},
		{
			paths: []string{"teacher.context", "teacher.context_tokens"},
			doc:   "teacher.context_tokens is given if teacher.context is, and only then.",
			broken: func(t Train) (bool, string, string) {
				of := t.teacher()
				return (of.Context != "") != (of.ContextTokens > 0), strict.Quote(of.Context),
					"teacher.context_tokens beside teacher.context, for its message"
			},
		},
		{
			paths: []string{"teacher.from", "teacher.model"},
			doc:   "teacher.model is left out if teacher.from is self: it is the policy.",
			broken: func(t Train) (bool, string, string) {
				return t.Teacher.Self() && t.Teacher.Model != "", strict.Quote(FromSelf), "a teacher without teacher.model"
			},
		},
		{
			paths: []string{"teacher.from", "rollout.agent"},
			doc:   "teacher.from self excludes rollout.agent: an agent's calls have no actions to show.",
			broken: func(t Train) (bool, string, string) {
				return t.Teacher.Self() && t.Rollout.Agent != "", strict.Quote(FromSelf), "another teacher with rollout.agent"
			},
		},
		{
			paths: []string{"teacher.context", "rollout.lag", "freshness.online"},
			doc:   "teacher.context demonstration excludes rollout.lag and freshness.online above 1: the solver plays the instances of the iteration's own rollout.",
			broken: func(t Train) (bool, string, string) {
				return t.Teacher.Self() && t.Teacher.Context == ShownDemonstration && (t.Rollout.Lag > 0 || t.Freshness.Online > 1),
					strict.Quote(ShownDemonstration), strict.Quote(ShownSuccess) + ", or rollout.lag 0 and freshness.online 1"
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
