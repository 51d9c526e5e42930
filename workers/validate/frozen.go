package validate

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// frozenOf finds a model beside a spec's policy, as far as it is known here, and gives it its shape. Notes and errors call it what,
// as "teacher", and the field that names it field.
func frozenOf(of *spec.Frozen, what, field string) (origin, error) {
	from, err := of.Origin()
	if err != nil {
		return origin{}, fmt.Errorf("%s: %w", field, err)
	}
	if from.Kind == spec.OriginRun {
		unknown := of.From + " is read from the store at the start"
		return origin{unknown: unknown, notes: []string{fmt.Sprintf("Warning: the %s's size is not in the numbers: %s.", what, unknown)}}, nil
	}
	out, err := wholeModel(spec.Policy{From: of.From}, from, field)
	if err != nil {
		return origin{}, err
	}
	for i, note := range out.notes {
		out.notes[i] = "The " + what + ": " + note
	}
	if out.unknown == "" {
		of.Network = &out.shape
	}
	return out, nil
}

// teacherOf finds the model of a spec's teacher and gives the spec its shape. Where the models of policy and teacher are at hand
// their vocabularies are compared, as the start of a run does, and that a policy can be shown something if it is its own teacher.
// It is zero without a teacher that is a model of its own.
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
	shaped := *t.Teacher.Apart()
	out, err := frozenOf(&shaped, "teacher", "teacher.from")
	if err != nil || out.unknown != "" {
		return out, err
	}
	t.Teacher = spec.TeacherOf(shaped)
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

// judgeOf finds the model that judges a spec's episodes and gives the spec its shape. Where it is at hand it is asked a question, as
// the start of a run does. It is zero where no model beside the policy judges.
func judgeOf(t *spec.Train) (origin, error) {
	of := t.JudgeModel()
	if of == nil {
		return origin{}, nil
	}
	out, err := frozenOf(of, "judge", "rewards: judge")
	if err != nil || out.unknown != "" {
		return out, err
	}
	*t = t.WithJudgeModel(*of)
	if out.files == nil {
		return out, nil
	}
	w, err := run.NewBaseModel(out.files)
	if err != nil {
		return origin{}, fmt.Errorf("rewards: judge: %w", err)
	}
	return out, run.CannotJudge(*t, w.Tokenizer)
}

// besides finds the models beside a spec's policy, and gives the spec their shapes: its teacher and its judge. unknown says which
// of their sizes are not known, and why; "" where all are.
func besides(t *spec.Train, policy origin) (notes []string, unknown string, err error) {
	teacher, err := teacherOf(t, policy)
	if err != nil {
		return nil, "", err
	}
	judge, err := judgeOf(t)
	if err != nil {
		return nil, "", err
	}
	var why []string
	for _, of := range []struct {
		what string
		origin
	}{{"teacher", teacher}, {"judge", judge}} {
		notes = append(notes, of.notes...)
		if of.unknown != "" {
			why = append(why, fmt.Sprintf("the size of the %s is not known: %s", of.what, of.unknown))
		}
	}
	return notes, strings.Join(why, "; "), nil
}
