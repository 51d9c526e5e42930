package spec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// Problem is one thing wrong with a spec or with a change of a knob.
type Problem struct {
	// Path is the JSON path, as in "update.learning_rate" or
	// "rollout.prompt_tokens[1]"; "(spec)" is the whole document.
	Path string `json:"path"`
	// Found is the value found, as it is written in JSON, or a few words.
	Found string `json:"found"`
	// Allowed says in words what may stand there.
	Allowed string `json:"allowed"`
	// Hint is what the person most likely meant, or what to do; may be empty.
	Hint string `json:"hint,omitempty"`
}

// String is the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: found %s; allowed: %s", cut(p.Path, pathRunes), p.Found, p.Allowed)
	if p.Hint != "" {
		fmt.Fprintf(&b, " (%s)", p.Hint)
	}
	return b.String()
}

// Problems is everything wrong with a document, in the order of the document;
// what is missing and what concerns several fields comes last. As an error it
// is the text a person reads, from `reprise validate` and from the Resolve
// activity alike.
type Problems []Problem

// shownProblems bounds the text of Problems: it travels as a workflow's
// failure, where a few kilobytes are fine and a megabyte is not.
const shownProblems = 32

// Error lists the problems, one a line, after a line that counts them.
func (ps Problems) Error() string {
	var b strings.Builder
	if len(ps) == 1 {
		b.WriteString("1 problem:")
	} else {
		fmt.Fprintf(&b, "%d problems:", len(ps))
	}
	for i, p := range ps {
		if i == shownProblems {
			fmt.Fprintf(&b, "\n  … and %d more", len(ps)-i)
			break
		}
		b.WriteString("\n  ")
		b.WriteString(p.String())
	}
	return b.String()
}

// err is the problems as an error, nil where there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

const (
	wholeSpec = "(spec)"
	// longestGuess bounds the words nearest compares: the distance costs the
	// product of both lengths, and a longer word is no misspelling.
	longestGuess = 64
	foundRunes   = 60
	pathRunes    = 200
)

// nearest is the candidate that word most likely means, and whether there is
// one: equal but for case, or at most a third of its letters away (at least
// two); else the shortest that has the word's letters in their order, as
// "bfloat16" has those of "bf16". Of equally good ones the first wins.
func nearest(word string, candidates []string) (string, bool) {
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

// inOrder tells whether text has the word's letters in their order.
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

func didYouMean(word string, candidates []string) string {
	if c, ok := nearest(word, candidates); ok {
		return fmt.Sprintf("did you mean %q?", c)
	}
	return ""
}

// shorten cuts a value found to what a line can hold.
func shorten(s string) string { return cut(s, foundRunes) }

func cut(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes]) + "…"
}

// quote shows a text found, shortened and without control characters.
func quote(s string) string { return strconv.Quote(shorten(s)) }

// join appends a key to a path; a key that would make the path ambiguous is
// quoted in brackets.
func join(path, key string) string {
	plain := key != "" && len(key) <= longestGuess
	for _, r := range key {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			plain = false
		}
	}
	switch {
	case !plain:
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func orWhole(path string) string {
	if path == "" {
		return wholeSpec
	}
	return path
}
