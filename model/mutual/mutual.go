// Package mutual estimates how much information a policy's reasoning contains about its
// prompt: the diagnostics of RAGEN-2 (arXiv 2604.06268, and the program RAGEN v2,
// collapse_metrics). Reasoning may vary and still not depend on the prompt. This is
// template collapse, which entropy does not show: entropy is high and mutual information
// low. Low entropy is entropy collapse.
//
// For reasonings z_i, each sampled from its own prompt, and prompts x_j, the policy
// computes ℓ_j(z_i) = log p(z_i | x_j), the sum over the tokens of z_i. With the
// mixture of N prompts p(z) = 1/N Σ_j p(z | x_j), and c(i) the prompt of z_i,
//
//	matched_i  = ℓ_c(i)(z_i)
//	marginal_i = log Σ_j exp ℓ_j(z_i) − log N
//	I(X; Z)    ≈ mean_i (matched_i − marginal_i)
//	H(Z | X)   ≈ −mean_i matched_i
//	H(Z)       ≈ −mean_i marginal_i
//
// in nats. The estimate of I is at most log N and may be slightly negative by chance.
// Each figure is computed twice: from the sums ("seq"), and from ℓ divided by the number
// of tokens of z_i, so that long reasonings do not dominate. The latter are RAGEN's
// mi_estimate and so on, without "seq" in the name.
package mutual

import (
	"errors"
	"fmt"
	"math"
)

// ErrInput says that Estimate cannot use the numbers.
var ErrInput = errors.New("unusable input")

// Cross are the log-probs of reasonings under prompts.
type Cross struct {
	// LogProbs is log p(z_i | x_j), summed over tokens, in nats, [reasonings][prompts]
	// with at least one reasoning and two prompts. −Inf is allowed except for a
	// reasoning's own prompt; NaN and +Inf are not.
	LogProbs [][]float64
	// Lengths are the tokens of each reasoning, at least 1, [reasonings].
	Lengths []int
	// Own is the index of the prompt that each reasoning was sampled from, [reasonings].
	Own []int
	// Same has equal numbers for equal prompts, [prompts]. Retrieving any prompt equal
	// to the own one is correct. Nil means that all prompts differ.
	Same []int
}

// Ks are the k of retrieval accuracy @k.
var Ks = [...]int{1, 2, 4, 8}

// Retrieval measures how well the prompt can be identified from the reasoning.
type Retrieval struct {
	// K is the k of accuracy@k.
	K int
	// Accuracy is the share of reasonings whose own prompt is among the k prompts
	// under which they are most probable. Equally probable prompts rank in their
	// order. k is at most the number of prompts.
	Accuracy float64
	// Chance is the accuracy of guessing: k times the mean share of correct prompts,
	// at most 1, as in RAGEN (exact if all prompts differ).
	Chance float64
}

// Information is one of the two kinds of figures, all in nats except the z-score.
type Information struct {
	// MI estimates the mutual information of prompt and reasoning.
	MI float64
	// ConditionalEntropy estimates the entropy of the reasoning given the prompt.
	ConditionalEntropy float64
	// ReasoningEntropy estimates the entropy of the reasoning.
	ReasoningEntropy float64
	// MarginalStd is the standard deviation (n) of marginal_i.
	MarginalStd float64
	// ZScore is MI / (MarginalStd + Epsilon). It can be compared between runs whose
	// log-probs have different standard deviations.
	ZScore float64
}

// Figures are the results of Estimate.
type Figures struct {
	// Token is of log-probs divided by length, Seq of their sums.
	Token, Seq Information
	// UpperBound is the upper bound of both MIs, log N.
	UpperBound float64
	// Retrieval is the accuracy for each of Ks. It is the same for Token and Seq,
	// because they rank the prompts of a reasoning alike.
	Retrieval [len(Ks)]Retrieval
}

// Epsilon keeps z-scores finite (RAGEN v2's default).
const Epsilon = 1e-3

