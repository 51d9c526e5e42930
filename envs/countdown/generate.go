package countdown

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
)

// instance is what the members of a group share.
type instance struct {
	numbers []int64 // as they are listed
	target  int64
	// solution is an expression that reaches the target: the one it was made from.
	solution string
}

// generator draws instances.
type generator struct {
	minNumbers, maxNumbers int
	maxNumber, maxTarget   int
	operators              string // of the solution
	split                  string
}

// attempts is how many expressions are drawn before an instance is given up; with
// the default options a few are enough.
const attempts = 10_000

// generate draws numbers and combines them into one value, until it is a target
// and the instance belongs to the split. It is solvable by construction.
func (g generator) generate(addr draw.Address) (instance, bool) {
	r := addr.Rand()
	for range attempts {
		numbers := make([]int64, g.minNumbers+r.IntN(g.maxNumbers-g.minNumbers+1))
		for i := range numbers {
			numbers[i] = 1 + r.Int64N(int64(g.maxNumber))
		}
		whole, ok := g.combine(numbers, r)
		if !ok || whole.value < 1 || whole.value > int64(g.maxTarget) {
			continue
		}
		in := instance{numbers: numbers, target: whole.value, solution: whole.text}
		if g.split == All || g.split == in.split() {
			return in, true
		}
	}
	return instance{}, false
}

// part is an expression of some of the numbers. The value is whole, and below
// the product of the numbers plus one each: within an int64 for all options.
type part struct {
	value int64
	text  string
	level int
}

// Levels of a part: what its outermost operators are.
const (
	number  = iota
	product // * or /
	sum     // + or -
)

// combine puts two parts together until there is one. It is not ok if a division leaves a
// remainder.
func (g generator) combine(numbers []int64, r *rand.Rand) (part, bool) {
	parts := make([]part, len(numbers))
	for i, n := range numbers {
		parts[i] = part{value: n, text: strconv.FormatInt(n, 10)}
	}
	for len(parts) > 1 {
		at := r.IntN(len(parts))
		left := parts[at]
		parts = slices.Delete(parts, at, at+1)
		at = r.IntN(len(parts))
		joined, ok := join(g.operators[r.IntN(len(g.operators))], left, parts[at])
		if !ok {
			return part{}, false
		}
		parts[at] = joined
	}
	return parts[0], true
}

func join(operator byte, left, right part) (part, bool) {
	p := part{level: sum}
	switch operator {
	case '+':
		p.value = left.value + right.value
	case '-':
		p.value = left.value - right.value
		right.wrap(sum)
	case '*':
		p.value, p.level = left.value*right.value, product
		left.wrap(sum)
		right.wrap(sum)
	case '/':
		if right.value == 0 || left.value%right.value != 0 {
			return part{}, false
		}
		p.value, p.level = left.value/right.value, product
		left.wrap(sum)
		right.wrap(product)
	}
	p.text = left.text + string(operator) + right.text
	return p, true
}

// wrap puts parentheses around a part of a level or a higher one.
func (p *part) wrap(level int) {
	if p.level >= level {
		p.text = "(" + p.text + ")"
	}
}

// Splits of the instances.
const (
	Train = "train"
	Test  = "test"
	All   = "all"
)

// testShare is the part of all instances that are for tests: one of so many.
const testShare = 8

// split says what an instance is for. It depends on the target and the numbers
// alone, whatever their order: the same task is never in both.
func (in instance) split() string {
	sorted := slices.Sorted(slices.Values(in.numbers))
	digest := sha256.Sum256(fmt.Appendf(nil, "reprise/countdown/1 %d %d", sorted, in.target))
	if binary.BigEndian.Uint64(digest[:8])%testShare == 0 {
		return Test
	}
	return Train
}

func (in instance) list() string {
	texts := make([]string, len(in.numbers))
	for i, n := range in.numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, ", ")
}
