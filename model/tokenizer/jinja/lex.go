package jinja

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is a token's kind. Operators have their own text as kind.
type kind string

const (
	data          kind = "text"
	variableBegin kind = "{{"
	variableEnd   kind = "}}"
	blockBegin    kind = "{%"
	blockEnd      kind = "%}"
	name          kind = "name"
	stringLiteral kind = "string"
	integer       kind = "integer"
	float         kind = "float"
	end           kind = "the end of the template"
)

type token struct {
	kind kind
	text string // of a string, its value
	line int
}

// String is the token in an error.
func (t token) String() string {
	switch t.kind {
	case name, integer, float:
		return strconv.Quote(t.text)
	case stringLiteral:
		return "a string"
	case end:
		return string(end)
	}
	return strconv.Quote(string(t.kind))
}

var (
	newlines       = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	integerLiteral = regexp.MustCompile(`^(?i:0b(_?[01])+|0o(_?[0-7])+|0x(_?[0-9a-f])+|[1-9](_?[0-9])*|0(_?0)*)`)
	floatLiteral   = regexp.MustCompile(`^(?i:([0-9]+_)*[0-9]+((\.([0-9]+_)*[0-9]+)?e[+-]?([0-9]+_)*[0-9]+|\.([0-9]+_)*[0-9]+))`)
	rawBegin       = regexp.MustCompile(`^\{%[-+]?` + space + `*raw` + space + `*(-%\}` + space + `*|%\})`)
	rawEnd         = regexp.MustCompile(`(?s)\{%([-+]?)` + space + `*endraw` + space + `*(\+%\}|-%\}` + space + `*|%\}\n?)`)
	commentEnd     = regexp.MustCompile(`\+#\}|-#\}` + space + `*|#\}\n?`)
	leadingSpace   = regexp.MustCompile(`^` + space + `*`)
)

// operators of the language, longer ones before their beginnings.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// lexer cuts a template into tokens, as Jinja2's with trim_blocks and lstrip_blocks.
type lexer struct {
	source string
	at     int
	line   int
	tokens []token
	// lineStarts says that what was read ended with a newline.
	lineStarts bool
}

// lex cuts a template into tokens. The last is end.
func lex(source string) []token {
	source = strings.TrimSuffix(newlines.Replace(source), "\n")
	l := &lexer{source: source, line: 1, lineStarts: true}
	for l.at < len(l.source) {
		l.root()
	}
	l.add(end, "")
	return l.tokens
}

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// advance goes on by n bytes.
func (l *lexer) advance(n int) {
	if n == 0 {
		return
	}
	l.line += strings.Count(l.source[l.at:l.at+n], "\n")
	l.at += n
	l.lineStarts = l.source[l.at-1] == '\n'
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() {
	rest := l.source[l.at:]
	n := nextTag(rest)
	if n < 0 {
		l.add(data, rest)
		l.advance(len(rest))
		return
	}
	raw := rawBegin.FindString(rest[n:])
	sign := sign(rest[n+2:])
	l.text(rest[:n], sign, rest[n+1] != '{')
	l.advance(n)
	switch {
	case raw != "":
		l.raw(raw)
	case rest[n+1] == '#':
		l.comment(2 + len(sign))
	default:
		k := kind(rest[n : n+2])
		l.add(k, "")
		l.advance(2 + len(sign))
		l.tag(k)
	}
}

// nextTag is where the next tag begins, or -1.
func nextTag(text string) int {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '{' && (text[i+1] == '{' || text[i+1] == '%' || text[i+1] == '#') {
			return i
		}
	}
	return -1
}

func sign(text string) string {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		return text[:1]
	}
	return ""
}

// text adds the text before a tag, without the white space that the tag takes.
func (l *lexer) text(text, sign string, strips bool) {
	switch {
	case sign == "-":
		text = strings.TrimRightFunc(text, isSpace)
	case sign == "" && strips:
		last := strings.LastIndexByte(text, '\n') + 1
		if (last > 0 || l.lineStarts) && strings.TrimFunc(text[last:], isSpace) == "" {
			text = text[:last]
		}
	}
	if text != "" {
		l.add(data, text)
	}
}

func (l *lexer) comment(opening int) {
	line := l.line
	l.advance(opening)
	at := commentEnd.FindStringIndex(l.source[l.at:])
	if at == nil {
		fail(line, "comment", "it does not end")
	}
	l.advance(at[1])
}

func (l *lexer) raw(opening string) {
	line := l.line
	l.advance(len(opening))
	rest := l.source[l.at:]
	at := rawEnd.FindStringSubmatchIndex(rest)
	if at == nil {
		fail(line, "statement raw", "it does not end")
	}
	l.text(rest[:at[0]], rest[at[2]:at[3]], true)
	l.advance(at[1])
}