// Estimate computes the figures of a matrix of log-probs, or ErrInput.
func Estimate(c Cross) (Figures, error) {
	if err := c.check(); err != nil {
		return Figures{}, fmt.Errorf("mutual information: %w", err)
	}
	prompts := len(c.LogProbs[0])
	perToken := make([][]float64, len(c.LogProbs))
	for i, row := range c.LogProbs {
		perToken[i] = make([]float64, prompts)
		for j, l := range row {
			perToken[i][j] = l / float64(c.Lengths[i])
		}
	}
	return Figures{
		Token:      information(perToken, c.Own),
		Seq:        information(c.LogProbs, c.Own),
		UpperBound: math.Log(float64(prompts)),
		Retrieval:  c.retrieval(),
	}, nil
}

func information(logProbs [][]float64, own []int) Information {
	var matched float64
	marginals := make([]float64, len(logProbs))
	for i, row := range logProbs {
		matched += row[own[i]]
		marginals[i] = logSumExp(row) - math.Log(float64(len(row)))
	}
	matched /= float64(len(logProbs))
	marginal, deviation := spread(marginals)
	info := Information{
		MI: matched - marginal, ConditionalEntropy: -matched, ReasoningEntropy: -marginal, MarginalStd: deviation,
	}
	info.ZScore = info.zScore(deviation)
	return info
}

// zScore is the MI in units of a standard deviation, which equals the mean of (matched −
// marginal) / deviation.
func (n Information) zScore(deviation float64) float64 { return n.MI / (deviation + Epsilon) }

// logSumExp is log Σ exp xs, shifted by the largest number so that nothing overflows. At
// least one of xs is not −Inf.
func logSumExp(xs []float64) float64 {
	most := math.Inf(-1)
	for _, x := range xs {
		most = max(most, x)
	}
	var sum float64
	for _, x := range xs {
		sum += math.Exp(x - most)
	}
	return most + math.Log(sum)
}

// spread is the mean and the standard deviation (n) of xs.
func spread(xs []float64) (mean, deviation float64) {
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	var squares float64
	for _, x := range xs {
		squares += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(squares / float64(len(xs)))
}

func (c Cross) check() error {
	switch {
	case len(c.LogProbs) == 0:
		return fmt.Errorf("no reasonings: %w", ErrInput)
	case len(c.LogProbs[0]) < 2:
		return fmt.Errorf("%d prompts, 2 are needed: %w", len(c.LogProbs[0]), ErrInput)
	case len(c.Lengths) != len(c.LogProbs) || len(c.Own) != len(c.LogProbs):
		return fmt.Errorf("%d reasonings, %d lengths, %d own prompts: %w", len(c.LogProbs), len(c.Lengths), len(c.Own), ErrInput)
	case c.Same != nil && len(c.Same) != len(c.LogProbs[0]):
		return fmt.Errorf("%d prompts, %d classes of equal ones: %w", len(c.LogProbs[0]), len(c.Same), ErrInput)
	}
	for i, row := range c.LogProbs {
		switch {
		case len(row) != len(c.LogProbs[0]):
			return fmt.Errorf("reasoning %d has %d log-probs, the first has %d: %w", i, len(row), len(c.LogProbs[0]), ErrInput)
		case c.Lengths[i] < 1:
			return fmt.Errorf("reasoning %d has %d tokens: %w", i, c.Lengths[i], ErrInput)
		case c.Own[i] < 0 || c.Own[i] >= len(row):
			return fmt.Errorf("reasoning %d has prompt %d of %d: %w", i, c.Own[i], len(row), ErrInput)
		case math.IsInf(row[c.Own[i]], -1):
			return fmt.Errorf("reasoning %d is impossible under its own prompt: %w", i, ErrInput)
		}
		for j, l := range row {
			if math.IsNaN(l) || math.IsInf(l, 1) {
				return fmt.Errorf("reasoning %d has log-prob %v under prompt %d: %w", i, l, j, ErrInput)
			}
		}
	}
	return nil
}
