package tokenizer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// gpt2Pattern is the pattern of a ByteLevel pre-tokenizer with use_regex.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// space is Unicode's White_Space, the meaning of \s in Hugging Face's regular expressions.
// Go's \s is ASCII only.
const space = `\t-\r\x{85}\p{Z}`

// tailSource ends the patterns of the GPT-2 family: the last rune of white space before a
// word belongs to the word.
const tailSource = `\s+(?!\S)|\s+`

// pattern splits text into words as the Split pre-tokenizer does (behavior Isolated).
type pattern struct {
	re *regexp.Regexp
	// tail is the index of the group that replaces tailSource, or 0. Go has no
	// lookahead, so split removes the last rune from the match afterwards.
	tail int
}

// compilePattern translates a regular expression of a tokenizer.json. It returns an error
// for expressions that it cannot translate exactly, because a slightly different tokenizer
// would train on wrong ids.
func compilePattern(source string) (*pattern, error) {
	body, hasTail := strings.CutSuffix(source, tailSource)
	translated, err := translate(body)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", source, err)
	}
	if hasTail {
		translated += `(?P<tail>[` + space + `]+)`
	}
	re, err := regexp.Compile(translated)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", source, err)
	}
	if re.MatchString("") {
		return nil, fmt.Errorf("pattern %q: matches the empty text", source)
	}
	return &pattern{re: re, tail: max(0, re.SubexpIndex("tail"))}, nil
}

// translate rewrites \s, \S and \d to their Unicode meaning. It returns an error for
// assertions about the text around a match, because split searches slices of the text.
func translate(source string) (string, error) {
	var out strings.Builder
	inClass := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\' && i+1 < len(source):
			i++
			switch e := source[i]; e {
			case 's', 'd':
				class := space
				if e == 'd' {
					class = `\p{Nd}`
				}
				if inClass {
					out.WriteString(class)
				} else {
					out.WriteString("[" + class + "]")
				}
			case 'S':
				if inClass {
					return "", fmt.Errorf(`\S inside a class is not supported`)
				}
				out.WriteString("[^" + space + "]")
			case 'w', 'W', 'D', 'b', 'B', 'A', 'z', 'Z', 'G', 'h', 'H', 'R', 'X', 'K':
				return "", fmt.Errorf(`\%c is not supported`, e)
			default:
				out.WriteByte('\\')
				out.WriteByte(e)
			}
		case inClass:
			if c == '[' || c == '&' && strings.HasPrefix(source[i:], "&&") {
				return "", fmt.Errorf("class operations are not supported")
			}
			inClass = c != ']'
			out.WriteByte(c)
		case c == '[':
			inClass = true
			out.WriteByte(c)
		case c == '^' || c == '$':
			return "", fmt.Errorf("%c is not supported", c)
		case c == '(' && (strings.HasPrefix(source[i:], "(?=") || strings.HasPrefix(source[i:], "(?!") || strings.HasPrefix(source[i:], "(?<")):
			return "", fmt.Errorf("lookaround is supported only in a final %s", tailSource)
		default:
			out.WriteByte(c)
		}
		if inClass && source[i] == '[' && strings.HasPrefix(source[i+1:], "^") {
			i++
			out.WriteByte('^')
		}
	}
	return out.String(), nil
}

// split calls yield with each word of text in order; together they are the text.
func (p *pattern) split(text string, yield func(string)) {
	for len(text) > 0 {
		m := p.re.FindStringSubmatchIndex(text)
		if m == nil {
			yield(text)
			return
		}
		start, end := m[0], m[1]
		if p.tail > 0 && m[2*p.tail] >= 0 && end < len(text) {
			// A single rune stays as it is: it matches the second alternative, \s+.
			if _, last := utf8.DecodeLastRuneInString(text[start:end]); end-last > start {
				end -= last
			}
		}
		if start > 0 {
			yield(text[:start])
		}
		yield(text[start:end])
		text = text[end:]
	}
}
