// Package braces reads templates: texts with the names of placeholders in braces. {{ and }} are braces of the text.
package braces

import (
	"slices"
	"strings"
)

// Piece is text, or the name of a placeholder.
type Piece struct {
	Text        string
	Placeholder bool
}

// Template is a text in pieces, none of them empty.
type Template []Piece

// Parse splits a text at its placeholders. It tells wrong of each placeholder that is not one of known, and of each brace that
// stands alone, as the text from there on. Both are left out.
func Parse(text string, known []string, wrong func(Piece)) (out Template) {
	var literal strings.Builder
	end := func() {
		if literal.Len() > 0 {
			out = append(out, Piece{Text: literal.String()})
			literal.Reset()
		}
	}
	for text != "" {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			literal.WriteString(text)
			break
		}
		literal.WriteString(text[:at])
		text = text[at:]
		if strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "}}") {
			literal.WriteByte(text[0])
			text = text[2:]
			continue
		}
		name, rest, closed := strings.Cut(text[1:], "}")
		switch {
		case text[0] == '}' || !closed || strings.ContainsAny(name, "{\n"):
			wrong(Piece{Text: text})
			rest = text[1:]
		case !slices.Contains(known, name):
			wrong(Piece{name, true})
		default:
			end()
			out = append(out, Piece{name, true})
		}
		text = rest
	}
	end()
	return out
}

// Has reports whether a placeholder stands in the template.
func (t Template) Has(placeholder string) bool { return slices.Contains(t, Piece{placeholder, true}) }

// Writes reports whether a text stands in the template itself.
func (t Template) Writes(text string) bool {
	return slices.ContainsFunc(t, func(p Piece) bool { return !p.Placeholder && strings.Contains(p.Text, text) })
}

// Fill is the text with its placeholders replaced. What replaces them is never read as a template.
func (t Template) Fill(values map[string]string) string {
	var out strings.Builder
	for _, p := range t {
		if p.Placeholder {
			p.Text = values[p.Text]
		}
		out.WriteString(p.Text)
	}
	return out.String()
}
