package model

import "github.com/reprise-rl/reprise/model/loss"

// ValueOptions are the knobs of the critic's loss.
type ValueOptions struct {
	// Clip bounds how far a value moves from the old one, in units of the return;
	// 0 turns it off (verl and RAGEN: 0.5).
	Clip float64
	// Aggregation is how tokens are averaged (verl: token_mean); Divisor is
	// loss.Constant's.
	Aggregation loss.Aggregation
	Divisor     float64
}

// ValueBatch is a minibatch, [rows][tokens].
type ValueBatch struct {
	// Values are computed with the current parameters. OldValues are the values that
	// the advantages were computed with; they may be nil if Clip is 0. Returns are the
	// targets, from package credit.
	Values, OldValues, Returns [][]float64
	Mask                       [][]bool
	// RowWeights: [rows], see loss.Weights.
	RowWeights []float64
}

// ValueLoss is the critic's loss with its gradient.
type ValueLoss struct {
	Loss float64
	// ClipFraction is the fraction of tokens whose clipped error is strictly the
	// greater (verl's vf_clipfrac).
	ClipFraction float64
	// ByValue is the derivative of Loss: [rows][tokens].
	ByValue [][]float64
}

// referenceValue is the reference of terms.Squared, which trains. It computes the
// critic's clipped loss (verl's compute_value_loss, after OpenAI's PPO2):
//
//	L = ½·Σ w·max((V − G)², (clip(V, V_old − ε, V_old + ε) − G)²)
//
// w is the token's weight (loss.Weights). If both errors are equal, the gradient is that
// of the unclipped one. Errors are of kind loss.ErrInput.
func referenceValue(b ValueBatch, o ValueOptions) (ValueLoss, error) {
	if err := loss.CheckAtLeast("Clip", o.Clip, 0); err != nil {
		return ValueLoss{}, err
	}
	if err := loss.CheckShape("values", b.Values, b.Mask); err != nil {
		return ValueLoss{}, err
	}
	if err := loss.CheckShape("returns", b.Returns, b.Mask); err != nil {
		return ValueLoss{}, err
	}
	if o.Clip > 0 {
		if err := loss.CheckShape("old values", b.OldValues, b.Mask); err != nil {
			return ValueLoss{}, err
		}
	}
	weights, err := loss.Weights(b.Mask, b.RowWeights, o.Aggregation, o.Divisor)
	if err != nil {
		return ValueLoss{}, err
	}
	means, err := loss.Weights(b.Mask, b.RowWeights, loss.TokenMean, 0)
	if err != nil {
		return ValueLoss{}, err
	}
	l := ValueLoss{ByValue: loss.Zeros(b.Mask)}
	for row, sampled := range b.Mask {
		for t, yes := range sampled {
			w, mean := weights[row][t], means[row][t]
			if !yes || mean == 0 {
				continue
			}
			v, g := b.Values[row][t], b.Returns[row][t]
			square, slope := (v-g)*(v-g), v-g
			if o.Clip > 0 {
				old := b.OldValues[row][t]
				c := min(max(v, old-o.Clip), old+o.Clip)
				if (c-g)*(c-g) > square {
					square, slope = (c-g)*(c-g), 0 // it is greater only if v is outside the bounds
					l.ClipFraction += mean
				}
			}
			l.Loss += w * square / 2
			l.ByValue[row][t] = w * slope
		}
	}
	return l, nil
}
