package mechanism

import (
	"fmt"
	"math"
)

// Figures set the advantages of a method beside the true ones, over all decisions: the first
// token of every turn. Â is the method's, A the true one, and c = Σ ÂA / ΣA² the method's unit:
// errors are of Â/c, in units of the root mean square of A. What the update does not
// learn from counts as Â = 0.
type Figures struct {
	// Scale is c.
	Scale float64
	// Bias is the root mean square, over decisions, of the mean of Â/c at the same
	// decision minus A.
	Bias float64
	// Tilt is the part of the bias that differs between the answers to one state. The rest, a
	// shift by state, does not change the expected gradient.
	Tilt float64
	// Noise is the root mean square, over decisions, of the deviation of Â/c at the same
	// decision.
	Noise float64
	// WrongSign is the share of other sign than A among the decisions with neither 0.
	WrongSign float64
	// Silent is the share with Â = 0 among the decisions with A ≠ 0.
	Silent float64
	// Direction is the mean cosine between a batch's gradient and the true one, in the policy's
	// logits.
	Direction float64
	// Tokens is how many tokens were sampled for each that a plain rollout of as many groups
	// samples.
	Tokens float64
}

// place is the index of a decision among all.
func (d Decision) place() int {
	return ((d.Lake*Turns+d.Turn)*cells+d.Cell)*Actions + d.Action
}

// judge collects the advantages of a method.
type judge struct {
	lakes []*Lake
	// n, sum and squares are of Â at each decision.
	n, sum, squares []float64
	wrong, signed   int
	silent, worth   int
	truth           []float64
	cosines         float64
	batches         int
	tokens          int
}

func newJudge(lakes []*Lake) *judge {
	places := Decision{Lake: len(lakes)}.place()
	return &judge{
		lakes: lakes, n: make([]float64, places), sum: make([]float64, places), squares: make([]float64, places),
		truth: trueGradient(lakes),
	}
}

// negligible is an advantage that is 0 but for rounding.
const negligible = 1e-9

// add takes a batch's advantages, [rows][tokens].
func (j *judge) add(b Batch, advantages [][]float64) error {
	gradient := make([]float64, len(j.truth))
	for row, turns := range b.Decisions {
		for k, d := range turns {
			if b.TrainFrom != nil && k < b.TrainFrom[row] {
				continue
			}
			l := j.lakes[d.Lake]
			estimate, truth := advantages[row][b.Turns[row][k].From], l.Advantage(d.Turn, d.Cell, d.Action)
			if math.IsNaN(estimate) || math.IsInf(estimate, 0) {
				return fmt.Errorf("row %d, turn %d has advantage %v", row, k, estimate)
			}
			at := d.place()
			j.n[at]++
			j.sum[at] += estimate
			j.squares[at] += float64(estimate * estimate)
			if math.Abs(truth) > negligible {
				j.worth++
				switch {
				case math.Abs(estimate) <= negligible:
					j.silent++
				case estimate*truth < 0:
					j.wrong++
					j.signed++
				default:
					j.signed++
				}
			}
			l.addScore(gradient, d, estimate)
		}
	}
	j.cosines += cosine(gradient, j.truth)
	j.batches++
	j.tokens += b.sampled()
	return nil
}

// figures are those of all batches.
func (j *judge) figures() Figures {
	var n, own, across float64
	for at := range j.n {
		truth := j.advantage(at)
		n += j.n[at]
		own += float64(j.n[at] * truth * truth)
		across += float64(j.sum[at] * truth)
	}
	f := Figures{
		Scale: across / own, WrongSign: float64(j.wrong) / float64(max(j.signed, 1)),
		Silent: float64(j.silent) / float64(max(j.worth, 1)), Direction: j.cosines / float64(max(j.batches, 1)),
	}
	var bias, tilt, noise, chance float64
	for state := 0; state < len(j.n); state += Actions {
		var seen, shift float64
		off := make([]float64, Actions)
		for a := range off {
			at := state + a
			if j.n[at] == 0 {
				continue
			}
			mean := j.sum[at] / j.n[at]
			off[a] = mean/f.Scale - j.advantage(at)
			spread := (j.squares[at] - float64(j.n[at]*mean*mean)) / float64(f.Scale*f.Scale)
			bias += float64(j.n[at] * off[a] * off[a])
			noise += spread
			chance += spread / j.n[at]
			seen += j.n[at]
			shift += float64(j.n[at] * off[a])
		}
		for a, o := range off {
			if j.n[state+a] > 0 {
				o -= shift / seen
				tilt += float64(j.n[state+a] * o * o)
			}
		}
	}
	// The mean of a finite number of estimates is off by chance, by its variance on average.
	root := func(squares float64) float64 { return math.Sqrt(max(squares, 0) / own) }
	f.Bias, f.Tilt, f.Noise = root(bias-chance), root(tilt-chance), root(noise)
	return f
}

// advantage is the true one of the decision with this index.
func (j *judge) advantage(at int) float64 {
	action, at := at%Actions, at/Actions
	cell, at := at%cells, at/cells
	return j.lakes[at/Turns].Advantage(at%Turns, cell, action)
}

// addScore adds an answer's advantage times the gradient of its log-probability in the logits of
// its cell, [lakes × cells × Actions].
func (l *Lake) addScore(gradient []float64, d Decision, advantage float64) {
	at := (d.Lake*cells + d.Cell) * Actions
	for a, p := range l.policy[d.Cell] {
		gradient[at+a] -= float64(advantage * p)
	}
	gradient[at+d.Action] += advantage
}

// trueGradient is the gradient of the mean return over the lakes in the policy's logits.
func trueGradient(lakes []*Lake) []float64 {
	out := make([]float64, len(lakes)*cells*Actions)
	for of, l := range lakes {
		for k, reached := range l.reached {
			for at, begins := range reached {
				for action, p := range l.policy[at] {
					l.addScore(out, Decision{of, k, at, action}, float64(begins*p*l.Advantage(k, at, action)))
				}
			}
		}
	}
	return out
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i] * b[i])
		aa += float64(a[i] * a[i])
		bb += float64(b[i] * b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}
