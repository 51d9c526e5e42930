package judge

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/braces"
	"github.com/reprise-rl/reprise/infra/strict"
)

// The placeholders of a prompt.
const (
	forTask         = "task"         // the instructions of the environment
	forConversation = "conversation" // what the agent saw and wrote
	forCriteria     = "criteria"     // what each criterion asks
	forForm         = "form"         // the form of the reply
	forTurn         = "turn"         // the turn's number, of a judge by turn
	forReply        = "reply"        // what the agent wrote in that turn
)

// MaxPrompt is the most bytes of a prompt's template, and of what a criterion asks.
const MaxPrompt = 16 << 10

// OfEpisode and OfTurn are the prompts of a judge whose spec has none.
const (
	OfEpisode = `You judge how an agent has done its task.

The task:
{task}

What the agent saw and wrote:
{conversation}

Judge the whole of what the agent did by these criteria:
{criteria}

{form}`
	OfTurn = `You judge one turn of an agent at its task.

The task:
{task}

What the agent saw and wrote, up to the turn that you judge:
{conversation}

Judge what the agent wrote in turn {turn}, and no other turn, by these criteria:
{criteria}

{form}`
)

// known are the placeholders of a prompt.
func known(byTurn bool) []string {
	all := []string{forTask, forConversation, forCriteria, forForm}
	if byTurn {
		all = append(all, forTurn, forReply)
	}
	return all
}

// CheckPrompt says what was found in a template that is no prompt, and what is allowed; both are "" for one that is.
func CheckPrompt(text string, byTurn bool) (found, allowed string) {
	if len(text) > MaxPrompt || !utf8.ValidString(text) {
		return fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes of UTF-8", MaxPrompt)
	}
	wrong := ""
	t := braces.Parse(text, known(byTurn), func(p braces.Piece) {
		switch {
		case wrong != "": // the first is named
		case p.Placeholder:
			wrong = "the placeholder " + strict.Quote("{"+p.Text+"}")
		default:
			wrong = "a brace alone: " + strict.Quote(p.Text)
		}
	})
	switch {
	case wrong != "":
		return wrong, "the placeholders {" + strings.Join(known(byTurn), "}, {") + "}; {{ and }} are braces"
	case !t.Has(forForm):
		return "no {form}", "a prompt with {form}: it says how the reply ends"
	case !t.Has(forConversation) && !t.Has(forReply):
		return "no {conversation}", "a prompt with {conversation}, or by turn with {reply}: what is judged"
	}
	return "", ""
}

// filled is a template with its placeholders replaced. What replaces them is never read as a template.
func filled(text string, byTurn bool, values map[string]string) string {
	return braces.Parse(text, known(byTurn), func(braces.Piece) {}).Fill(values)
}
