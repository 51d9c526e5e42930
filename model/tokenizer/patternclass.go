package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are the escapes of single characters.
var escapes = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

// escape reads what follows a backslash: a set, or else a character.
func (t *translator) escape() (set, rune, error) {
	r := t.next()
	if r < 0 {
		return nil, 0, errors.New(`a \ at the end is not supported`)
	}
	t.rest = t.rest[1:]
	sets := unicodeSets()
	switch r {
	case 's':
		return sets["space"], 0, nil
	case 'S':
		return complement(sets["space"]), 0, nil
	case 'd':
		return sets["Nd"], 0, nil
	case 'D':
		return complement(sets["Nd"]), 0, nil
	case 'w':
		return sets["word"], 0, nil
	case 'W':
		return complement(sets["word"]), 0, nil
	case 'h':
		return set{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 0, nil
	case 'p', 'P':
		s, err := t.property()
		if err == nil && r == 'P' {
			s = complement(s)
		}
		return s, 0, err
	case 'u':
		code, err := t.code(4)
		return nil, code, err
	case 'x':
		if t.skip("{") {
			code, err := t.code(slices.Index(t.rest, '}'))
			t.skip("}")
			return nil, code, err
		}
		// In UTF-8 more than 7f is a byte of a character, not a character.
		if len(t.rest) > 1 && t.rest[0] > '7' {
			return nil, 0, fmt.Errorf(`\x%s is not supported: write \u00%[1]s`, string(t.rest[:2]))
		}
		code, err := t.code(2)
		return nil, code, err
	}
	if plain, ok := escapes[r]; ok {
		return nil, plain, nil
	}
	if r <= unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return nil, r, nil
	}
	return nil, 0, fmt.Errorf(`\%c is not supported`, r)
}

// code reads a character's number, of n hexadecimal digits.
func (t *translator) code(n int) (rune, error) {
	var value uint64
	err := errors.New("too few digits")
	if n > 0 && n <= len(t.rest) {
		value, err = strconv.ParseUint(string(t.rest[:n]), 16, 21)
		t.rest = t.rest[n:]
	}
	if r := rune(value); err == nil && utf8.ValidRune(r) {
		return r, nil
	}
	return 0, errors.New(`a \x or \u without the number of a character is not supported`)
}

// property reads the {…} of a \p.
func (t *translator) property() (set, error) {
	end := slices.Index(t.rest, '}')
	if !t.skip("{") || end < 0 {
		return nil, errors.New(`a \p without {…} is not supported`)
	}
	name := string(t.rest[:end-1])
	t.rest = t.rest[end:]
	bare, not := strings.CutPrefix(name, "^")
	s, ok := unicodeSet(bare)
	if !ok {
		return nil, fmt.Errorf(`\p{%s} is not supported`, name)
	}
	if not {
		s = complement(s)
	}
	return s, nil
}

// class reads a class after its [, with the ] at its end.
func (t *translator) class() (set, error) {
	if t.depth++; t.depth > maxGroups {
		return nil, fmt.Errorf("more than %d classes in classes are not supported", maxGroups)
	}
	not := t.skip("^")
	if t.next() == ']' {
		return nil, errors.New("a class that begins with ] is not supported")
	}
	var all, part set
	intersects := false
	for {
		switch {
		case t.next() < 0:
			return nil, errors.New("a [ is not closed")
		case t.skip("]"):
			if intersects {
				part = intersection(all, part)
			}
			if not {
				if t.fold {
					return nil, errors.New("a class [^…] in a case-insensitive part is not supported")
				}
				part = complement(part)
			}
			t.depth--
			return part, nil
		case t.skip("&&"):
			if intersects {
				part = intersection(all, part)
			}
			all, part, intersects = part, nil, true
		default:
			s, err := t.item()
			if err != nil {
				return nil, err
			}
			part = union(part, s)
		}
	}
}

// item reads a part of a class: a character, a range, a set or a class.
func (t *translator) item() (set, error) {
	if t.skip("[") {
		if t.next() == ':' {
			return nil, errors.New("a class [:…:] is not supported")
		}
		return t.class()
	}
	single := func() (set, rune, error) {
		r := t.next()
		t.rest = t.rest[1:]
		if r == '\\' {
			return t.escape()
		}
		return nil, r, nil
	}
	s, first, err := single()
	if err != nil {
		return nil, err
	}
	if t.next() != '-' {
		if s != nil {
			return s, nil
		}
		return set{{first, first}}, nil
	}
	if len(t.rest) > 1 && t.rest[1] == ']' { // a - at the end is itself
		if s == nil {
			s = set{{first, first}}
		}
		return s, nil
	}
	t.rest = t.rest[1:]
	if s != nil || t.next() < 0 || t.next() == '[' {
		return nil, errors.New("a - in a class after or before a set is not supported")
	}
	s, last, err := single()
	if err != nil {
		return nil, err
	}
	if s != nil || last < first {
		return nil, errors.New("a range in a class is not supported if it is empty or ends with a set")
	}
	return intersection(set{{first, last}}, complement(nil)), nil
}

// writeSet writes a set as a class of regexp2.
func (t *translator) writeSet(s set) error {
	if t.fold {
		var err error
		if s, err = folded(s); err != nil {
			return err
		}
	}
	if len(s) == 0 {
		t.out.WriteString("(?!)")
		return nil
	}
	quote := func(r rune) {
		if r > ' ' && r < 0x7f && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			t.out.WriteByte('\\')
		}
		t.out.WriteRune(r)
	}
	if len(s) == 1 && s[0].first == s[0].last && s[0].first > ' ' {
		quote(s[0].first)
		return nil
	}
	t.out.WriteByte('[')
	for _, p := range s {
		quote(p.first)
		if p.last > p.first {
			if p.last > p.first+1 {
				t.out.WriteByte('-')
			}
			quote(p.last)
		}
	}
	t.out.WriteByte(']')
	return nil
}

// folded adds the letters of the other case to a set of ASCII. Beyond it Oniguruma has characters that
// are several in the other case.
func folded(s set) (set, error) {
	if n := len(s); n > 0 && s[n-1].last > unicode.MaxASCII {
		return nil, errors.New("a class beyond ASCII in a case-insensitive part is not supported")
	}
	out := s
	for _, p := range s {
		for r := p.first; r <= p.last; r++ {
			for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
				out = union(out, set{{other, other}})
			}
		}
	}
	return out, nil
}
