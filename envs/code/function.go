package code

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/model/draw"
)

// function is a small function: steps, the first of which takes x, and each later one what the one before gave.
type function []step

// apply computes it.
func (f function) apply(x any) any {
	for _, s := range f {
		x = s.kind.do(x, s.n)
	}
	return x
}

// program is the reference solution: a statement a step.
func (f function) program() string {
	if len(f) == 1 && f[0].kind.before == nil {
		return "def f(x): return " + f[0].fill(f[0].kind.expr)
	}
	lines := []string{"def f(x):"}
	for i, s := range f {
		for _, line := range s.kind.before {
			lines = append(lines, "    "+s.fill(line))
		}
		begin := "    x = "
		if i == len(f)-1 {
			begin = "    return "
		}
		lines = append(lines, begin+s.fill(s.kind.expr))
	}
	return strings.Join(lines, "\n")
}

// sentence says what it does.
func (f function) sentence() string {
	var says []string
	for _, s := range f {
		says = append(says, s.fill(s.kind.say))
	}
	words := strings.Join(says, ", then ")
	return strings.ToUpper(words[:1]) + words[1:] + ", and return the result."
}

// header says what is asked of a function of an x.
func header(x typ) string { return "Define f(x), where x is " + typeWords[x] + ". " }

// outcomes are what it gives for the probes, as one text. Equal functions have equal outcomes.
func (f function) outcomes() string {
	var s strings.Builder
	for _, x := range probes()[f[0].kind.from] {
		s.WriteString(literal(f.apply(x)))
		s.WriteByte('\n')
	}
	return s.String()
}

// testShare says that one function of so many is for tests.
const testShare = 5

// splitOf says what a function is for. It follows from its outcomes, so that no function for tests equals one for training,
// however both are written.
func splitOf(outcomes string) string {
	digest := sha256.Sum256([]byte("reprise/code/1 " + outcomes))
	if binary.BigEndian.Uint64(digest[:8])%testShare == 0 {
		return Test
	}
	return Train
}

// leastOutcomes is how many different values a function gives for the probes at least.
const leastOutcomes = 3

// useful reports whether a function is one to ask for: each of its steps has an effect, and it gives several values.
func (f function) useful(outcomes string) bool {
	different := map[string]bool{}
	for line := range strings.Lines(outcomes) {
		different[line] = true
	}
	if len(different) < leastOutcomes {
		return false
	}
	for at := range f {
		if shorter, ok := f.without(at); ok && shorter.outcomes() == outcomes {
			return false
		}
	}
	return true
}

// without is the function without a step, if the others fit together. No step at all gives x.
func (f function) without(at int) (function, bool) {
	if f[at].kind.from != f[at].kind.to {
		return nil, false
	}
	if len(f) == 1 {
		return function{{kind: identity[f[at].kind.from]}}, true
	}
	shorter := append(append(function{}, f[:at]...), f[at+1:]...)
	return shorter, true
}

// identity gives x itself: [types].
var identity = func() (of [4]*kind) {
	for t := range of {
		of[t] = &kind{from: typ(t), to: typ(t), expr: "x", do: func(v any, _ int) any { return v }}
	}
	return of
}()

// mutants are functions that differ in one step: it is missing, is another of its kind, or has a parameter beside its own.
func (f function) mutants() []function {
	var out []function
	with := func(at int, s step) {
		other := append(function{}, f...)
		other[at] = s
		out = append(out, other)
	}
	for at, s := range f {
		if shorter, ok := f.without(at); ok {
			out = append(out, shorter)
		}
		for _, other := range s.kind.alike() {
			with(at, step{other, s.n})
		}
		if bounds := ranges[s.kind.takes]; bounds.n > 1 {
			up := bounds.first + (s.n-bounds.first+1)%bounds.n
			down := bounds.first + (s.n-bounds.first+bounds.n-1)%bounds.n
			with(at, step{s.kind, up})
			with(at, step{s.kind, down})
		}
	}
	return out
}

// drawTries is how many functions are drawn until one is useful and in the split: far more than it ever takes.
const drawTries = 100_000

// draw draws a function of an x, of so many steps.
func drawFunction(r *rand.Rand, x typ, steps int, split string) function {
	for range drawTries {
		f := make(function, steps)
		now := x
		for i := range f {
			k := kindsFrom[now][r.IntN(len(kindsFrom[now]))]
			f[i] = step{k, ranges[k.takes].first + r.IntN(ranges[k.takes].n)}
			now = k.to
		}
		outcomes := f.outcomes()
		if (split == All || splitOf(outcomes) == split) && f.useful(outcomes) {
			return f
		}
	}
	panic(fmt.Sprintf("code: no function of %d steps in the split %s", steps, split))
}

// probesPurpose marks the stream of the probes. It is part of the bits of every run: never change it.
const probesPurpose draw.Purpose = "code/probes"

// probes are the inputs by which functions are compared: [types].
var probes = sync.OnceValue(func() (of [4][]any) {
	const n = 40
	of[number] = append(of[number], 0, 1, -1, 100)
	of[text] = append(of[text], "", "a", "abcde edcba")
	of[numbers] = append(of[numbers], []int{}, []int{3, 3, -2}, []int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0})
	for t := range of[:texts] {
		r := draw.Address{Purpose: probesPurpose, Group: int64(t)}.Rand()
		for len(of[t]) < n {
			of[t] = append(of[t], drawInput(r, typ(t)))
		}
	}
	return of
})

// drawInput draws an x.
func drawInput(r *rand.Rand, x typ) any {
	switch x {
	case number:
		return r.IntN(61) - 20
	case text:
		words := make([]string, 1+r.IntN(3))
		for i := range words {
			for range 1 + r.IntN(5) {
				words[i] += letterAt(r.IntN(5))
			}
		}
		return strings.Join(words, " ")
	case numbers:
		xs := make([]int, r.IntN(7))
		for i := range xs {
			xs[i] = r.IntN(30) - 9
			if i > 0 && r.IntN(4) == 0 {
				xs[i] = xs[i-1]
			}
		}
		return xs
	}
	panic(fmt.Sprintf("code: no inputs of type %d", x))
}
