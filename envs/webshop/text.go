package webshop

import (
	"fmt"
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

// visible is a text with characters that cannot be printed, such as a no-break space, written as Python's repr does:
// "a\u00a0b" is `a\xa0b`. Quotes and backslashes stay as they are, because only words are looked at.
func visible(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		at := strings.IndexRune("\t\n\r", r)
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte("tnr"[at])
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
