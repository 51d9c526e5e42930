package mathqa

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Ways in which answers are compared.
const (
	// Numbers compares answers that are numbers by value, whatever their spelling, and others as texts.
	Numbers = "numbers"
	// Text compares the canonical forms.
	Text = "text"
)

var compareNames = []string{Numbers, Text}

// mixedNumber is a whole number, blanks and a fraction: without the blanks 1 1/2 would be 11/2.
var mixedNumber = regexp.MustCompile(`([-\x{2212}]?)\b([0-9]+)\s+([1-9][0-9]*)\s*/\s*([1-9][0-9]*)\b`)

// joinMixed writes mixed numbers as sums.
func joinMixed(answer string) string {
	return mixedNumber.ReplaceAllStringFunc(answer, func(found string) string {
		parts := mixedNumber.FindStringSubmatch(found)
		n, _ := new(big.Int).SetString(parts[3], 10)
		if d, _ := new(big.Int).SetString(parts[4], 10); n.Cmp(d) >= 0 {
			return found
		}
		plus := "+"
		if parts[1] != "" {
			plus = "-"
		}
		return parts[1] + parts[2] + plus + parts[3] + "/" + parts[4]
	})
}

// equal reports whether an answer is the file's. Both are in their canonical form.
func equal(file, answer string) bool {
	if file == answer {
		return true
	}
	if f := bare(file); f != "" && f == bare(answer) {
		return true
	}
	x, ok := readQuantity(file)
	if !ok {
		return false
	}
	y, ok := readQuantity(answer)
	return ok && x.equal(y)
}

var (
	fractionCommands = regexp.MustCompile(`\\[dtc]frac`)
	fractionTop      = regexp.MustCompile(`\\frac([0-9])`)
	fractionBottom   = regexp.MustCompile(`(\\frac\{[^{}]*\})([0-9])`)
	textCommands     = regexp.MustCompile(`\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\{([^{}]*)\}`)
	leadingWords     = regexp.MustCompile(`^(?:so|thus|therefore|hence)?,?(?:the)?(?:final)?answer(?:is)?[:=]?`)
)

// spellings are characters and commands with the same meaning in plain characters.
var spellings = strings.NewReplacer(
	`\left`, "", `\right`, "", `\!`, "", `\,`, "", `\;`, "", `\:`, "", `~`, "", `\displaystyle`, "", `{,}`, ",", `\$`, "$", `\%`, "%",
	`^{\circ}`, "°", `^\circ`, "°", `\degree`, "°", `^°`, "°", "\u200b", "", "\ufeff", "", "\u2060", "",
	"\u2212", "-", "\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\ufe63", "-", "\uff0d", "-",
	"\u2044", "/", "\uff0c", ",", "\uff0e", ".", "\uff05", "%", "\uff04", "$",
	"０", "0", "１", "1", "２", "2", "３", "3", "４", "4", "５", "5", "６", "6", "７", "7", "８", "8", "９", "9",
)

var delimiters = [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}, {"**", "**"}, {"`", "`"}, {`"`, `"`}}

// bare is an answer without what only says that it is the answer, or how it is set: GSM8K's marker, \boxed, the
// delimiters of formulas and \text. Characters with one meaning have one spelling.
func bare(s string) string { return plainSpelling(undelimited(answerPart(s))) }

// bareNumber is bare, also without full stops and words before the answer, which may be a part of another text.
func bareNumber(s string) string {
	s = undelimited(strings.TrimRight(answerPart(s), "."))
	s = leadingWords.ReplaceAllString(s, "")
	return plainSpelling(undelimited(strings.TrimRight(s, ".")))
}

// answerPart is what follows GSM8K's marker, or is in the last box.
func answerPart(s string) string {
	if at := strings.LastIndex(s, "####"); at >= 0 {
		s = s[at+len("####"):]
	}
	return unboxed(s)
}

// plainSpelling writes commands and characters with the same meaning in one way.
func plainSpelling(s string) string {
	s = textCommands.ReplaceAllString(spellings.Replace(s), "$1")
	s = fractionCommands.ReplaceAllString(s, `\frac`)
	s = fractionTop.ReplaceAllString(s, `\frac{$1}`)
	return fractionBottom.ReplaceAllString(s, "$1{$2}")
}

