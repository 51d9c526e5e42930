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

// Wordings are the names of the wordings that are not files, in the alphabetical order of their names.
func Wordings() []string { return []string{Examples, Hiper, Ragen, Ours, Vagen} }

// Asks reports whether prompts ask for a tag in replies, by its name: "answer", "think", "switch",
// "subgoal", "observation" or "prediction". Templates ask for the tags that they write themselves, and
// with {format} for those of Ours.
func (p Protocol) Asks(tag string) bool {
	written := func(form string) bool { return strings.Contains(form, "<"+tag+">") }
	switch {
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
