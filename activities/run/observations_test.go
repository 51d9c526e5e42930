package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Which tokens are learned, and the loss that they have: the results of prime-rl's own lines.
func TestObservationsGolden(t *testing.T) {
	type (
		in struct {
			Coefficient float64 `json:"coefficient"`
			Rows        []struct {
				Turns    []int32   `json:"turns"`
				LogProbs []float64 `json:"log_probs"`
			} `json:"rows"`
		}
		out struct {
			Weights [][]float64 `json:"weights"`
			Loss    float64     `json:"loss"`
		}
	)
	g := golden.ReadMethod[in, out](t, "echo")
	const width = 20
	for _, c := range g.Cases {
		var rows []batch.Row
		for i, in := range c.In.Rows {
			r := batch.Row{Row: int32(i), Origin: 3, IDs: make([]int32, width), Length: int32(len(in.Turns)), Mask: make([]bool, width), Turns: make([]int32, width)}
			copy(r.Turns, in.Turns)
			for at, turn := range r.Turns {
				r.Mask[at] = turn > 0
			}
			r.Columns[batch.Advantages], r.Columns[batch.OldLogProbs] = make([]float32, width), make([]float32, width)
			rows = append(rows, r)
		}
		of := Observations(rows, 3)
		batches, err := Minibatch(of, model.Shapes{MicroBatch: len(of), Sequence: width}, spec.Update{Aggregation: "token_mean"}, 1)
		require.NoError(t, err)
		Imitate(batches, of, len(of), spec.Supervised{From: spec.Observations, Coefficient: c.In.Coefficient}.Weight())
		var loss float64
		learned := map[int32]bool{}
		for i, r := range of {
			learned[r.Row] = true
			for at, w := range c.Out.Weights[r.Row] {
				require.Equal(t, w > 0, r.Mask[at], "row %d, token %d", r.Row, at)
				if r.Mask[at] {
					loss -= float64(batches[0].Columns[batch.Weights][i][at]) * c.In.Rows[r.Row].LogProbs[at]
				}
			}
		}
		for row, weights := range c.Out.Weights {
			var sum float64
			for _, w := range weights {
				sum += w
			}
			require.Equal(t, sum > 0, learned[int32(row)], "a row without answers has none")
		}
		require.InDelta(t, c.Out.Loss, loss, g.Tolerance)
	}
}

// By hand: a prompt, a turn of two, an answer of two, a turn of which the first token is not learned from, an answer, and nothing
// sampled behind it.
func TestObservationsWorked(t *testing.T) {
	row := batch.Row{
		Row: 4, Origin: 2, IDs: []int32{9, 5, 5, 8, 8, 6, 6, 7, 0}, Length: 8,
		Turns: []int32{0, 1, 1, 0, 0, 2, 2, 0, 0}, Mask: []bool{false, true, true, false, false, false, true, false, false},
	}
	row.Columns[batch.Advantages] = []float32{0, 1, 1, 0, 0, 0, 2, 0, 0}
	replayed, imitated, single := row, row, row
	replayed.Origin, imitated.Supervised = 1, true
	single.Turns, single.Length = []int32{0, 1, 1, 0, 0, 0, 0, 0, 0}, 3
	got := Observations([]batch.Row{single, replayed, row, imitated}, 2)
	require.Len(t, got, 1)
	want := batch.Row{
		Row: 4, Origin: 2, IDs: row.IDs, Length: 8, Supervised: true,
		Turns: []int32{0, 0, 0, 2, 2, 0, 0, 2, 0}, Mask: []bool{false, false, false, true, true, false, false, true, false},
	}
	want.Columns[batch.Advantages] = make([]float32, 9)
	require.Equal(t, want, got[0])
	require.Equal(t, float32(2), row.Columns[batch.Advantages][6])
}
