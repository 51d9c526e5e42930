package search

import "fmt"

// Uncertainty is what ARPO reads of a row after a tool's answer.
type Uncertainty struct {
	// First is the entropy of the row's first tokens (at most 20), Now that of the
	// first tokens after the answer: both from the top log-probs, divided by the logarithm of
	// the vocabulary's size.
	First, Now float64
	// Draw is uniform on [0, 1).
	Draw float64
}

// Branches decides which rows branch after a tool's answer: those that have become less certain
// do so more often (ARPO, arXiv 2507.19849). A row branches if
//
//	clamp(u − w·(H − H₀), 0, 1) ≤ p
//
// weight is w (authors: 0.2), probability p (0.5). compared, [rows], is the left side. Rows of one
// turn are to be taken in the order of members: then the last free slot does not depend on
// which row finishes first. The authors' code draws u from an unseeded generator.
//
// Errors are of kind ErrInput.
func Branches(rows []Uncertainty, weight, probability float64) (compared []float64, branch []bool, err error) {
	if !finite(weight) || !(probability >= 0 && probability <= 1) {
		return nil, nil, fmt.Errorf("%w: an entropy weight of %v and a probability of %v", ErrInput, weight, probability)
	}
	compared, branch = make([]float64, len(rows)), make([]bool, len(rows))
	for i, row := range rows {
		if !finite(row.First) || !finite(row.Now) || !(row.Draw >= 0 && row.Draw < 1) {
			return nil, nil, fmt.Errorf("%w: row %d has entropies of %v and %v, and draws %v", ErrInput, i, row.First, row.Now, row.Draw)
		}
		compared[i] = min(max(row.Draw-float64(weight*(row.Now-row.First)), 0), 1)
		branch[i] = compared[i] <= probability
	}
	return compared, branch, nil
}
