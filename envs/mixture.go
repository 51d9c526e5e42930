package envs

import (
	"fmt"
	"math"
	"regexp"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Part is one environment of a mixture.
type Part struct {
	// Label names the part in metrics; "" is the environment's name.
	Label string
	// Environment is what the part's groups play.
	Environment Environment
	// Share of the groups; in a Mixture, shares add up to 1.
	Share float64
}

// Mixture is several environments in one run, each with its share of the groups.
// NewMixture makes one; the zero value has no parts and can play nothing.
type Mixture []Part

// Limits of a mixture.
const (
	// MaxParts is the most parts of a mixture.
	MaxParts = 32
	// MinShare is the least share of a part, of all.
	MinShare = 1e-6
)

var label = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// MixtureError is everything wrong with the parts of a mixture. The paths of its
// problems count parts from 0, as JSON does: "[1].share".
type MixtureError struct {
	Problems strict.Problems
}

func (e *MixtureError) Error() string { return "mixture: " + inLine(e.Problems) }

// NewMixture makes a mixture of one part or more: it fills in labels that are
// absent and divides the shares, of any positive size, by their sum. The parts are
// copied. Its error is a *MixtureError that names every problem.
func NewMixture(parts []Part) (Mixture, error) {
	var problems strict.Problems
	wrong := func(path, found, want string) {
		problems = append(problems, strict.Problem{Path: path, Found: found, Allowed: want})
	}
	if len(parts) < 1 || len(parts) > MaxParts {
		wrong("", fmt.Sprintf("%d parts", len(parts)), fmt.Sprintf("1 to %d", MaxParts))
	}
	m := make(Mixture, len(parts))
	copy(m, parts)
	first := map[string]int{}
	greatest := 0.0
	for i := range m {
		p := &m[i]
		at := fmt.Sprintf("[%d].", i)
		if p.Environment == nil {
			wrong(at+"environment", "none", "an environment")
		} else if p.Label == "" {
			p.Label = p.Environment.Name()
		}
		switch before, taken := first[p.Label]; {
		case p.Label == "":
		case !label.MatchString(p.Label):
			wrong(at+"label", strict.Shorten(string(encode(p.Label))), "1 to 64 letters, digits, dots, dashes and underscores, first a letter or digit")
		case taken:
			wrong(at+"label", strict.Shorten(string(encode(p.Label))), fmt.Sprintf("another one: it is [%d]'s", before))
		default:
			first[p.Label] = i
		}
		if !(p.Share > 0) || math.IsInf(p.Share, 0) {
			wrong(at+"share", fmt.Sprint(p.Share), "a positive number")
			continue
		}
		greatest = max(greatest, p.Share)
	}
	if len(problems) == 0 {
		// By the greatest first, so that no sum overflows.
		sum := 0.0
		for i := range m {
			m[i].Share /= greatest
			sum += m[i].Share
		}
		for i := range m {
			if m[i].Share /= sum; m[i].Share < MinShare {
				wrong(fmt.Sprintf("[%d].share", i), fmt.Sprint(parts[i].Share), fmt.Sprintf("at least %v of the sum of all shares", MinShare))
			}
		}
	}
	if len(problems) > 0 {
		return nil, &MixtureError{Problems: problems}
	}
	return m, nil
}

// Order gives the parts, by their index, that the first so many groups play: [groups]. It
// depends on the shares and the groups' numbers alone, so that a group drawn later
// continues where the ones before ended. After any number of groups each part's
// count is its share of them, rounded up or down: of 8 groups, two equal parts
// have exactly 4 each.
//
// Which part is next is Balinski and Young's quota method (The Quota Method of
// Apportionment, 1975), in integers: among the parts that are not ahead of their
// share, the one whose next group is due first.
func (m Mixture) Order(groups int) []int {
	var counts [MaxParts]int64
	q := m.quota(counts[:])
	order := make([]int, groups)
	for g := range order {
		order[g] = q.next()
	}
	return order
}

// Counts gives how many of the first so many groups each part has: [parts].
func (m Mixture) Counts(groups int) []int {
	counts := make([]int, len(m))
	for _, part := range m.Order(groups) {
		counts[part]++
	}
	return counts
}

// shareUnit is what a share of 1 is in integers: products with 2^26 groups stay
// within 63 bits, and rounding moves a part by less than one group in 2^36.
const shareUnit = 1 << 36

// quota hands out groups.
type quota struct {
	weights [MaxParts]int64
	total   int64   // of the weights
	counts  []int64 // [parts], handed out
	groups  int64   // all of them
}

func (m Mixture) quota(counts []int64) quota {
	q := quota{counts: counts[:len(m)]}
	for i, p := range m {
		q.weights[i] = int64(math.Round(p.Share * shareUnit))
		q.total += q.weights[i]
	}
	return q
}

func (q *quota) next() int {
	q.groups++
	best := -1
	for i, count := range q.counts {
		w := q.weights[i]
		if count*q.total >= q.groups*w {
			continue // ahead of its share
		}
		// Due when its share is a whole group more: at (count+1)/w.
		if best < 0 || (count+1)*q.weights[best] < (q.counts[best]+1)*w {
			best = i
		}
	}
	q.counts[best]++
	return best
}
