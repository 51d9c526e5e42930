package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// caseSteps is what a change of case costs, whatever the length of the text.
const caseSteps = 8

// upper is str.upper, with Unicode's full mappings.
func (r *run) upper(s string) string {
	r.step(len(s) + caseSteps)
	r.alloc(3 * len(s))
	return cases.Upper(language.Und).String(s)
}

// lower is str.lower.
func (r *run) lower(s string) string {
	r.step(len(s) + caseSteps)
	r.alloc(3 * len(s))
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// titleRune is the character with which a word begins.
func titleRune(c rune) string { return cases.Title(language.Und, cases.NoLower).String(string(c)) }

// capitalize is str.capitalize.
func (r *run) capitalize(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return titleRune(first) + r.lower(s)[len(r.lower(s[:n])):]
}

// title is str.title: a letter after none begins a word.
func (r *run) title(s string) string {
	r.step(caseSteps * len(s))
	r.alloc(3 * len(s))
	var b strings.Builder
	after := false
	for _, c := range s {
		switch {
		case c == 'Σ':
			r.fail("capital sigma is not supported")
		case after:
			b.WriteString(cases.Lower(language.Und).String(string(c)))
		case isCased(c):
			b.WriteString(titleRune(c))
		default:
			b.WriteRune(c)
		}
		after = isCased(c)
	}
	return b.String()
}

// filterTitle is the filter title, which is not str.title.
func (r *run) filterTitle(s string) string {
	r.alloc(3 * len(s))
	var b strings.Builder
	for s != "" {
		i := strings.IndexFunc(s, isWordBreak)
		if i == 0 {
			if i = strings.IndexFunc(s, func(c rune) bool { return !isWordBreak(c) }); i < 0 {
				i = len(s)
			}
			b.WriteString(s[:i])
			s = s[i:]
			continue
		}
		if i < 0 {
			i = len(s)
		}
		_, n := utf8.DecodeRuneInString(s)
		b.WriteString(r.upper(s[:n]))
		b.WriteString(r.lower(s[n:i]))
		s = s[i:]
	}
	return b.String()
}

func isWordBreak(c rune) bool { return strings.ContainsRune("-({[<", c) || isSpace(c) }

func isUpper(c rune) bool { return unicode.IsUpper(c) || unicode.Is(unicode.Other_Uppercase, c) }
func isLower(c rune) bool { return unicode.IsLower(c) || unicode.Is(unicode.Other_Lowercase, c) }
func isCased(c rune) bool { return isUpper(c) || isLower(c) || unicode.IsTitle(c) }

// allOneCase is str.isupper or str.islower: some letters, and none of another case.
func allOneCase(s string, is func(rune) bool) bool {
	found := false
	for _, c := range s {
		if isCased(c) && !is(c) {
			return false
		}
		found = found || is(c)
	}
	return found
}

// all is str.isalpha and its like: no character is another, and there is one.
func all(s string, is func(rune) bool) bool {
	for _, c := range s {
		if !is(c) {
			return false
		}
	}
	return s != ""
}
