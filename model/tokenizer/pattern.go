package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dlclark/regexp2/v2"
)

// gpt2Pattern is the pattern of a ByteLevel pre-tokenizer with use_regex.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// Bounds of a pattern, which comes from outside.
const (
	maxPattern = 1 << 15 // bytes
	maxGroups  = 32      // groups within groups
	maxRepeats = 1000    // repetitions of an interval
	maxLoops   = 3       // repetitions without bound in a row: the time grows with a power of them
)

// compilePattern translates a regular expression of a tokenizer.json, which is Oniguruma's in Hugging
// Face's tokenizers, for regexp2. Classes are written out as sets of characters, so that they do not
// depend on the library's version of Unicode. It returns an error that names a construct which it
// cannot translate exactly, because a slightly different tokenizer would train on wrong ids. empty says
// that the pattern may match the empty text.
func compilePattern(source string) (re *regexp2.Regexp, empty bool, err error) {
	if len(source) > maxPattern {
		return nil, false, fmt.Errorf("a pattern has %d bytes, at most %d are read", len(source), maxPattern)
	}
	t := translator{rest: []rune(source)}
	empty, err = t.alternatives()
	if err == nil && len(t.rest) > 0 {
		err = errors.New("a ) closes nothing")
	}
	if err == nil {
		re, err = regexp2.Compile(t.out.String(), regexp2.OptionMaxBacktrackingStackSize(-1))
	}
	if err != nil {
		return nil, false, fmt.Errorf("pattern %q: %w", source, err)
	}
	return re, empty, nil
}

// translator is a recursive descent through a pattern.
type translator struct {
	rest  []rune
	out   strings.Builder
	fold  bool
	depth int
	// varies says that what the atom matches may be of several lengths, or be matched in several ways.
	varies bool
	// previous is the letter before, in a case-insensitive part: some pairs of letters are one character.
	previous rune
	// loops counts the repetitions without bound that may have to be tried one within the other, in the
	// alternative so far.
	loops int
}

func (t *translator) next() rune {
	if len(t.rest) == 0 {
		return -1
	}
	return t.rest[0]
}

func (t *translator) skip(prefix string) bool {
	p := []rune(prefix)
	if len(t.rest) < len(p) || !slices.Equal(t.rest[:len(p)], p) {
		return false
	}
	t.rest = t.rest[len(p):]
	return true
}

// alternatives translates what stands in a group. empty says that it may match the empty text.
func (t *translator) alternatives() (empty bool, err error) {
	before, most := t.loops, 0
	defer func() { t.loops = most }()
	for {
		t.loops = before
		all := true
		for t.next() != -1 && t.next() != '|' && t.next() != ')' {
			one, err := t.term()
			if err != nil {
				return false, err
			}
			all = all && one
		}
		empty, most = empty || all, max(most, t.loops)
		if !t.skip("|") {
			return empty, nil
		}
		t.previous, t.varies = 0, true
		t.out.WriteByte('|')
	}
}

// kind is what a quantifier may do with the atom before it.
type kind int

const (
	character kind = iota
	group
	assertion
)

// term translates an atom with its quantifier.
func (t *translator) term() (empty bool, err error) {
	// What makes a quantifier possessive is written before the atom.
	written := t.out.String()
	varies := t.varies
	t.varies = false
	t.out.Reset()
	atom, empty, err := t.atom()
	if err != nil {
		return false, err
	}
	body := t.out.String()
	t.out.Reset()
	t.out.WriteString(written)
	inner := t.varies
	t.varies = varies || inner
	quantifier, possessive, least, bound, err := t.quantifier()
	switch {
	case err != nil:
		return false, err
	case quantifier == "":
		t.out.WriteString(body)
		return empty, nil
	case atom == assertion:
		return false, errors.New("a repeated assertion is not supported")
	case bound != 1 && inner:
		// Backtracking may take exponential time.
		return false, fmt.Errorf("a repeated group (%s) that has a quantifier or a choice inside is not supported", quantifier)
	}
	t.previous = 0
	t.varies = t.varies || least != bound || atom == group && bound > 1
	if bound < 0 && !possessive {
		if t.loops++; t.loops > maxLoops {
			return false, fmt.Errorf("more than %d repetitions without bound in a row are not supported", maxLoops)
		}
	}
	if possessive {
		body, quantifier = "(?>"+body, quantifier+")"
	}
	t.out.WriteString(body + quantifier)
	return empty || least == 0, nil
}

