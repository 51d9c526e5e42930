package strict

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing wrong with a document.
type Problem struct {
	// Path is the JSON path, as in "update.learning_rate" or
	// "rollout.prompt_tokens[1]". A problem of the whole document has a name in
	// parentheses, "(spec)", or an empty path.
	Path string `json:"path"`
	// Found is the value found, as it is written in JSON, or a few words.
	Found string `json:"found"`
	// Allowed says in words what is allowed there.
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
// what is missing and what concerns several fields comes last. As an error it is
// the text a person reads.
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

// Err is the problems as an error, nil if there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

const (
	foundRunes = 60
	pathRunes  = 200
)

// Shorten cuts a text found to what a line can hold.
func Shorten(s string) string { return cut(s, foundRunes) }

// Quote shows a text found, shortened and without control characters.
func Quote(s string) string { return strconv.Quote(Shorten(s)) }

func cut(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes]) + "…"
}

// Join appends a key to a path; a key that would make the path ambiguous is
// quoted in brackets.
func Join(path, key string) string {
	plain := key != "" && len(key) <= longestGuess
	for _, r := range key {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			plain = false
		}
	}
	switch {
	case !plain:
		return path + "[" + Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// Index appends an array's index to a path.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Within is a path below another; a rest that is the whole document is the other
// itself.
func Within(path, rest string) string {
	switch {
	case rest == "" || rest[0] == '(':
		return path
	case rest[0] == '[':
		return path + rest
	}
	return path + "." + rest
}
