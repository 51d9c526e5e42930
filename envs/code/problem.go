package code

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// test is a call and what it has to give.
type test struct {
	// call is the expression that is evaluated.
	call string
	// want is its value, as canonicalValue writes it, and shown as Starlark does.
	want, shown string
}

// line is the test as it is shown.
func (t test) line() string { return t.call + " == " + t.shown }

// problem is a function to write.
type problem struct {
	// text is the whole task: what the function does, and the examples.
	text string
	// examples are the tests that are shown, hidden the others. There is a hidden one at least.
	examples, hidden []test
	// reference is a program that passes; "" if none is known.
	reference string
	// x is the type of a generated function's argument.
	x typ
}

// tests are all tests in the order in which they are run: the examples first.
func (p *problem) tests() []test { return append(append([]test{}, p.examples...), p.hidden...) }

// widestLine is the most bytes of an example of a generated problem, by what x is.
var widestLine = [...]int{number: 32, text: 64, numbers: 64}

// widestValue is the most bytes of a value of a generated problem, as Starlark writes it.
const widestValue = 200

// candidates is how many inputs are drawn for one test.
const candidates = 3

// makeProblem draws the tests of a function. It is not ok if too few inputs make short enough examples.
func makeProblem(r *rand.Rand, f function, examples, hidden int) (p problem, ok bool) {
	x := f[0].kind.from
	var inputs []any
	var tests []test
	seen := map[string]bool{}
	add := func(input any) {
		written := literal(input)
		value := literal(f.apply(input))
		if seen[written] || len(value) > widestValue {
			return
		}
		seen[written] = true
		inputs = append(inputs, input)
		tests = append(tests, test{call: "f(" + written + ")", want: canonicalValue([]byte(value)), shown: value})
	}
	for range candidates*(examples+hidden) + 10 {
		add(drawInput(r, x))
	}
	drawn := len(tests)
	for _, probe := range probes()[x] {
		add(probe)
	}
	used := make([]bool, len(tests))
	for _, at := range telling(f, inputs, tests, hidden) {
		used[at] = true
		p.hidden = append(p.hidden, tests[at])
	}
	for at := 0; at < drawn && len(p.examples) < examples; at++ {
		if !used[at] && len(tests[at].line()) <= widestLine[x] {
			used[at] = true
			p.examples = append(p.examples, tests[at])
		}
	}
	for at := 0; at < len(tests) && len(p.hidden) < hidden; at++ {
		if !used[at] {
			used[at] = true
			p.hidden = append(p.hidden, tests[at])
		}
	}
	if len(p.examples) < examples || len(p.hidden) < hidden {
		return p, false
	}
	p.reference, p.x = f.program(), x
	p.text = withExamples(header(x)+f.sentence(), p.examples)
	return p, true
}

// withExamples is a task with the tests that are shown.
func withExamples(task string, examples []test) string {
	lines := []string{task}
	for _, t := range examples {
		lines = append(lines, t.line())
	}
	return strings.Join(lines, "\n")
}

// telling are the tests, at most so many, that tell a function from its mutants: each in turn is the first that tells it
// from most of those that are left.
func telling(f function, inputs []any, tests []test, most int) []int {
	mutants := f.mutants()
	var passes [][]bool // [mutants][tests]
	for _, m := range mutants {
		row := make([]bool, len(tests))
		for at, input := range inputs {
			row[at] = literal(m.apply(input)) == tests[at].shown
		}
		passes = append(passes, row)
	}
	var chosen []int
	for len(chosen) < most {
		best, told := -1, 0
		for at := range tests {
			n := 0
			for _, row := range passes {
				if !row[at] {
					n++
				}
			}
			if n > told {
				best, told = at, n
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, best)
		left := passes[:0]
		for _, row := range passes {
			if row[best] {
				left = append(left, row)
			}
		}
		passes = left
	}
	return chosen
}

// generated makes the problems of the options.
type generated struct{ options Options }

// at draws the problem of a stream.
func (g *generated) at(r *rand.Rand) problem {
	o := g.options
	for range drawTries {
		x := typesAbout[o.About][r.IntN(len(typesAbout[o.About]))]
		steps := o.least + r.IntN(o.most-o.least+1)
		if p, ok := makeProblem(r, drawFunction(r, x, steps, o.Split), o.Examples, o.Tests); ok {
			return p
		}
	}
	panic(fmt.Sprintf("code: no problem for the options %+v", o))
}

// programs draws programs of other functions of the same options and argument: they have the right form, and solve the
// problem only by chance.
func (g *generated) programs(p *problem, r *rand.Rand, n int) []string {
	out := make([]string, n)
	for i := range out {
		steps := g.options.least + r.IntN(g.options.most-g.options.least+1)
		out[i] = drawFunction(r, p.x, steps, g.options.Split).program()
	}
	return out
}
