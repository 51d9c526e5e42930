// Package batch holds what an update reads: rows of token ids, and columns with numbers for each token. A
// column is declared here, once. Who makes it puts it into a row by its name, batch.safetensors has what rows
// have, and a loss names the columns that it reads.
package batch

import "math"

// Column is a column.
type Column int

// The columns. Those of a step are made when rows are laid out, and not kept.
const (
	// OldLogProbs are Score's log-probs, in nats, of the version that the advantages were computed with.
	OldLogProbs Column = iota
	// Advantages have the weights of the selection in them.
	Advantages
	// Returns are what a second network learns, and OldValues what it said. Of a process reward model they are
	// the weights that preferences give its log-probs, and these.
	Returns
	OldValues
	// ReturnsMask is 1 where a critic learns Returns. Rows without it learn them at every sampled token.
	ReturnsMask
	// RefLogProbs are the reference's log-probs.
	RefLogProbs
	// RolloutLogProbs are the sampler's log-probs, from which mismatch weights are computed.
	RolloutLogProbs

	// Weights are the tokens' weights in a loss, which is the sum over the minibatch of weight times the
	// token's loss; see Weigh.
	Weights
	// ClipLow and ClipHigh bound the ratio of each token, so that turns can have different bounds.
	ClipLow
	ClipHigh
	// Turns are the turns of the tokens, from 1.
	Turns
	// Supervised is 1 at the tokens that are learned from by their log-likelihood. Their weights are theirs
	// alone.
	Supervised
	// KLCoefficients are those of the distance from the reference, of each token.
	KLCoefficients

	count
)

// About is what is known of a column.
type About struct {
	// Name is that of its tensor in batch.safetensors, and in errors.
	Name string
	// Kept says that rows have it, and so the file; the others are those of a step.
	Kept bool
	// Values says that a token has as many numbers as the critic has values, one after the other.
	Values bool
	// Valid reports whether a loss may read a number; nil: any number, finite or not.
	Valid func(float32) bool
}

// columns declares them.
var columns = [count]About{
	OldLogProbs:     {Name: "old_log_probs", Kept: true},
	Advantages:      {Name: "advantages", Kept: true},
	Returns:         {Name: "returns", Kept: true, Values: true},
	OldValues:       {Name: "old_values", Kept: true, Values: true},
	ReturnsMask:     {Name: "returns_mask", Kept: true, Values: true, Valid: flag},
	RefLogProbs:     {Name: "ref_log_probs", Kept: true},
	RolloutLogProbs: {Name: "rollout_log_probs", Kept: true},
	Weights:         {Name: "weights", Values: true, Valid: atLeastZero},
	ClipLow:         {Name: "clip_low", Valid: func(v float32) bool { return v >= 0 && v <= 1 }},
	ClipHigh:        {Name: "clip_high", Valid: atLeastZero},
	Turns:           {Name: "turns", Valid: func(v float32) bool { return v >= 1 }},
	Supervised:      {Name: "supervised", Valid: flag},
	KLCoefficients:  {Name: "kl_coefficients", Valid: atLeastZero},
}

// About is what is known of a column.
func (c Column) About() About { return columns[c] }

// String is the column's name.
func (c Column) String() string { return columns[c].Name }

// Columns are the columns of a micro-batch, [rows][tokens] each, or [rows][tokens·values]; nil for one that it
// does not have.
type Columns [count][][]float32

func atLeastZero(v float32) bool { return v >= 0 && !math.IsInf(float64(v), 0) }

func flag(v float32) bool { return v == 0 || v == 1 }

// Numbers are whole numbers of tokens as a column has them.
func Numbers(of []int32) []float32 {
	out := make([]float32, len(of))
	for t, v := range of {
		out[t] = float32(v)
	}
	return out
}

// Flags are marks of tokens as a column has them: 1 where they are true.
func Flags(of []bool) []float32 {
	out := make([]float32, len(of))
	for t, yes := range of {
		if yes {
			out[t] = 1
		}
	}
	return out
}
