package code

import (
	"slices"
	"strconv"
	"strings"
)

// kinds are the steps that functions are made of. Their order is part of the bits of every run of this environment.
var kinds = []kind{
	{from: number, to: number, takes: count, say: "add {p}", expr: "x + {p}", do: onNumber(plus)},
	{from: number, to: number, takes: count, say: "subtract {p}", expr: "x - {p}", do: onNumber(func(x, n int) int { return x - n })},
	{from: number, to: number, takes: count, say: "multiply by {p}", expr: "x * {p}", do: onNumber(times)},
	{from: number, to: number, takes: count, say: "divide by {p} and round down", expr: "x // {p}",
		do: onNumber(func(x, n int) int { q, _ := floored(x, n); return q })},
	{from: number, to: number, takes: count, say: "take the remainder by {p}", expr: "x % {p}", do: onNumber(rest)},
	{from: number, to: number, takes: count, say: "take the smaller of it and {p}", expr: "min(x, {p})",
		do: onNumber(func(x, n int) int { return min(x, n) })},
	{from: number, to: number, takes: count, say: "take the larger of it and {p}", expr: "max(x, {p})",
		do: onNumber(func(x, n int) int { return max(x, n) })},
	{from: number, to: number, say: "square it", expr: "x * x", do: onNumber(func(x, _ int) int { return x * x })},
	{from: number, to: number, say: "take its absolute value", expr: "abs(x)", do: onNumber(func(x, _ int) int { return max(x, -x) })},
	{from: number, to: text, say: "write it as a string", expr: "str(x)", do: onNumber(func(x, _ int) string { return strconv.Itoa(x) })},
	{from: number, to: text, takes: letter, say: "write it as a string that ends with {p}", expr: "str(x) + {p}",
		do: onNumber(func(x, n int) string { return strconv.Itoa(x) + letterAt(n) })},
	{from: number, to: numbers, takes: count, say: "list it and the next {p} integers", expr: "[x + y for y in range({p+})]",
		do: onNumber(func(x, n int) []int {
			out := make([]int, n+1)
			for y := range out {
				out[y] = x + y
			}
			return out
		})},

	{from: text, to: text, say: "make its letters upper case", expr: "x.upper()",
		do: onText(func(x string, _ int) string { return strings.ToUpper(x) })},
	{from: text, to: text, say: "reverse it", expr: "x[::-1]", do: onBytes(backwards[byte])},
	{from: text, to: text, say: "sort its characters", expr: `"".join(sorted(x.elems()))`, do: onBytes(ascending[byte])},
	{from: text, to: text, takes: short, say: "take its first {p} characters", expr: "x[:{p}]", do: onBytes(first[byte])},
	{from: text, to: text, takes: short, say: "drop its first {p} characters", expr: "x[{p}:]", do: onBytes(drop[byte])},
	{from: text, to: text, takes: short, say: "write it {p+} times in a row", expr: "x * {p+}",
		do: onText(func(x string, n int) string { return strings.Repeat(x, n+1) })},
	{from: text, to: text, takes: change, say: "replace each {p} by {q}", expr: "x.replace({p}, {q})", do: onText(func(x string, n int) string {
		from, to := letters(n)
		return strings.ReplaceAll(x, from, to)
	})},
	{from: text, to: text, takes: letter, say: "put {p} behind it", expr: "x + {p}",
		do: onText(func(x string, n int) string { return x + letterAt(n) })},
	{from: text, to: text, takes: letter, say: "put {p} in front of it", expr: "{p} + x",
		do: onText(func(x string, n int) string { return letterAt(n) + x })},
	{from: text, to: number, say: "count its characters", expr: "len(x)", do: onText(func(x string, _ int) int { return len(x) })},
	{from: text, to: number, takes: letter, say: "count how often {p} is in it", expr: "x.count({p})",
		do: onText(func(x string, n int) int { return strings.Count(x, letterAt(n)) })},
	{from: text, to: number, takes: letter, say: "find the place of the first {p}, from 0, or -1 if there is none", expr: "x.find({p})",
		do: onText(func(x string, n int) int { return strings.Index(x, letterAt(n)) })},
	{from: text, to: texts, say: "split it into words", expr: "x.split()", do: onText(func(x string, _ int) []string { return strings.Fields(x) })},

	{from: numbers, to: numbers, takes: count, say: "add {p} to each", expr: "[y + {p} for y in x]", do: onNumbers(each(plus))},
	{from: numbers, to: numbers, takes: count, say: "multiply each by {p}", expr: "[y * {p} for y in x]", do: onNumbers(each(times))},
	{from: numbers, to: numbers, takes: count, say: "take the remainder of each by {p}", expr: "[y % {p} for y in x]", do: onNumbers(each(rest))},
	{from: numbers, to: numbers, takes: count, say: "keep those above {p}", expr: "[y for y in x if y > {p}]",
		do: onNumbers(keep(func(x, n int) bool { return x > n }))},
	{from: numbers, to: numbers, takes: count, say: "keep those below {p}", expr: "[y for y in x if y < {p}]",
		do: onNumbers(keep(func(x, n int) bool { return x < n }))},
	{from: numbers, to: numbers, takes: count, say: "keep the multiples of {p}", expr: "[y for y in x if y % {p} == 0]",
		do: onNumbers(keep(func(x, n int) bool { return x%n == 0 }))},
	{from: numbers, to: numbers, say: "sort them", expr: "sorted(x)", do: onNumbers(ascending[int])},
	{from: numbers, to: numbers, say: "sort them, the largest first", expr: "sorted(x, reverse=True)",
		do: onNumbers(func(xs []int, n int) []int { return backwards(ascending(xs, n), n) })},
	{from: numbers, to: numbers, say: "reverse the list", expr: "x[::-1]", do: onNumbers(backwards[int])},
	{from: numbers, to: numbers, takes: short, say: "take the first {p}", expr: "x[:{p}]", do: onNumbers(first[int])},
	{from: numbers, to: numbers, takes: short, say: "drop the first {p}", expr: "x[{p}:]", do: onNumbers(drop[int])},
	{from: numbers, to: numbers, takes: short, say: "take the first and then every {p+}-th", expr: "x[::{p+}]",
		do: onNumbers(func(xs []int, n int) []int { return every(xs, n+1) })},
	{from: numbers, to: numbers, say: "leave out repetitions", before: []string{"z = []", "for y in x:", "    if y not in z:", "        z.append(y)"},
		expr: "z", do: onNumbers(once)},
	{from: numbers, to: numbers, say: "take the running sums", before: []string{"s = 0", "z = []", "for y in x:", "    s += y", "    z.append(s)"},
		expr: "z", do: onNumbers(sums)},
	{from: numbers, to: number, say: "count them", expr: "len(x)", do: onNumbers(func(xs []int, _ int) int { return len(xs) })},
	{from: numbers, to: number, say: "take their sum", before: []string{"s = 0", "for y in x:", "    s += y"}, expr: "s",
		do: onNumbers(fold(0, func(sum, x int) int { return sum + x }))},
	{from: numbers, to: number, say: "take the sum of their squares", before: []string{"s = 0", "for y in x:", "    s += y * y"}, expr: "s",
		do: onNumbers(fold(0, func(sum, x int) int { return sum + x*x }))},
	{from: numbers, to: number, say: "take the largest of them and 0", expr: "max(x + [0])",
		do: onNumbers(fold(0, func(sum, x int) int { return max(sum, x) }))},
	{from: numbers, to: number, say: "take the smallest of them and 0", expr: "min(x + [0])",
		do: onNumbers(fold(0, func(sum, x int) int { return min(sum, x) }))},
	{from: numbers, to: number, takes: count, say: "count those equal to {p}", expr: "len([y for y in x if y == {p}])",
		do: onNumbers(func(xs []int, n int) int { return len(keep(func(x, n int) bool { return x == n })(xs, n)) })},
	{from: numbers, to: texts, say: "write each as a string", expr: "[str(y) for y in x]",
		do: onNumbers(each(func(x, _ int) string { return strconv.Itoa(x) }))},

	{from: texts, to: texts, say: "reverse the list", expr: "x[::-1]", do: onTexts(backwards[string])},
	{from: texts, to: texts, say: "sort them", expr: "sorted(x)", do: onTexts(ascending[string])},
	{from: texts, to: texts, say: "make each upper case", expr: "[y.upper() for y in x]",
		do: onTexts(each(func(x string, _ int) string { return strings.ToUpper(x) }))},
	{from: texts, to: texts, takes: short, say: "keep those of more than {p} characters", expr: "[y for y in x if len(y) > {p}]",
		do: onTexts(keep(func(x string, n int) bool { return len(x) > n }))},
	{from: texts, to: texts, takes: letter, say: "keep those with {p} in them", expr: "[y for y in x if {p} in y]",
		do: onTexts(keep(func(x string, n int) bool { return strings.Contains(x, letterAt(n)) }))},
	{from: texts, to: number, say: "count them", expr: "len(x)", do: onTexts(func(xs []string, _ int) int { return len(xs) })},
	{from: texts, to: numbers, say: "take the length of each", expr: "[len(y) for y in x]", do: onTexts(each(func(x string, _ int) int { return len(x) }))},
	{from: texts, to: text, takes: letter, say: "join them by {p}", expr: "{p}.join(x)",
		do: onTexts(func(xs []string, n int) string { return strings.Join(xs, letterAt(n)) })},
	{from: texts, to: text, say: "take the last, or an empty string if there is none", expr: `x[-1] if x else ""`,
		do: onTexts(func(xs []string, _ int) string {
			if len(xs) == 0 {
				return ""
			}
			return xs[len(xs)-1]
		})},
}

func plus(x, n int) int  { return x + n }
func times(x, n int) int { return x * n }

func rest(x, n int) int {
	_, r := floored(x, n)
	return r
}

// kindsFrom are the kinds of steps that take a type: [types].
var kindsFrom = func() (of [4][]*kind) {
	for i := range kinds {
		of[kinds[i].from] = append(of[kinds[i].from], &kinds[i])
	}
	return of
}()

// alike are the other kinds between the same types with the same parameter.
func (k *kind) alike() []*kind {
	return slices.DeleteFunc(slices.Clone(kindsFrom[k.from]), func(other *kind) bool {
		return other == k || other.to != k.to || other.takes != k.takes
	})
}
