package envs

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const (
	// Ours is the wording of this project: the fewest words that say the same.
	Ours = "reprise"
	// Ragen is the wording of RAGEN's context manager, version 1.
	Ragen = "ragen"
)

// Wording is a wording of prompts that is no file.
type Wording struct {
	// Name is the value of rollout.protocol.
	Name string
	// Thought says that its tags stand in a thought, so that it needs Protocol.Think.
	Thought bool
	// Subgoals says that it asks for subgoals and points to the one of the turn before; Mute says that it
	// cannot ask for them. Neither: it asks if Protocol.Subgoals says so.
	Subgoals, Mute bool
}

// AllWordings are the wordings in the alphabetical order of their names, ours by its project's.
var AllWordings = []Wording{
	{Name: Examples}, {Name: Hiper, Thought: true, Subgoals: true}, {Name: Ragen, Mute: true}, {Name: Ours},
	{Name: Vagen, Thought: true, Mute: true},
}

// AboutWordings says for people what each is.
const AboutWordings = "`reprise` is ours; `examples` is ours with replies made of the environment's own actions in the place of placeholders, " +
	"which a small instruct model copies; `ragen` is that of RAGEN's code, whose hint of a length is `rollout.max_new_tokens`; " +
	"`hiper` (subgoals) and `vagen` (an observation and a prediction) are those of their authors"

// Wordings are the names of the wordings that fit.
func Wordings(fits func(Wording) bool) []string {
	var out []string
	for _, w := range AllWordings {
		if fits(w) {
			out = append(out, w.Name)
		}
	}
	return out
}

// AnyWording fits all.
func AnyWording(Wording) bool { return true }

// AsksSubgoals fits those that ask for subgoals by themselves.
func AsksSubgoals(w Wording) bool { return w.Subgoals }

// MuteOfSubgoals fits those that cannot ask for subgoals.
func MuteOfSubgoals(w Wording) bool { return w.Mute }

// ThoughtAlone fits those that need a thought and no subgoals.
func ThoughtAlone(w Wording) bool { return w.Thought && !w.Subgoals }

// Asks reports whether prompts ask for a tag in replies, by its name: "answer", "think", "switch",
// "subgoal", "observation" or "prediction". Templates ask for the tags that they write themselves, and
// with {format} for those of Ours.
func (p Protocol) Asks(tag string) bool {
	written := func(form string) bool { return strings.Contains(form, "<"+tag+">") }
	switch {
	case p.Tools != nil:
		return tag == "answer" || tag == "think" && p.Think
	case p.Templates != nil:
		return p.Templates.writes("<"+tag+">") || p.Templates.has(turnPart, "format") && written(p.format())
	case p.Wording == Hiper:
		return written(hiperForm)
	case p.Wording == Vagen:
		return written(vagenForm)
	case p.Wording == Ragen:
		return written("<answer>") || p.Think && written("<think>")
	}
	return written(p.format())
}

// ragenSystem is RAGEN's first message, with its blank at the end.
const ragenSystem = "You're a helpful assistant. "

// ragenBegin is begin in RAGEN's words. The legend of an environment's symbols is part of
// its instructions here, and stands where RAGEN has its own.
func (p Protocol) ragenBegin(env Environment, episode Episode, turn, left int) []chat.Message {
	var s strings.Builder
	s.WriteString(env.Instructions())
	if actions := env.Actions(); len(actions) > 0 {
		fmt.Fprintf(&s, "\nYour available actions are:\n%s", strings.Join(actions, ", "))
	}
	fmt.Fprintf(&s, "\nYou can make up to %d actions, separated by the action separator \" %s \"\n", env.MaxActions(), Separator)
	s.WriteString(p.ragenBlock(episode, turn, left))
	return []chat.Message{{Role: "system", Content: ragenSystem}, {Role: "user", Content: s.String()}}
}

// ragenBlock is block in RAGEN's words.
func (p Protocol) ragenBlock(episode Episode, turn, left int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "\nTurn %d:\nState:\n%s\nYou have %d actions left. Always output: ", turn, episode.Observation(), left)
	if p.Think {
		s.WriteString("<think> [Your thoughts] </think> ")
	}
	s.WriteString("<answer> [your answer] </answer> with no extra text. Strictly follow this format.")
	if p.LengthHint > 0 {
		fmt.Fprintf(&s, " Max response length: %d words (tokens).", p.LengthHint)
	}
	s.WriteByte('\n')
	return s.String()
}
