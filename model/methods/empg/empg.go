package empg

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// EMPG's options.
var (
	entropyGain = option.Option{
		Section: option.Credit, Name: "entropy_gain", Default: 1, High: 100, Above: true, Source: "EMPG (arXiv 2509.09265)",
		Doc: "How strongly a turn's entropy scales its advantage (%s): by e^(−entropy_gain × h), where h is 0 for the smallest entropy of the " +
			"batch and 1 for the largest.",
	}
	futureGain = option.Option{
		Section: option.Credit, Name: "future_gain", Default: 1, High: 100, Above: true, Source: "EMPG",
		Doc: "How strongly the entropy of the next turn reduces the bonus `credit.clarity` (%s).",
	}
	clarity = option.Option{
		Section: option.Credit, Name: "clarity", Default: 0.1, High: 100, Above: true, Source: "EMPG",
		Doc: "The bonus of a turn whose next turn has the smallest entropy of the batch (%s).",
	}
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "empg", By: "the group, turn by turn scaled by how certain the policy was (EMPG)",
	Formula: "A_k = A·g(h_k) + ζ·e^{−k′·h_{k+1}} − mean, A = GRPO's", Paper: "EMPG, arXiv 2509.09265", File: "empg/empg.go",
	Compares: true, DropsFlat: true, ReadsEntropies: true,
	Reads: []string{"normalize_by_std", "epsilon", "floor"}, Own: []option.Option{entropyGain, futureGain, clarity},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		rows, err := credit.GRPO(in.Returns, in.Groups, o)
		if err != nil {
			return nil, nil, err
		}
		return in.ByTurn(EMPG(rows, in.Entropies, Modulation{
			Gain: entropyGain.Number(o.Own), FutureGain: futureGain.Number(o.Own), Clarity: clarity.Number(o.Own),
		}))
	},
}

// Modulation are the knobs of EMPG.
type Modulation struct {
	// Gain is k, how strongly a turn's own entropy scales its advantage (the listing of the
	// authors' page: 1).
	Gain float64
	// FutureGain is k′, how strongly the next turn's entropy reduces the bonus (1).
	FutureGain float64
	// Clarity is ζ, the bonus for a next turn of the smallest entropy (0.1).
	Clarity float64
}

// EMPG scales a trajectory's advantage turn by turn: a confident turn moves the policy more,
// an uncertain one less, and a turn that leads to a confident one gets a bonus
// (entropy-modulated policy gradients, arXiv 2509.09265). With H_k the mean entropy
// of a turn's sampled tokens and h its place between the smallest and the largest of the batch,
//
//	h_k = (H_k − min H) / (max H − min H)
//	g_k = e^{−k·h_k} / mean(e^{−k·h})
//	A_k ← A·g_k + ζ·e^{−k′·h_{k+1}}, without the bonus at the last turn
//	A_k ← A_k − mean(A)
//
// where min, max and means are over all turns of the batch. If all entropies are equal, h is 0.
//
// advantages: [rows], any algorithm's of trajectories (paper: GRPO's and DAPO's). entropies:
// [rows][turns], in nats. The result, [rows][turns], applies to every sampled token of the
// turn (OverTurns).
//
// The authors' text does not say whether the last mean is over turns or tokens; here it is over
// turns. Its values for the experiments are not published: the defaults are those of the
// listing on their page.
//
// Errors are of kind ErrRewards (an advantage), ErrNotFinite (an entropy) or ErrInput.
func EMPG(advantages []float64, entropies [][]float64, m Modulation) ([][]float64, error) {
	out, err := modulated(advantages, entropies, m)
	if err != nil {
		return nil, err
	}
	var sum float64
	n := 0
	for _, turns := range out {
		for _, a := range turns {
			sum += a
			n++
		}
	}
	for _, turns := range out {
		for k := range turns {
			turns[k] -= sum / float64(n)
		}
	}
	return out, nil
}

// modulated is EMPG before the mean is subtracted.
func modulated(advantages []float64, entropies [][]float64, m Modulation) ([][]float64, error) {
	if err := credit.Check(advantages, "rows of entropies", len(entropies)); err != nil {
		return nil, err
	}
	for _, k := range []struct {
		name string
		v    float64
	}{{"Gain", m.Gain}, {"FutureGain", m.FutureGain}, {"Clarity", m.Clarity}} {
		if !(k.v >= 0) || !credit.Finite(k.v) {
			return nil, fmt.Errorf("%w: %s is %v, must be at least 0", credit.ErrInput, k.name, k.v)
		}
	}
	places, err := entropyPlaces(entropies)
	if err != nil {
		return nil, err
	}
	scaling := entropyScaling(places, m.Gain)
	for row, turns := range scaling {
		for k := range turns {
			turns[k] *= advantages[row]
			if k+1 < len(turns) {
				turns[k] += float64(m.Clarity * math.Exp(-m.FutureGain*places[row][k+1]))
			}
		}
	}
	return scaling, nil
}

// entropyPlaces gives each entropy's place between the batch's smallest, 0, and largest, 1.
func entropyPlaces(entropies [][]float64) ([][]float64, error) {
	least, most := math.Inf(1), math.Inf(-1)
	for row, turns := range entropies {
		for k, h := range turns {
			if !credit.Finite(h) {
				return nil, fmt.Errorf("%w: the entropy of row %d, turn %d is %v", credit.ErrNotFinite, row, k, h)
			}
			least, most = min(least, h), max(most, h)
		}
	}
	out := make([][]float64, len(entropies))
	for row, turns := range entropies {
		out[row] = make([]float64, len(turns))
		for k, h := range turns {
			if most > least {
				out[row][k] = (h - least) / (most - least)
			}
		}
	}
	return out, nil
}

// entropyScaling is g: e^{−gain·place} over its mean of all turns.
func entropyScaling(places [][]float64, gain float64) [][]float64 {
	var sum float64
	n := 0
	out := make([][]float64, len(places))
	for row, turns := range places {
		out[row] = make([]float64, len(turns))
		for k, h := range turns {
			out[row][k] = math.Exp(-gain * h)
			sum += out[row][k]
			n++
		}
	}
	for _, turns := range out {
		for k := range turns {
			turns[k] /= sum / float64(n)
		}
	}
	return out
}
