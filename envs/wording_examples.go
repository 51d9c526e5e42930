package envs

import "strings"

// Examples is the wording that shows replies made of the environment's own actions where Ours has
// placeholders ("your action"). A small instruct model copies a placeholder word by word; a copy of an
// example is a valid reply. The other messages are those of Ours.
//
// A fixed example is a bias: the policy starts with more of the actions that it shows, and of their
// order. It is kept small. An example never depends on what solves the instance. Where all states have
// the same actions, the turns of an episode show them in turn, so that each is shown as often as the
// others in an episode that is long enough; its first turn still favours the first. Where an instance
// has few actions of its own, as a bandit has, every one of them is shown as a reply, in the order in
// which the instance lists them: that order is drawn, so no action gains over many instances, and
// within one the first gains what being listed first gains.
const Examples = "examples"

const (
	// exampleThought is the thought of an example. A copy of it says nothing about any task.
	exampleThought = "I look at the state and choose."
	// exampleGoal is the subgoal of an example.
	exampleGoal = "come closer"
	// mostExamples is how many actions an instance has at most if each is shown as a reply.
	mostExamples = 4
	// exampleActions is how many actions an example has, if a turn may have so many.
	exampleActions = 2
)

// Exemplary is implemented by environments that say which actions the prompts of the wording Examples
// show. Without it these are Actions; or, where there are none, the choices of a state that has few.
type Exemplary interface {
	// Examples are actions that are legal in an episode's state, in the order in which prompts show
	// them: one turn the first, the next turn the next. They follow from the environment and from
	// what is legal; they solve no instance, and say of none what does. None: prompts show no example.
	Examples(episode Episode) []string
}

// LegalOf are those of some actions that are legal in an episode's state.
func LegalOf(episode Episode, actions ...string) []string {
	var out []string
	for _, action := range actions {
		if _, ok := episode.Legal(action); ok {
			out = append(out, action)
		}
	}
	return out
}

// ExampleReplies are whole replies, with their opening tags, that the wording Examples shows in a turn,
// counted from 1, with left actions left; nil where no example can be made.
func (p Protocol) ExampleReplies(env Environment, episode Episode, turn, left int) []string {
	answers := exampleAnswers(env, episode, turn, left)
	for i, answer := range answers {
		answers[i] = p.exampleThought(turn) + "<answer> " + answer + " </answer>"
	}
	return answers
}

// exampleAnswers are the answers of ExampleReplies.
func exampleAnswers(env Environment, episode Episode, turn, left int) []string {
	actions := env.Actions()
	if e, ok := env.(Exemplary); ok {
		actions = e.Examples(episode)
	} else if len(actions) == 0 {
		if _, free := env.(FreeForm); free {
			return nil // its choices are made of the instance
		}
		if choices := episode.Choices(); len(choices) <= mostExamples {
			return append([]string(nil), choices...)
		}
		return nil
	}
	if len(actions) == 0 {
		return nil
	}
	n := min(exampleActions, env.MaxActionsPerTurn(), len(actions))
	var shown []string
	for i := range max(min(n, left), 1) {
		shown = append(shown, actions[((turn-1)*n+i)%len(actions)])
	}
	return []string{strings.Join(shown, " "+Separator+" ")}
}

// exampleThought is the thought of an example; "" for a protocol without thoughts. Its subgoal is
// taken in odd turns and kept in even ones, so that neither is shown more.
func (p Protocol) exampleThought(turn int) string {
	switch {
	case p.Think && p.Subgoals && turn%2 == 1:
		return "<think> <switch> SWITCH </switch> <subgoal> " + exampleGoal + " </subgoal> </think>"
	case p.Think && p.Subgoals:
		return "<think> <switch> KEEP </switch> <subgoal> " + exampleGoal + " </subgoal> </think>"
	case p.Think:
		return "<think> " + exampleThought + " </think>"
	}
	return ""
}

// exampleForm is the form of a reply in the wording Examples.
func (p Protocol) exampleForm(env Environment, episode Episode, turn, left int) string {
	var s strings.Builder
	if p.Think && p.Subgoals {
		s.WriteString("In <switch> write KEEP to stay with your subgoal, or SWITCH to write another in <subgoal>.\n")
	}
	replies := p.ExampleReplies(env, episode, turn, left)
	switch {
	case len(replies) > 1:
		s.WriteString("Reply like one of these:\n")
	case len(replies) == 1:
		s.WriteString("Reply like this:\n")
	case p.Think && p.Subgoals:
		s.WriteString("Write both between <think> and </think>, and then your action between <answer> and </answer>.")
	case p.Think:
		s.WriteString("Think between <think> and </think>, and then write your action between <answer> and </answer>.")
	default:
		s.WriteString("Write your action between <answer> and </answer>, and nothing else.")
	}
	s.WriteString(strings.Join(replies, "\n"))
	return s.String()
}