// quantifier reads a quantifier, if one is next. least and bound are its smallest and its largest
// number; without bound, that is -1.
func (t *translator) quantifier() (text string, possessive bool, least, bound int, err error) {
	switch r := t.next(); r {
	case '*', '+', '?':
		t.rest = t.rest[1:]
		text, bound = string(r), -1
		if r == '?' {
			bound = 1
		}
		if r == '+' {
			least = 1
		}
		switch {
		case t.skip("?"):
			text += "?"
		case t.skip("+"):
			possessive = true
		}
	case '{':
		end := slices.Index(t.rest, '}')
		if end < 0 {
			return "", false, 0, 0, errors.New("a { that is no interval is not supported")
		}
		inner := string(t.rest[1:end])
		t.rest = t.rest[end+1:]
		low, high, comma := strings.Cut(inner, ",")
		fewest, okLow := number(low)
		most, okHigh := number(high)
		switch {
		case !comma:
			most, okHigh = fewest, okLow
		case low == "" && okHigh:
			fewest, okLow = 0, true
		case high == "" && okLow:
			most, okHigh = -1, true
		}
		if !okLow || !okHigh || most >= 0 && fewest > most || max(fewest, most) > maxRepeats {
			return "", false, 0, 0, fmt.Errorf("the interval {%s} is not supported", inner)
		}
		least, bound = fewest, most
		if text = fmt.Sprintf("{%d,%d}", least, most); most < 0 {
			text = fmt.Sprintf("{%d,}", least)
		}
	default:
		return "", false, 0, 0, nil
	}
	if r := t.next(); r == '*' || r == '+' || r == '?' || r == '{' {
		return "", false, 0, 0, fmt.Errorf("a quantifier after a quantifier (%s%c) is not supported", text, r)
	}
	return text, possessive, least, bound, nil
}

// number reads a small number without sign.
func number(s string) (n int, ok bool) {
	if s == "" || len(s) > 5 {
		return 0, false
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, false
		}
		n = 10*n + int(r-'0')
	}
	return n, true
}

// atom translates a character, a class, a group or an assertion.
func (t *translator) atom() (k kind, empty bool, err error) {
	r := t.next()
	t.rest = t.rest[1:]
	switch r {
	case '(':
		return t.group()
	case '[':
		s, err := t.class()
		if err == nil {
			err = t.writeSet(s)
		}
		return character, false, err
	case '.':
		return character, false, t.writeSet(complement(set{{'\n', '\n'}}))
	case '\\':
		s, literal, err := t.escape()
		switch {
		case err != nil:
			return character, false, err
		case s != nil:
			return character, false, t.writeSet(s)
		}
		return character, false, t.literal(literal)
	case '^', '$':
		return assertion, true, fmt.Errorf("%c is not supported", r)
	case '*', '+', '?', '{':
		return character, false, fmt.Errorf("a quantifier (%c) without anything before it is not supported", r)
	}
	return character, false, t.literal(r)
}

func (t *translator) group() (k kind, empty bool, err error) {
	fold := t.fold
	k = group
	switch {
	case t.skip("?:"):
		t.out.WriteString("(?:")
	case t.skip("?i:"):
		t.fold = true
		t.out.WriteString("(?:")
	case t.skip("?-i:"):
		t.fold = false
		t.out.WriteString("(?:")
	case t.skip("?>"):
		t.out.WriteString("(?>")
	case t.skip("?="):
		k = assertion
		t.out.WriteString("(?=")
	case t.skip("?!"):
		k = assertion
		t.out.WriteString("(?!")
	case t.next() == '?':
		return k, false, fmt.Errorf("the group (%s is not supported", string(t.rest[:min(3, len(t.rest))]))
	default:
		t.out.WriteString("(?:") // nothing refers to what it captures
	}
	if t.depth++; t.depth > maxGroups {
		return k, false, fmt.Errorf("more than %d groups in groups are not supported", maxGroups)
	}
	if empty, err = t.alternatives(); err != nil {
		return k, false, err
	}
	if !t.skip(")") {
		return k, false, errors.New("a ( is not closed")
	}
	t.depth--
	t.fold = fold
	t.out.WriteByte(')')
	return k, empty || k == assertion, nil
}

// literal writes one character.
func (t *translator) literal(r rune) error {
	if !t.fold {
		t.previous = 0
		return t.writeSet(set{{r, r}})
	}
	if r > unicode.MaxASCII {
		return fmt.Errorf("%q in a case-insensitive part is not supported", r)
	}
	// Oniguruma takes ß for ss, ﬁ for fi and so on.
	now := unicode.ToLower(r)
	switch pair := string([]rune{t.previous, now}); pair {
	case "ss", "st", "ff", "fi", "fl":
		return fmt.Errorf("%q in a case-insensitive part is not supported", pair)
	}
	t.previous = now
	return t.writeSet(set{{r, r}})
}
