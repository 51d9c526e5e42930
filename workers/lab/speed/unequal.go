package speed

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// UnequalGoal is the least share of longest over mean length that sampling rows of unequal
// lengths has to gain on transformers, whose batches last as long as their longest rows.
const UnequalGoal = 0.8

// GroupRows is how many rows of a group have one prompt.
const GroupRows = 16

// stop is the id that ends a row. Drawing a uniform of 0 gives the lowest id.
const stop = 0

// lengths are how many tokens are sampled for each row of a block, drawn evenly from an eighth of
// NewTokens, at least 1, to NewTokens.
func (s Shape) lengths() []int {
	out := make([]int, s.BlockRows)
	least := max(1, s.NewTokens/8)
	for row := range out {
		r := draw.Address{Purpose: draw.Sample, Member: int64(row), Turn: 2}.Rand()
		out[row] = least + r.IntN(s.NewTokens-least+1)
	}
	return out
}

// spread is the longest of the lengths over their mean.
func spread(lengths []int) float64 {
	return float64(slices.Max(lengths)*len(lengths)) / float64(sum(lengths))
}

func sum(lengths []int) (total int) {
	for _, n := range lengths {
		total += n
	}
	return total
}

// unequal is the input that samples rows of those lengths. A row's uniforms force its length: that
// of its last token is 0, which draws the stop id, and the others are from ½ to ¾, which
// draws another id unless the policy gives the stop id half of the probability. So many neighbours as
// group have one prompt.
func (s *subject) unequal(lengths []int, group int) model.GenerateInput {
	in := model.GenerateInput{Temperature: 1, Stop: []int32{stop}}
	for row, length := range lengths {
		u := make([]float32, s.Shape.NewTokens)
		draw.Address{Purpose: draw.Sample, Member: int64(row), Turn: 3}.Uniforms(u)
		for i := range u {
			u[i] = 0.5 + u[i]/4 // adding half of it may round to 1
		}
		u[length-1] = 0
		in.Uniforms = append(in.Uniforms, u)
		in.Prompts = append(in.Prompts, s.prompt(row/group))
	}
	return in
}

// checkLengths reports a row that was not sampled at its length.
func checkLengths(rows [][]int32, lengths []int) error {
	for row, tokens := range rows {
		if len(tokens) != lengths[row] {
			return fmt.Errorf("row %d has %d tokens, %d were to be sampled", row, len(tokens), lengths[row])
		}
	}
	return nil
}
