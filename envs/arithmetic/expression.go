// Package arithmetic reads and computes arithmetic expressions exactly, within bounds: of the environment countdown and
// of the tool calculator.
package arithmetic

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Limits of an expression.
const (
	// MaxLength is the most bytes of an expression as written.
	MaxLength = 200
	// MaxDepth is the most parentheses and signs around a number.
	MaxDepth = 32
	// MaxDigits is the most digits of a number, zeros at its beginning included, and of the numerator and the
	// denominator of what Exact gives.
	MaxDigits = 9
)

// ErrSyntax says that a text is not an expression.
var ErrSyntax = errors.New("no expression")

// ErrDivision says that an expression divides by zero.
var ErrDivision = errors.New("division by zero")

// ErrDigits says that a value has too many digits.
var ErrDigits = errors.New("too many digits")

// Expression is an arithmetic expression that was parsed.
type Expression struct {
	text    string
	numbers []int64
	root    node
}

// node is a number, a sign before its only operand, or an operation on two.
type node struct {
	operator    byte // 0 for a number
	number      int64
	places      int // of the number's digits are behind the point
	left, right *node
}

// String gives the expression's canonical form: as it was written, but without
// blanks, with the signs + - * / and without zeros at the beginning of numbers.
// Parsing it gives it again.
func (e Expression) String() string { return e.text }

// Numbers gives the whole numbers in the order they are written; decimals are left out. A sign before a
// number is not part of it.
func (e Expression) Numbers() []int64 { return e.numbers }

// Value computes the expression exactly. Errors are of kind ErrDivision.
func (e Expression) Value() (*big.Rat, error) { return e.root.value() }

// Exact writes the value as 7, -3 or 5/2. Errors are of kind ErrDivision, or of kind ErrDigits if numerator or
// denominator has more than MaxDigits digits.
func (e Expression) Exact() (string, error) {
	value, err := e.Value()
	if err != nil {
		return "", err
	}
	if len(strings.TrimPrefix(value.Num().String(), "-")) > MaxDigits || len(value.Denom().String()) > MaxDigits {
		return "", ErrDigits
	}
	return value.RatString(), nil
}

// powers are 10 to the number of places.
var powers = func() (powers [MaxDigits + 1]int64) {
	powers[0] = 1
	for i := range MaxDigits {
		powers[i+1] = 10 * powers[i]
	}
	return powers
}()

func (n *node) value() (*big.Rat, error) {
	if n.operator == 0 {
		return big.NewRat(n.number, powers[n.places]), nil
	}
	left, err := n.left.value()
	if err != nil {
		return nil, err
	}
	if n.right == nil {
		if n.operator == '-' {
			left.Neg(left)
		}
		return left, nil
	}
	right, err := n.right.value()
	if err != nil {
		return nil, err
	}
	switch n.operator {
	case '+':
		return left.Add(left, right), nil
	case '-':
		return left.Sub(left, right), nil
	case '*':
		return left.Mul(left, right), nil
	}
	if right.Sign() == 0 {
		return nil, ErrDivision
	}
	return left.Quo(left, right), nil
}

// Parse reads an expression:
//
//	sum     = product { ("+" | "-") product }
//	product = factor { ("*" | "/") factor }
//	factor  = ("+" | "-") factor | "(" sum ")" | digits
//
// Blanks (space, tab, line breaks) may be between these; × and ÷ and the minus sign
// U+2212 count as * / -. Errors are of kind ErrSyntax, with the column in bytes, counted
// from 1.
func Parse(text string) (Expression, error) { return parse(text, false) }

// ParseDecimals is Parse for a text whose numbers may have decimals: digits [ "." digits ].
func ParseDecimals(text string) (Expression, error) { return parse(text, true) }

func parse(text string, decimals bool) (Expression, error) {
	if len(text) > MaxLength {
		return Expression{}, fmt.Errorf("%w: %d bytes, at most %d", ErrSyntax, len(text), MaxLength)
	}
	p := parser{rest: text, size: len(text), decimals: decimals}
	p.next()
	root, err := p.sum(0)
	if err == nil && p.token != end {
		err = p.wrong("an operator")
	}
	if err != nil {
		return Expression{}, err
	}
	return Expression{text: p.written.String(), numbers: p.numbers, root: *root}, nil
}

