package envs

import (
	"strings"
	"unicode"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/infra/braces"
)

// placeholderTexts are what prompts write in the place of an action or a thought, reduced by letters.
// The last are those of HiPER's and RAGEN's prompts.
var placeholderTexts = map[string]bool{
	"youraction": true, "youractions": true, "youranswer": true, "yourthought": true, "yourthoughts": true, "yoursubgoal": true,
	"keeporswitch": true, "thesubgoalyouwillfollownext": true, "exactlyoneaction": true, "exactlyoneadmissibleaction": true,
}

// letters is a text in lower case with its letters and digits alone. Dots stay if nothing else does:
// VAGEN's placeholder is "...".
func letters(text string) string {
	reduced := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
	if dots := strings.TrimSpace(text); reduced == "" && dots != "" && strings.Trim(dots, ".…") == "" {
		return "..."
	}
	return reduced
}

// Placeholder reports whether an action is what a prompt writes in the place of one: "your action",
// "[your answer]", "...", or what the protocol's templates write so. It is never legal, whatever an
// environment takes for an action: an environment of free texts would count the copy as an answer.
func (p Protocol) Placeholder(action string) bool {
	reduced := letters(action)
	return reduced == "..." || placeholderTexts[reduced] || p.Templates != nil && p.Templates.copied[reduced]
}

// legal is an episode's Legal for actions that were written in a reply.
func (p Protocol) legal(episode Episode, action string) (canonical string, ok bool) {
	if p.Placeholder(action) || calls.IsAction(action) { // a call is written as the protocol's form has it
		return "", false
	}
	return episode.Legal(action)
}

// WithoutPlaceholders are the actions of a reply that are no placeholders: those that an environment
// elsewhere is asked about.
func (p Protocol) WithoutPlaceholders(actions []string) []string {
	var out []string
	for _, action := range actions {
		if !p.Placeholder(action) {
			out = append(out, action)
		}
	}
	return out
}

// copiedFrom are the placeholders of templates, reduced by letters: what their [first] and [turn] write
// between the tags of an answer, where it begins as none of an environment's actions does, with "your"
// or in brackets.
func copiedFrom(parts map[string]braces.Template) map[string]bool {
	out := map[string]bool{}
	for _, part := range parts {
		for _, p := range part {
			if p.Placeholder {
				continue
			}
			for _, m := range answerPattern.FindAllStringSubmatch(p.Text, -1) {
				said := strings.TrimSpace(m[1])
				own := strings.HasPrefix(strings.ToLower(said), "your ") || strings.HasPrefix(said, "[") && strings.HasSuffix(said, "]")
				if own && letters(said) != "" {
					out[letters(said)] = true
				}
			}
		}
	}
	return out
}