// tag reads the tokens of a tag and its end. Within parentheses an end is read as operators.
func (l *lexer) tag(begin kind) {
	closing := blockEnd
	if begin == variableBegin {
		closing = variableEnd
	}
	line := l.line
	var open []byte
	for {
		l.advance(len(leadingSpace.FindString(l.source[l.at:])))
		rest := l.source[l.at:]
		if rest == "" {
			fail(line, "tag "+string(begin), "it does not end")
		}
		if n := tagEnd(rest, closing); n > 0 && len(open) == 0 {
			l.add(closing, "")
			l.advance(n)
			return
		}
		n := l.literal(rest)
		if n == 0 {
			operator := operatorOf(rest)
			if operator == "" {
				r, _ := utf8.DecodeRuneInString(rest)
				fail(l.line, "tag "+string(begin), "unexpected character %q", r)
			}
			open = l.balance(open, operator)
			l.add(kind(operator), "")
			n = len(operator)
		}
		l.advance(n)
	}
}

// tagEnd is the length of a tag's end, with the white space that it takes, or 0.
func tagEnd(rest string, closing kind) int {
	switch {
	case strings.HasPrefix(rest, "-"+string(closing)):
		return 3 + len(leadingSpace.FindString(rest[3:]))
	case closing == blockEnd && strings.HasPrefix(rest, "+%}"):
		return 3
	case closing == blockEnd && strings.HasPrefix(rest, "%}\n"):
		return 3
	case strings.HasPrefix(rest, string(closing)):
		return 2
	}
	return 0
}

func operatorOf(rest string) string {
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			return o
		}
	}
	return ""
}

// balance keeps the parentheses that are open.
func (l *lexer) balance(open []byte, operator string) []byte {
	switch operator {
	case "(", "[", "{":
		return append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[operator])
	case ")", "]", "}":
		if len(open) == 0 {
			fail(l.line, "expression", "unexpected %q", operator)
		}
		if want := open[len(open)-1]; want != operator[0] {
			fail(l.line, "expression", "unexpected %q, want %q", operator, string(want))
		}
		return open[:len(open)-1]
	}
	return open
}

// literal adds a number, name or string, and returns its length, or 0.
func (l *lexer) literal(rest string) int {
	afterDot := l.at > 0 && l.source[l.at-1] == '.'
	if m := floatLiteral.FindString(rest); m != "" && !afterDot {
		l.add(float, strings.ReplaceAll(m, "_", ""))
		return len(m)
	}
	if m := integerLiteral.FindString(rest); m != "" {
		l.add(integer, strings.ReplaceAll(m, "_", ""))
		return len(m)
	}
	if n := wordLength(rest); n > 0 {
		if first, _ := utf8.DecodeRuneInString(rest); first != '_' && !unicode.IsLetter(first) {
			fail(l.line, "name", "%q does not begin with a letter", rest[:n])
		}
		l.add(name, rest[:n])
		return n
	}
	if rest[0] == '\'' || rest[0] == '"' {
		return l.string(rest)
	}
	return 0
}

func wordLength(text string) int {
	for i, r := range text {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return i
		}
	}
	return len(text)
}

func (l *lexer) string(rest string) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			l.add(stringLiteral, l.unescape(rest[1:i]))
			return i + 1
		}
	}
	fail(l.line, "string", "it does not end")
	return 0
}

var simpleEscapes = map[byte]string{'\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': ""}

// unescape gives the value of a string, as Python's unicode-escape codec reads it.
func (l *lexer) unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var s strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			s.WriteByte(text[i])
			i++
			continue
		}
		i++
		if simple, ok := simpleEscapes[text[i]]; ok {
			s.WriteString(simple)
			i++
			continue
		}
		digits, n, base := 0, 0, 16
		switch c := text[i]; {
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c == 'N':
			fail(l.line, "string", `\N is not supported`)
		case c >= '0' && c <= '7':
			base, i = 8, i-1
			for n = 1; n < 3 && i+1+n < len(text) && text[i+1+n] >= '0' && text[i+1+n] <= '7'; {
				n++
			}
			digits = n
		default:
			s.WriteByte('\\')
			if c >= utf8.RuneSelf { // Jinja2 has written the character as an escape before
				r, size := utf8.DecodeRuneInString(text[i:])
				s.WriteString(strings.TrimPrefix(escapeRune(r), `\`))
				i += size
			}
			continue
		}
		if i+1+digits > len(text) {
			fail(l.line, "string", "an escape is cut short")
		}
		value, err := strconv.ParseUint(text[i+1:i+1+digits], base, 32)
		if err != nil || !utf8.ValidRune(rune(value)) || value > unicode.MaxRune {
			fail(l.line, "string", `the escape \%s is no character`, text[i:i+1+digits])
		}
		s.WriteRune(rune(value))
		i += 1 + digits
	}
	return s.String()
}