// Tokens other than the operators and parentheses, which are themselves.
const (
	end    = 0
	digits = '0'
	other  = '?'
)

// parser holds one token ahead.
type parser struct {
	rest     string // after the token
	size     int    // of the whole text
	decimals bool   // are read
	token    byte
	column   int   // of the token, from 1
	value    int64 // of a number, without its point
	places   int   // of its digits are behind the point
	long     bool  // the number has too many digits

	written strings.Builder
	numbers []int64
}

// signs that stand for an operator.
var signs = []struct {
	sign     string
	operator byte
}{{"×", '*'}, {"÷", '/'}, {"\u2212", '-'}}

func (p *parser) next() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	p.column = p.size - len(p.rest) + 1
	if p.rest == "" {
		p.token = end
		return
	}
	for _, s := range signs {
		if after, ok := strings.CutPrefix(p.rest, s.sign); ok {
			p.token, p.rest = s.operator, after
			return
		}
	}
	c := p.rest[0]
	switch {
	case strings.IndexByte("+-*/()", c) >= 0:
		p.token, p.rest = c, p.rest[1:]
	case c >= '0' && c <= '9':
		p.token, p.value, p.places = digits, 0, 0
		n := p.digits()
		if p.decimals && len(p.rest) > 1 && p.rest[0] == '.' && p.rest[1] >= '0' && p.rest[1] <= '9' {
			p.rest = p.rest[1:]
			p.places = p.digits()
			n += p.places
		}
		p.long = n > MaxDigits
	default:
		p.token = other
	}
}

// digits reads digits behind those of the value, and gives their number. The value is the number's only if it is not
// too long.
func (p *parser) digits() int {
	n := 0
	for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
		if n < MaxDigits {
			p.value = 10*p.value + int64(p.rest[n]-'0')
		}
		n++
	}
	p.rest = p.rest[n:]
	return n
}

// take appends the token and advances.
func (p *parser) take() {
	p.written.WriteByte(p.token)
	p.next()
}

func (p *parser) wrong(want string) error {
	return fmt.Errorf("%w: want %s at column %d", ErrSyntax, want, p.column)
}

func (p *parser) sum(depth int) (*node, error) {
	left, err := p.product(depth)
	for err == nil && (p.token == '+' || p.token == '-') {
		n := &node{operator: p.token, left: left}
		p.take()
		n.right, err = p.product(depth)
		left = n
	}
	return left, err
}

func (p *parser) product(depth int) (*node, error) {
	left, err := p.factor(depth)
	for err == nil && (p.token == '*' || p.token == '/') {
		n := &node{operator: p.token, left: left}
		p.take()
		n.right, err = p.factor(depth)
		left = n
	}
	return left, err
}

func (p *parser) factor(depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, p.wrong(fmt.Sprintf("at most %d parentheses and signs in one another", MaxDepth))
	}
	switch p.token {
	case digits:
		if p.long {
			return nil, p.wrong(fmt.Sprintf("at most %d digits", MaxDigits))
		}
		n := &node{number: p.value, places: p.places}
		if p.places == 0 {
			p.numbers = append(p.numbers, p.value)
			fmt.Fprint(&p.written, p.value)
		} else {
			whole, fraction := p.value/powers[p.places], p.value%powers[p.places]
			fmt.Fprintf(&p.written, "%d.%0*d", whole, p.places, fraction)
		}
		p.next()
		return n, nil
	case '+', '-':
		n := &node{operator: p.token}
		p.take()
		var err error
		n.left, err = p.factor(depth + 1)
		return n, err
	case '(':
		p.take()
		inner, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.token != ')' {
			return nil, p.wrong("an operator or )")
		}
		p.take()
		return inner, nil
	}
	return nil, p.wrong("a number, a sign or (")
}
