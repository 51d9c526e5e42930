package judge

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

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

// piece is text, or the name of a placeholder.
type piece struct {
	text        string
	placeholder bool
}

// pieces splits a template at its placeholders: a name of lower-case letters in braces. {{ and }} are braces. wrong says
// what is not one of known, or stands alone.
func pieces(text string, known []string) (out []piece, wrong string) {
	var literal strings.Builder
	for len(text) > 0 {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			break
		}
		literal.WriteString(text[:i])
		rest := text[i:]
		if len(rest) > 1 && rest[0] == rest[1] {
			literal.WriteByte(rest[0])
			text = rest[2:]
			continue
		}
		end := strings.IndexAny(rest[1:], "{}") + 1
		if rest[0] == '}' || end == 0 || rest[end] != '}' {
			return nil, "a brace alone: " + strict.Quote(rest)
		}
		if name := rest[1:end]; slices.Contains(known, name) {
			out = append(out, piece{text: literal.String()}, piece{text: name, placeholder: true})
		} else {
			return nil, "the placeholder " + strict.Quote("{"+name+"}")
		}
		literal.Reset()
		text = rest[end+1:]
	}
	literal.WriteString(text)
	return append(out, piece{text: literal.String()}), ""
}

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
	all, wrong := pieces(text, known(byTurn))
	has := func(name string) bool { return slices.Contains(all, piece{name, true}) }
	switch {
	case wrong != "":
		return wrong, "the placeholders {" + strings.Join(known(byTurn), "}, {") + "}; {{ and }} are braces"
	case !has(forForm):
		return "no {form}", "a prompt with {form}: it says how the reply ends"
	case !has(forConversation) && !has(forReply):
		return "no {conversation}", "a prompt with {conversation}, or by turn with {reply}: what is judged"
	}
	return "", ""
}

// filled is a template with its placeholders replaced. What replaces them is never read as a template.
func filled(text string, byTurn bool, values map[string]string) string {
	all, _ := pieces(text, known(byTurn))
	var out strings.Builder
	for _, p := range all {
		if p.placeholder {
			p.text = values[p.text]
		}
		out.WriteString(p.text)
	}
	return out.String()
}
