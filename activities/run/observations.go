package run

import (
	"slices"

	"github.com/reprise-rl/reprise/model/batch"
)

// Observations gives each row that an iteration's own rollout left, if an environment answered in it, a supervised row of
// the same ids, of which the answers are learned: the tokens behind the first sampled one that were not sampled (ECHO,
// prime-rl's EchoAlgorithm). A first prompt is no answer, and neither is what a window shows again of earlier turns, which
// begins a row. Its turns are those that begin with the answers. origin is the rollout's iteration: replayed rows
// have none.
//
// The loss is what ECHO adds, the mean over these tokens of −log π times the coefficient (Imitate): a row of its own has
// the same context, so that the columns of the loss stay what they are, at the cost of a second pass over the row.
//
// Differences from prime-rl: the mean is over a minibatch's tokens, where prime-rl's is over a step's, of which there is one; every
// token that the environment put there is learned, with the frame that the wording gives it, as there with a renderer
// that does not tell a message's body; all roles of messages have one coefficient; −log π is at the temperature of sampling.
func Observations(rows []batch.Row, origin int) []batch.Row {
	var out []batch.Row
	for _, r := range rows {
		if r.Supervised || int(r.Origin) != origin {
			continue
		}
		observed, turns := make([]bool, len(r.IDs)), make([]int32, len(r.IDs))
		var last int32
		for t := range r.Length {
			last = max(last, r.Turns[t])
			observed[t] = last > 0 && r.Turns[t] == 0
		}
		if !slices.Contains(observed, true) {
			continue
		}
		next := last
		for t := r.Length - 1; t >= 0; t-- {
			if r.Turns[t] > 0 {
				next = r.Turns[t]
			} else if observed[t] {
				turns[t] = next
			}
		}
		out = append(out, batch.Row{
			Row: r.Row, Origin: r.Origin, IDs: r.IDs, Length: r.Length, Mask: observed, Turns: turns, Supervised: true, Columns: r.Columns.Blank(),
		})
	}
	return out
}
