// Package diversity measures how much the texts of a group's members differ. When a policy
// falls into the echo trap (RAGEN, arXiv 2504.20073, section 4.2), they become the same.
//
// A member is the sequence of its sampled tokens, all turns one after the other. Tokens
// may have any comparable type, such as token ids or the words of a text. Compare figures
// of token ids only between runs with the same tokenizer. Everything is counted in the
// order of the members, so that the same rows give the same bits.
package diversity

import (
	"math"
)

// Figures are means over the groups of an iteration, in the order of the groups.
type Figures struct {
	// Distinct is distinct-1, -2 and -3 (see grams.distinct). It is NaN if no group has an
	// n-gram of that length.
	Distinct [3]float64
	// Similarity is the similarity of bigrams (see similarity). It is NaN if no group has
	// two members.
	Similarity float64
}

// SimilarityOrder is the length of the n-grams that Measure compares. Bigrams depend on
// word order, but still occur in several texts that are not copies.
const SimilarityOrder = 2

// Measure computes the figures of groups, [groups][members][tokens].
func Measure[T comparable](groups [][][]T) Figures {
	var distinct [3]average
	var similar average
	for _, group := range groups {
		g := count(group, len(distinct))
		for n := range distinct {
			distinct[n].add(g[n].distinct())
		}
		similar.add(similarity(group, g[SimilarityOrder-1]))
	}
	f := Figures{Similarity: similar.value()}
	for n := range distinct {
		f.Distinct[n] = distinct[n].value()
	}
	return f
}

// average is the mean of the values that are not NaN.
type average struct {
	sum float64
	n   int
}

func (a *average) add(x float64) {
	if !math.IsNaN(x) {
		a.sum += x
		a.n++
	}
}

func (a *average) value() float64 {
	if a.n == 0 {
		return math.NaN()
	}
	return a.sum / float64(a.n)
}
