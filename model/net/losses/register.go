package losses

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Register adds the computation of a surrogate that a program links when it starts, and its entry to the table of
// terms. compute gives the loss of each token before its weight, its derivative by the token's log-prob (nil leaves it to
// the compiler), and whether a bound acted.
func Register(entry terms.Term, compute func(Tokens) (value, slope, bound *graph.Node)) error {
	if compute == nil {
		return fmt.Errorf("surrogate %q has no computation", entry.Name)
	}
	if err := terms.Register(entry); err != nil {
		return fmt.Errorf("surrogate %q %w", entry.Name, err)
	}
	add(terms.Surrogate, entry.Name, surrogate(compute))
	return nil
}