// undelimited takes off the delimiters around all of a text.
func undelimited(s string) string {
	for {
		before := s
		for _, d := range delimiters {
			if inner, ok := strings.CutPrefix(s, d[0]); ok {
				if inner, ok = strings.CutSuffix(inner, d[1]); ok && inner != "" && !strings.HasSuffix(inner, `\`) {
					s = inner
				}
			}
		}
		if s == before {
			return s
		}
	}
}

// unboxed is what the last \boxed or \fbox has in its braces.
func unboxed(s string) string {
	for {
		at := max(strings.LastIndex(s, `\boxed{`), strings.LastIndex(s, `\fbox{`))
		if at < 0 {
			return s
		}
		inner := s[at+strings.IndexByte(s[at:], '{')+1:]
		depth, end := 1, -1
		for i := 0; i < len(inner) && end < 0; i++ {
			switch inner[i] {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					end = i
				}
			}
		}
		if end < 0 {
			return s
		}
		s = inner[:end]
	}
}

// quantity is a number as an answer.
type quantity struct {
	value *big.Rat
	// places are the digits after the point of a plain decimal, -1 for other numbers.
	places  int
	percent bool
	// unit and variable, if not "", are the words after the number and the letter before a sign of equality.
	unit, variable string
}

const (
	wholePattern    = `(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]{3})*)`
	decimalPattern  = `(?:` + wholePattern + `(?:\.[0-9]*)?|\.[0-9]+)`
	exponentPattern = `(?:\^\{([-+]?[0-9]+)\}|\^([-+]?[0-9]+))`
)

var (
	variableForm = regexp.MustCompile(`^([a-z])=`)
	signForm     = regexp.MustCompile(`^([-+]?)(us\$|usd|eur|[$€£¥₹]|)([-+]?)`)
	latexForm    = regexp.MustCompile(`^(` + wholePattern + `)?\\frac\{([-+]?` + decimalPattern + `)\}\{([-+]?` + decimalPattern + `)\}`)
	mixedForm    = regexp.MustCompile(`^(` + wholePattern + `)([-+])([0-9]+)/([0-9]+)`)
	fractionForm = regexp.MustCompile(`^(` + decimalPattern + `)/(` + decimalPattern + `)`)
	powerForm    = regexp.MustCompile(`^10` + exponentPattern)
	decimalForm  = regexp.MustCompile(`^(` + decimalPattern + `)(?:e([-+]?[0-9]+)|(?:[*×x·]|\\times|\\cdot)10` + exponentPattern + `)?`)
	vulgar       = regexp.MustCompile(`([0-9]?)([¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])`)
)

var vulgarFractions = map[string]string{
	"¼": "1/4", "½": "1/2", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5", "⅙": "1/6", "⅚": "5/6",
	"⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}

// readQuantity reads a whole answer as a number with or without a unit; it is not ok for anything else, as an expression.
func readQuantity(answer string) (q quantity, ok bool) {
	s := bareNumber(answer)
	if m := variableForm.FindStringSubmatch(s); m != nil {
		q.variable, s = m[1], s[len(m[0]):]
	}
	signs := signForm.FindStringSubmatch(s)
	if signs[1] != "" && signs[3] != "" {
		return q, false
	}
	negative := signs[1]+signs[3] == "-"
	q.unit, s = unitNames[signs[2]], s[len(signs[0]):]
	s = vulgar.ReplaceAllStringFunc(s, func(found string) string {
		parts := vulgar.FindStringSubmatch(found)
		switch fraction := vulgarFractions[parts[2]]; {
		case parts[1] == "":
			return fraction
		case negative:
			return parts[1] + "-" + fraction
		default:
			return parts[1] + "+" + fraction
		}
	})
	value, places, rest := readNumber(s, negative)
	if value == nil {
		return q, false
	}
	if q.value, q.places = value, places; negative {
		value.Neg(value)
	}
	switch rest {
	case "":
		return q, true
	case "%", "percent", "pct", "percentage":
		q.percent = true
		return q, q.unit == ""
	}
	unit, ok := unitOf(rest)
	if q.unit != "" && q.unit != unit {
		return q, false
	}
	q.unit = unit
	return q, ok
}

// readNumber reads the number at the begin of a text, without its sign. It is nil if there is none.
func readNumber(s string, negative bool) (value *big.Rat, places int, rest string) {
	if m := latexForm.FindStringSubmatch(s); m != nil {
		value = ratio(m[2], m[3])
		if value != nil && m[1] != "" {
			if value.Sign() < 0 {
				return nil, 0, ""
			}
			value.Add(value, decimalValue(m[1]))
		}
		return value, -1, s[len(m[0]):]
	}
	if m := mixedForm.FindStringSubmatch(s); m != nil {
		if value = ratio(m[3], m[4]); value == nil || negative != (m[2] == "-") {
			return nil, 0, "" // a sum or a difference
		}
		return value.Add(value, decimalValue(m[1])), -1, s[len(m[0]):]
	}
	if m := fractionForm.FindStringSubmatch(s); m != nil {
		return ratio(m[1], m[2]), -1, s[len(m[0]):]
	}
	if m := powerForm.FindStringSubmatch(s); m != nil {
		return scaled(big.NewRat(1, 1), m[1]+m[2]), -1, s[len(m[0]):]
	}
	m := decimalForm.FindStringSubmatch(s)
	if m == nil {
		return nil, 0, ""
	}
	value, rest = decimalValue(m[1]), s[len(m[0]):]
	if exponent := m[2] + m[3] + m[4]; exponent != "" {
		return scaled(value, exponent), -1, rest
	}
	_, fraction, _ := strings.Cut(m[1], ".")
	return value, len(fraction), rest
}

// decimalValue is the value of digits with separators and a point.
func decimalValue(digits string) *big.Rat {
	digits = strings.NewReplacer(",", "", "_", "").Replace(strings.TrimSuffix(digits, "."))
	value, ok := new(big.Rat).SetString(strings.TrimPrefix(digits, "+"))
	if !ok {
		return nil
	}
	return value
}

// ratio is a fraction's value, nil for one of denominator 0.
func ratio(top, bottom string) *big.Rat {
	n, d := decimalValue(top), decimalValue(bottom)
	if n == nil || d == nil || d.Sign() == 0 {
		return nil
	}
	return n.Quo(n, d)
}

// maxExponent is the largest power of ten of an answer that is read as a number.
const maxExponent = 400

// scaled is a value times a power of ten.
func scaled(value *big.Rat, exponent string) *big.Rat {
	e, err := strconv.Atoi(exponent)
	if err != nil || value == nil || max(e, -e) > maxExponent {
		return nil
	}
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(e, -e))), nil))
	if e < 0 {
		power.Inv(power)
	}
	return value.Mul(value, power)
}

// leastPlaces are the digits after the point from which a decimal may stand for a fraction, as in math-verify.
const leastPlaces = 6

// equal reports whether two answers are the same number. A unit or a variable that only one has is not compared, and a percentage
// equals its number and its hundredth.
func (q quantity) equal(other quantity) bool {
	if q.unit != "" && other.unit != "" && q.unit != other.unit || q.variable != "" && other.variable != "" && q.variable != other.variable {
		return false
	}
	if q.value.Cmp(other.value) == 0 || q.rounds(other) || other.rounds(q) {
		return true
	}
	if q.percent == other.percent {
		return false
	}
	whole, part := q.value, other.value
	if other.percent {
		whole, part = part, whole
	}
	return new(big.Rat).Quo(whole, big.NewRat(100, 1)).Cmp(part) == 0
}

// wholeNumber is an answer's value in plain digits if it is a whole number.
func wholeNumber(answer string) (string, bool) {
	q, ok := readQuantity(answer)
	if !ok || !q.value.IsInt() {
		return "", false
	}
	return q.value.Num().String(), true
}

// rounds reports whether a decimal is a fraction rounded to the decimal's digits.
func (q quantity) rounds(fraction quantity) bool {
	return q.places >= leastPlaces && fraction.places < 0 && q.value.FloatString(q.places) == fraction.value.FloatString(q.places)
}
