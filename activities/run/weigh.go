package run

import (
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// WeighRows multiplies the advantages of rows by their mismatch weights. A surrogate is
// proportional to the advantage, so this weighs the token's part of it, and not the entropy or
// the distance from the reference. The rows' slices are not written to.
func WeighRows(rows []batch.Row, m loss.Mismatch) (loss.Weighed, error) {
	var old, rollout [][]float64
	var turns [][]int
	var mask [][]bool
	for _, r := range rows {
		old, mask = append(old, wider(r.Columns[batch.OldLogProbs])), append(mask, r.Mask)
		rollout = append(rollout, wider(r.Columns[batch.RolloutLogProbs]))
		of := make([]int, len(r.Turns))
		for t, k := range r.Turns {
			of[t] = int(k)
		}
		turns = append(turns, of)
	}
	w, err := m.Weigh(old, rollout, turns, mask)
	if err != nil {
		return w, err
	}
	for i, r := range rows {
		weighed := make([]float32, len(r.Columns[batch.Advantages]))
		for t, a := range r.Columns[batch.Advantages] {
			if r.Mask[t] {
				weighed[t] = float32(float64(a) * w.Weights[i][t])
			}
		}
		rows[i].Columns[batch.Advantages] = weighed
	}
	return w, nil
}

func wider(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
