package validate

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// teacherOf finds the model of a spec's teacher, as far as it is known here, and gives the spec its shape. Where the models of policy
// and teacher are at hand their vocabularies are compared, as the start of a run does, and that a policy can be shown something if it is
// its own teacher. It is zero without a teacher of its own.
func teacherOf(t *spec.Train, policy origin) (origin, error) {
	switch {
	case t.Teacher == nil, t.Teacher.Self() && (policy.unknown != "" || policy.estimated):
		return origin{}, nil
	case t.Teacher.Self():
		own, err := run.Tokenizer(*t, policy.files)
		if err == nil {
			err = run.CheckShown(*t, own)
		}
		return origin{}, err
	}
	from, err := t.Teacher.Origin()
	if err != nil {
		return origin{}, fmt.Errorf("teacher.from: %w", err)
	}
	if from.Kind == spec.OriginRun {
		unknown := t.Teacher.From + " is read from the store at the start"
		return origin{unknown: unknown, notes: []string{"Warning: the teacher's size is not in the numbers: " + unknown + "."}}, nil
	}
	out, err := wholeModel(spec.Policy{From: t.Teacher.From}, from, "teacher.from")
	if err != nil {
		return origin{}, err
	}
	for i, note := range out.notes {
		out.notes[i] = "The teacher: " + note
	}
	if out.unknown != "" {
		return out, nil
	}
	shaped := *t.Teacher
	shaped.Network = &out.shape
	t.Teacher = &shaped
	if out.files == nil || policy.unknown != "" || policy.estimated {
		out.notes = append(out.notes, "The vocabularies of policy and teacher are compared at the start, which refuses others.")
		return out, nil
	}
	w, err := run.NewBaseModel(out.files)
	if err != nil {
		return origin{}, fmt.Errorf("teacher.from: %w", err)
	}
	own, err := run.Tokenizer(*t, policy.files)
	if err != nil {
		return origin{}, err
	}
	return out, run.OtherVocabulary(*t, own, w.Tokenizer)
}
