package study

import (
	"cmp"
	"math"
	"slices"
)

// Lure is the mean payout of the high arm in the groups that selection by the standard
// deviation of rewards keeps, that is, the value of the arm as the update sees it. It is
// above the true mean, since groups with a lucky member vary most.
//
// Groups have size episodes each; the keep groups with the largest sample standard
// deviation of rewards are kept (arXiv 2504.20073, section 4.3). The policy chooses the
// high arm with probability share, the low arm otherwise. The result is exact: every
// number of high arms and payouts in a group is weighted by its probability, and ties are
// broken uniformly. It is NaN for a share of 0.
func (s Setting) Lure(share float64, groups, size, keep int) float64 {
	cases := s.cases(share, size)
	slices.SortFunc(cases, func(a, b groupCase) int { return cmp.Compare(b.deviation, a.deviation) })
	var paid, pulled, above float64
	for from := 0; from < len(cases); {
		to, mass := from, 0.0
		for ; to < len(cases) && cases[to].deviation == cases[from].deviation; to++ {
			mass += cases[to].probability
		}
		kept := keptShare(above, mass, groups, keep)
		for _, c := range cases[from:to] {
			paid += float64(c.probability * kept * c.wins * HighReward)
			pulled += float64(c.probability * kept * c.high)
		}
		above += mass
		from = to
	}
	return paid / pulled
}

// groupCase is one possible outcome of a group.
type groupCase struct {
	// high is the number of members that choose the high arm, wins how many of them are paid.
	high, wins, probability, deviation float64
}

// cases lists the possible outcomes of a group of size episodes.
func (s Setting) cases(share float64, size int) []groupCase {
	var out []groupCase
	for high := 0; high <= size; high++ {
		chosen := binomial(size, high, share)
		for wins := 0; wins <= high; wins++ {
			paid := binomial(high, wins, s.Probability)
			if s.Shared {
				switch {
				case high == 0:
					paid = 1
				case wins == high:
					paid = s.Probability
				case wins == 0:
					paid = 1 - s.Probability
				default:
					paid = 0
				}
			}
			c := groupCase{high: float64(high), wins: float64(wins), probability: float64(chosen * paid)}
			n, low := float64(size), float64(size-high)
			mean := (float64(c.wins*HighReward) + float64(low*LowReward)) / n
			squares := float64(c.wins*(HighReward-mean)*(HighReward-mean)) +
				float64(low*(LowReward-mean)*(LowReward-mean)) + float64((c.high-c.wins)*mean*mean)
			// Rounded, so that equal standard deviations compare equal.
			c.deviation = math.Round(1e9*math.Sqrt(squares/(n-1))) / 1e9
			if c.probability > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

// keptShare is the probability that a group is kept if each of the other groups−1 has a
// larger standard deviation with probability above and an equal one with probability
// equal.
func keptShare(above, equal float64, groups, keep int) float64 {
	sum := 0.0
	others := groups - 1
	for larger := 0; larger < keep && larger <= others; larger++ {
		rest := others - larger
		for ties := 0; ties <= rest; ties++ {
			conditional := 0.0 // of a tie, for those that are not larger
			if above < 1 {
				conditional = min(1, equal/(1-above))
			}
			p := float64(binomial(others, larger, above) * binomial(rest, ties, conditional))
			sum += float64(p * min(1, float64(keep-larger)/float64(ties+1)))
		}
	}
	return sum
}

// binomial is the probability of k successes in n trials.
func binomial(n, k int, p float64) float64 {
	ways := 1.0
	for i := range k {
		ways = ways * float64(n-i) / float64(i+1)
	}
	return float64(ways * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k)))
}
