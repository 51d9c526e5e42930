package code

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// typ is the type of a value between the steps of a function.
type typ int

const (
	number typ = iota
	text
	numbers
	texts
)

// typeWords say in a prompt what x is.
var typeWords = [...]string{number: "an integer", text: "a string", numbers: "a list of integers", texts: "a list of strings"}

// parameter is what a step is told beside its value.
type parameter int

const (
	none   parameter = iota
	count            // 2 to 9
	short            // 1 to 4
	letter           // a to e
	change           // two letters
)

// ranges are how many values a parameter has, and the first of them.
var ranges = [...]struct{ n, first int }{none: {1, 0}, count: {8, 2}, short: {4, 1}, letter: {5, 0}, change: {20, 0}}

// kind is a kind of step: from a value of one type it makes another, of the same type or not.
type kind struct {
	from, to typ
	takes    parameter
	// say is the step in words, and expr in Starlark; {p} is the parameter, {p+} the number after it, {q} the second letter of
	// a change. before are
	// lines in front of the expression, without the indentation of the function.
	say, expr string
	before    []string
	// do computes it. n is the parameter's value; the letters are those of letters.
	do func(v any, n int) any
}

// step is a kind with its parameter.
type step struct {
	kind *kind
	n    int // from the range of the parameter
}

func letterAt(n int) string { return string(rune('a' + n)) }

// letters are the two letters of a change, which differ.
func letters(n int) (from, to string) {
	at := n / 4
	other := n % 4
	if other >= at {
		other++
	}
	return letterAt(at), letterAt(other)
}

// fill puts the parameter into a text.
func (s step) fill(text string) string {
	switch s.kind.takes {
	case count, short:
		return strings.NewReplacer("{p}", strconv.Itoa(s.n), "{p+}", strconv.Itoa(s.n+1)).Replace(text)
	case letter:
		return strings.ReplaceAll(text, "{p}", strconv.Quote(letterAt(s.n)))
	case change:
		from, to := letters(s.n)
		return strings.NewReplacer("{p}", strconv.Quote(from), "{q}", strconv.Quote(to)).Replace(text)
	}
	return text
}

// floored is division that rounds down, as Starlark's.
func floored(a, b int) (quotient, rest int) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// onNumber, onText, onNumbers and onTexts make a kind's do of a function of one type.
func onNumber[T any](f func(x, n int) T) func(any, int) any {
	return func(v any, n int) any { return f(v.(int), n) }
}

func onText[T any](f func(x string, n int) T) func(any, int) any {
	return func(v any, n int) any { return f(v.(string), n) }
}

func onNumbers[T any](f func(x []int, n int) T) func(any, int) any {
	return func(v any, n int) any { return f(v.([]int), n) }
}

func onTexts[T any](f func(x []string, n int) T) func(any, int) any {
	return func(v any, n int) any { return f(v.([]string), n) }
}

// each applies a function to the elements.
func each[T, U any](f func(x T, n int) U) func([]T, int) []U {
	return func(xs []T, n int) []U {
		out := make([]U, len(xs))
		for i, x := range xs {
			out[i] = f(x, n)
		}
		return out
	}
}

// keep leaves those elements of which a function is true.
func keep[T any](f func(x T, n int) bool) func([]T, int) []T {
	return func(xs []T, n int) []T {
		out := []T{}
		for _, x := range xs {
			if f(x, n) {
				out = append(out, x)
			}
		}
		return out
	}
}

func first[T any](xs []T, n int) []T { return slices.Clone(xs[:min(n, len(xs))]) }
func drop[T any](xs []T, n int) []T  { return slices.Clone(xs[min(n, len(xs)):]) }

func backwards[T any](xs []T, _ int) []T {
	out := slices.Clone(xs)
	slices.Reverse(out)
	return out
}

func ascending[T cmp.Ordered](xs []T, _ int) []T { return slices.Sorted(slices.Values(xs)) }

func every(xs []int, n int) []int {
	out := []int{}
	for i := 0; i < len(xs); i += n {
		out = append(out, xs[i])
	}
	return out
}

func once(xs []int, _ int) []int {
	out := []int{}
	for _, x := range xs {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// fold makes one number of a list.
func fold(from int, f func(sum, x int) int) func(xs []int, n int) int {
	return func(xs []int, _ int) int {
		sum := from
		for _, x := range xs {
			sum = f(sum, x)
		}
		return sum
	}
}

func sums(xs []int, _ int) []int {
	out, sum := []int{}, 0
	for _, x := range xs {
		sum += x
		out = append(out, sum)
	}
	return out
}

// onBytes is a text of whose bytes a function made others: texts are ASCII.
func onBytes(f func([]byte, int) []byte) func(any, int) any {
	return onText(func(x string, n int) string { return string(f([]byte(x), n)) })
}

// literal is a value as Starlark writes it, which is also JSON.
func literal(v any) string {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case string:
		return strconv.Quote(v) // ASCII without control characters
	case []int:
		return list(v)
	case []string:
		return list(v)
	}
	panic(fmt.Sprintf("code: a value of type %T", v))
}

func list[T any](vs []T) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = literal(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
