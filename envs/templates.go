package envs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/braces"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Templates are a user's own wording of prompts: the text of a file with these parts, each below a
// line with its name in brackets.
//
//	[system]   the first message; without the part there is none
//	[first]    the user's message of turn 1, which contains {turn}
//	[reward]   what stands above a later turn's text, unless the environment hides its rewards;
//	           without the part, rewards are not shown
//	[turn]     the text of each turn, which contains {state} and the form of the reply
//
// A part is the lines below its name. Text in braces is a placeholder, see placeholders; {{ and
// }} are braces. What a placeholder stands for is never read as a template.
type Templates struct {
	parts map[string]braces.Template
	// copied are the placeholders of the text itself; see Placeholder.
	copied map[string]bool
}

// maxTemplates is the size in bytes of a file of templates.
const maxTemplates = 16 << 10

const (
	// templateFile and templateText begin the name of a wording that is a file of templates, and
	// one that is their text.
	templateFile, templateText = "file:", "text:"

	systemPart, firstPart, rewardPart, turnPart = "system", "first", "reward", "turn"
)

// placeholders are the placeholders of each part, in the order in which messages list them.
var placeholders = map[string][]string{
	systemPart: nil,
	firstPart:  {"instructions", "actions", "max_actions", "max_actions_per_turn", "separator", "turn"},
	rewardPart: {"reward"},
	turnPart:   {"number", "state", "actions_left", "format", "max_new_tokens"},
}

// templateParts are the parts in the order of a file.
var templateParts = []string{systemPart, firstPart, rewardPart, turnPart}

// ReadWording gives the wording that a spec names: one of Wordings ("" is Ours), or "text:" and the text of
// templates. "file:PATH" becomes "text:", so that nobody needs the file again.
func ReadWording(name string) (string, []strict.Problem) {
	path, ok := strings.CutPrefix(name, templateFile)
	if !ok {
		return name, nil
	}
	content, want, err := ReadFile(path, maxTemplates)
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		err = system.Err
	}
	switch {
	case err != nil:
		return "", []strict.Problem{{Found: fmt.Sprintf("%q (%v)", name, err), Allowed: "a file with the templates of prompts"}}
	case want != "":
		return "", []strict.Problem{{Found: strict.Quote(name), Allowed: want}}
	}
	return templateText + strings.ReplaceAll(string(content), "\r\n", "\n"), nil
}

// WithWording is the protocol in a wording that a spec names. maxNewTokens is the limit of a reply,
// which RAGEN's wording and templates can ask for. The problems are those of a file of templates.
func (p Protocol) WithWording(name string, maxNewTokens int) (Protocol, []strict.Problem) {
	text, problems := ReadWording(name)
	if len(problems) > 0 {
		return p, problems
	}
	p.Wording = text
	if text == Ragen {
		p.LengthHint = maxNewTokens
	}
	if text, ok := strings.CutPrefix(text, templateText); ok {
		t, problems := ParseTemplates(text)
		if len(problems) > 0 {
			return p, problems
		}
		p.Templates, p.LengthHint = &t, maxNewTokens
	}
	return p, nil
}

// ParseTemplates reads the text of templates. The problems, if there are any, are all of them.
func ParseTemplates(text string) (Templates, []strict.Problem) {
	if len(text) > maxTemplates || !utf8.ValidString(text) {
		return Templates{}, []strict.Problem{{Found: fmt.Sprintf("%d bytes", len(text)), Allowed: fmt.Sprintf("templates of at most %d bytes of UTF-8", maxTemplates)}}
	}
	var problems []strict.Problem
	wrong := func(found, allowed, hint string) {
		problems = append(problems, strict.Problem{Found: found, Allowed: allowed, Hint: hint})
	}
	texts := map[string][]string{}
	part := ""
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if name := strings.Trim(line, "[]"); line == "["+name+"]" && slices.Contains(templateParts, name) {
			if texts[name] != nil {
				wrong(fmt.Sprintf("a second [%s] in line %d", name, i+1), "each part once", "")
			}
			part, texts[name] = name, []string{}
			continue
		}
		if part == "" {
			wrong(fmt.Sprintf("text above the first part, in line %d", i+1), "[system], [first], [reward] or [turn] alone in the first line", "")
			part = systemPart
		}
		texts[part] = append(texts[part], line)
	}
	t := Templates{parts: map[string]braces.Template{}}
	for _, part := range templateParts {
		lines, ok := texts[part]
		if !ok {
			if part == firstPart || part == turnPart {
				wrong("no part ["+part+"]", "[first] and [turn]; [system] and [reward] may be left out", "")
			}
			continue
		}
		template, bad := parsePart(strings.Join(lines, "\n"), part)
		problems = append(problems, bad...)
		if len(bad) == 0 {
			problems = append(problems, missing(part, template)...)
		}
		t.parts[part] = template
	}
	t.copied = copiedFrom(t.parts)
	return t, problems
}

