package jinja

import (
	"math"
	"math/big"
	"strings"
)

// arithmetic is a binary operator.
func (r *run) arithmetic(operator string, a, b any) any {
	for _, v := range []any{a, b} {
		if u, ok := v.(*undefined); ok && !(operator == "%" && isText(a)) {
			r.fail("%s", u.reason)
		}
	}
	if m, ok := a.(markup); ok {
		return r.ofMarkup(operator, string(m), b, true)
	}
	if m, ok := b.(markup); ok {
		return r.ofMarkup(operator, string(m), a, false)
	}
	x, y := plain(a), plain(b)
	switch v := x.(type) {
	case int64:
		switch w := y.(type) {
		case int64:
			return r.integers(operator, v, w)
		case float64:
			return r.floats(operator, float64(v), w)
		case string, *list, *tuple:
			if operator == "*" {
				return r.times(w, v)
			}
		}
	case float64:
		switch w := y.(type) {
		case int64:
			return r.floats(operator, v, float64(w))
		case float64:
			return r.floats(operator, v, w)
		}
	case string:
		w, ok := y.(string)
		switch {
		case operator == "%":
			return r.percent(v, b)
		case operator == "+" && ok:
			return r.made(v + w)
		}
	case *list:
		if w, ok := y.(*list); ok && operator == "+" {
			return &list{r.joined(v.items, w.items)}
		}
	case *tuple:
		if w, ok := y.(*tuple); ok && operator == "+" {
			return &tuple{items: r.joined(v.items, w.items)}
		}
	}
	if n, ok := y.(int64); ok && operator == "*" {
		switch x.(type) {
		case string, *list, *tuple:
			return r.times(x, n)
		}
	}
	r.fail("%s is not supported between %s and %s", operator, typeName(a), typeName(b))
	return nil
}

func isText(v any) bool {
	switch v.(type) {
	case string, markup:
		return true
	}
	return false
}

// ofMarkup is an operator with a text marked as safe: the other is escaped.
func (r *run) ofMarkup(operator, m string, other any, left bool) any {
	text := ""
	switch o := other.(type) {
	case string:
		text = r.escape(o)
	case markup:
		text = string(o)
	default:
		operator = "*"
	}
	if operator != "+" {
		r.fail("with text marked as safe, only + between texts is supported")
	}
	if left {
		return markup(r.made(m + text))
	}
	return markup(r.made(text + m))
}

// escape is markupsafe's escape.
func (r *run) escape(s string) string {
	r.alloc(len(s) + 4*(strings.Count(s, "&")+strings.Count(s, "<")+strings.Count(s, ">")+strings.Count(s, `"`)+strings.Count(s, "'")))
	return htmlEscapes.Replace(s)
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func (r *run) joined(a, b []any) []any {
	r.alloc(valueBytes * (len(a) + len(b)))
	return append(append(make([]any, 0, len(a)+len(b)), a...), b...)
}

// times repeats a text or a list.
func (r *run) times(v any, n int64) any {
	if s, ok := v.(string); ok {
		return r.repeat(s, n)
	}
	many := func(items []any) (out []any) {
		if n <= 0 || len(items) == 0 {
			return nil
		}
		if n > MaxBytes || int64(len(items))*n > MaxBytes {
			r.alloc(MaxBytes + 1)
		}
		r.alloc(valueBytes * len(items) * int(n))
		for range n {
			out = append(out, items...)
		}
		return out
	}
	if l, ok := v.(*list); ok {
		return &list{many(l.items)}
	}
	return &tuple{items: many(v.(*tuple).items)}
}

// fits is a big number as an int64.
func (r *run) fits(n *big.Int) any {
	if !n.IsInt64() {
		r.fail("the result has more than 64 bits")
	}
	return n.Int64()
}

func (r *run) subtract(a, b int64) any { return r.fits(new(big.Int).Sub(big.NewInt(a), big.NewInt(b))) }

func (r *run) integers(operator string, a, b int64) any {
	x, y := big.NewInt(a), big.NewInt(b)
	switch operator {
	case "+":
		return r.fits(x.Add(x, y))
	case "-":
		return r.fits(x.Sub(x, y))
	case "*":
		return r.fits(x.Mul(x, y))
	case "/":
		if b == 0 {
			r.fail("division by zero")
		}
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if a == 0 {
			f = 0
		}
		return f
	case "//", "%":
		if b == 0 {
			r.fail("division by zero")
		}
		quotient, rest := new(big.Int).QuoRem(x, y, new(big.Int))
		if rest.Sign() != 0 && rest.Sign() != y.Sign() {
			quotient.Sub(quotient, big.NewInt(1))
			rest.Add(rest, y)
		}
		if operator == "%" {
			return r.fits(rest)
		}
		return r.fits(quotient)
	}
	if b < 0 { // **
		return r.floats(operator, float64(a), float64(b))
	}
	if b > 64 && a != 0 && a != 1 && a != -1 {
		r.fail("the result has more than 64 bits")
	}
	if b > 64 {
		y = big.NewInt(64 + b%2)
	}
	return r.fits(x.Exp(x, y, nil))
}

func (r *run) floats(operator string, a, b float64) any {
	switch operator {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	if b == 0 && operator != "**" {
		r.fail("division by zero")
	}
	switch operator {
	case "/":
		return a / b
	case "//", "%":
		quotient, rest := floatDivide(a, b)
		if operator == "%" {
			return rest
		}
		return quotient
	}
	if a == 0 && b < 0 || a < 0 && b != math.Floor(b) {
		r.fail("the power of these numbers is no number")
	}
	return r.power(a, b)
}

func (r *run) power(a, b float64) any {
	p := math.Pow(a, b)
	if math.IsInf(p, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		r.fail("the result is too large")
	}
	if b != math.Trunc(b) || math.Abs(b) > 2 {
		r.fail("powers of floats are not computed here") // C libraries differ in the last bit
	}
	return p
}

// floatDivide is Python's divmod of floats.
func floatDivide(a, b float64) (quotient, rest float64) {
	rest = math.Mod(a, b)
	quotient = (a - rest) / b
	if rest != 0 {
		if (b < 0) != (rest < 0) {
			rest += b
			quotient--
		}
	} else {
		rest = math.Copysign(0, b)
	}
	if quotient == 0 {
		return math.Copysign(0, a/b), rest
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor, rest
}
