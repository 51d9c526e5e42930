package strict

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// longestGuess bounds the words Nearest compares: the distance costs the product of both
// lengths, and a longer word is not a misspelling.
const longestGuess = 64

// Nearest is the candidate that word most likely means, and whether one was found. It
// equals the word except for case, or is at most a third of its letters away (at least
// two). Otherwise it is the shortest one that has the word's letters in order, as
// "bfloat16" has the letters of "bf16". Of equally good ones the first wins.
func Nearest(word string, candidates []string) (string, bool) {
	if word == "" || len(word) > longestGuess {
		return "", false
	}
	best, bestDistance := "", max(2, utf8.RuneCountInString(word)/3)+1
	lower := strings.ToLower(word)
	for _, c := range candidates {
		// A candidate of two letters is within two edits of every short word.
		d := levenshtein.Distance(lower, strings.ToLower(c), nil)
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	if best != "" || len(word) < 2 {
		return best, best != ""
	}
	for _, c := range candidates {
		if inOrder(lower, strings.ToLower(c)) && (best == "" || len(c) < len(best)) {
			best = c
		}
	}
	return best, best != ""
}

// Near are the n candidates that are the nearest to word, the nearest first. Of equally near ones the first is first.
func Near(word string, candidates []string, n int) []string {
	if len(word) > longestGuess {
		word = word[:longestGuess]
	}
	word = strings.ToLower(word)
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return levenshtein.Distance(word, strings.ToLower(a), nil) - levenshtein.Distance(word, strings.ToLower(b), nil)
	})
	return sorted[:min(n, len(sorted))]
}

// inOrder reports whether text has the word's letters in their order.
func inOrder(word, text string) bool {
	for _, r := range word {
		i := strings.IndexRune(text, r)
		if i < 0 {
			return false
		}
		text = text[i+utf8.RuneLen(r):]
	}
	return true
}

// DidYouMean is the hint for a word that is none of the candidates; empty if
// none of them is near.
func DidYouMean(word string, candidates []string) string {
	if c, ok := Nearest(word, candidates); ok {
		return fmt.Sprintf("did you mean %q?", c)
	}
	return ""
}