// parsePart splits a part's text at its placeholders.
func parsePart(text, part string) (_ braces.Template, problems []strict.Problem) {
	allowed := "no placeholder in [" + part + "]"
	if len(placeholders[part]) > 0 {
		allowed = "a placeholder of [" + part + "]: {" + strings.Join(placeholders[part], "}, {") + "}"
	}
	t := braces.Parse(text, placeholders[part], func(p braces.Piece) {
		found, hint := "{"+p.Text+"}", strict.DidYouMean(p.Text, placeholders[part])
		if !p.Placeholder {
			found, hint = p.Text[:1], ""
		}
		if hint == "" {
			hint = "a brace of the text is written twice"
		}
		problems = append(problems, strict.Problem{Found: fmt.Sprintf("%q in [%s]", found, part), Allowed: allowed, Hint: hint})
	})
	return t, problems
}

// missing is what a part lacks.
func missing(part string, t braces.Template) (problems []strict.Problem) {
	need := func(ok bool, want, why string) {
		if !ok {
			problems = append(problems, strict.Problem{Found: "[" + part + "] without " + want, Allowed: want + ": " + why})
		}
	}
	switch part {
	case firstPart:
		need(t.Has("turn"), "{turn}", "the first turn's text")
	case rewardPart:
		need(t.Has("reward"), "{reward}", "the reward of the turn before")
	case turnPart:
		need(t.Has("state"), "{state}", "what the policy sees")
		need(t.Has("format") || t.Writes("<answer>"), "{format}", "the form of a reply, or its tags in your own words, <answer> among them")
	}
	return problems
}

// has reports whether a part has a placeholder.
func (t *Templates) has(part, placeholder string) bool {
	return t.parts[part].Has(placeholder)
}

// writes reports whether a text stands in a part.
func (t *Templates) writes(text string) bool {
	for _, part := range t.parts {
		if part.Writes(text) {
			return true
		}
	}
	return false
}

// write writes a part with its placeholders filled in.
func (t *Templates) write(part string, values map[string]string) string {
	return t.parts[part].Fill(values)
}

// templatesBegin is begin in a user's words.
func (p Protocol) templatesBegin(env Environment, episode Episode, turn, left int) []chat.Message {
	var out []chat.Message
	if _, ok := p.Templates.parts[systemPart]; ok {
		out = append(out, chat.Message{Role: "system", Content: p.Templates.write(systemPart, nil)})
	}
	return append(out, chat.Message{Role: "user", Content: p.Templates.write(firstPart, map[string]string{
		"instructions": env.Instructions(), "actions": strings.Join(env.Actions(), ", "), "max_actions": strconv.Itoa(env.MaxActions()),
		"max_actions_per_turn": strconv.Itoa(env.MaxActionsPerTurn()), "separator": Separator, "turn": p.templatesBlock(episode, turn, left),
	})})
}

// templatesNext is Next in a user's words.
func (p Protocol) templatesNext(episode Episode, next NextTurn, hidden bool) string {
	block := p.templatesBlock(episode, next.Number, next.ActionsLeft)
	if _, ok := p.Templates.parts[rewardPart]; !ok || hidden {
		return block
	}
	return p.Templates.write(rewardPart, map[string]string{"reward": FormatReward(next.Reward)}) + "\n" + block
}

// templatesBlock is block in a user's words.
func (p Protocol) templatesBlock(episode Episode, turn, left int) string {
	return p.Templates.write(turnPart, map[string]string{
		"number": strconv.Itoa(turn), "state": episode.Observation(), "actions_left": strconv.Itoa(left),
		"format": p.format(), "max_new_tokens": strconv.Itoa(p.LengthHint),
	})
}
