package webshop

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// lowered is a text in lower case by Python's rules, which WebShop's names follow. Go's differ in two letters: İ becomes
// two characters, and Σ at the end of a word another one than inside.
func lowered(text string) string {
	if strings.ContainsAny(text, "İΣ") {
		return cases.Lower(language.Und).String(text)
	}
	return strings.ToLower(text)
}

// trimmed is a text without the white space around it, which for Python has four control characters more than for Go.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= '\x1c' && r <= '\x1f' })
}
