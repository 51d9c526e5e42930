package envs

import "github.com/reprise-rl/reprise/envs/calls"

// Grading is implemented by environments whose episodes are Graded. A turn of theirs has one action: MaxActionsPerTurn is
// 1.
type Grading interface {
	// Grading marks the environment; it does nothing.
	Grading()
}

// Grades reports whether the environments of a registered name are Grading, whatever their options.
func Grades(name string) bool {
	e, err := find(name)
	return err == nil && e.grades()
}

// Graded is implemented by episodes that have to ask outside of this program what an action leads to: by running a
// program that the policy wrote, for instance. The question is answered as those of outside tools are, and the answer
// becomes a part of the action's canonical name. So recorded actions alone still build an episode again.
type Graded interface {
	// Question is what is asked about an action that the policy wrote in this state; false if the action is not legal.
	// A name that WithAnswer gave is not: a policy that writes one has asked nobody.
	Question(action string) (ToolQuestion, bool)
	// WithAnswer is the canonical name of an action that has a Question, with the answer in it. Legal takes it, and Step.
	// Legal also takes an action as the policy wrote it, whose answer is imagined then: in random play and in transcripts.
	WithAnswer(action string, answer ToolAnswer) (canonical string)
}

// Question is the question that a Graded episode puts about a reply's action; false if it has none: nothing legal was written,
// or the episode asks nothing.
func (p Protocol) Question(episode Episode, reply Reply) (action string, q ToolQuestion, ok bool) {
	g, graded := episode.(Graded)
	if !graded || len(reply.Actions) == 0 {
		return "", q, false
	}
	action = reply.Actions[0]
	if p.Placeholder(action) || calls.IsAction(action) {
		return "", q, false
	}
	q, ok = g.Question(action)
	return action, q, ok
}

// grade is p.legal for the action of a Graded episode.
func (p Protocol) grade(episode Episode, reply Reply) (canonical string, ok bool) {
	action, _, ok := p.Question(episode, reply)
	switch {
	case !ok:
		return "", false
	case reply.Grade == nil:
		return episode.Legal(action)
	}
	return episode.(Graded).WithAnswer(action, *reply.Grade), true
}
