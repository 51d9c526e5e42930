package webshop

import (
	"strings"

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
