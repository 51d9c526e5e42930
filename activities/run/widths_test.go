package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestNarrower(t *testing.T) {
	for _, c := range []struct {
		width, widths int
		want          [2]int
	}{
		{160, 0, [2]int{}}, {160, 1, [2]int{}}, {160, 2, [2]int{80}}, {160, 3, [2]int{80, 48}},
		{16, 3, [2]int{}}, {32, 3, [2]int{16}}, {48, 3, [2]int{32, 16}}, {64, 3, [2]int{32, 16}},
	} {
		require.Equal(t, c.want, narrower(c.width, c.widths), "%+v", c)
	}
}

// Rows go to micro-batches of their width, and keep their order there.
func TestArranged(t *testing.T) {
	sh := model.Shapes{MicroBatch: 2, Sequence: 64, Narrower: [2]int{32, 16}}
	for _, c := range []struct{ lengths, want []int }{
		{[]int{64, 33, 50}, []int{0, 1, 2}},
		{[]int{64, 16, 17, 3, 1}, []int{1, 3, 4, -1, 2, -1, 0}},
		{[]int{16, 64, 15}, []int{0, 2, 1}},
		{nil, nil},
	} {
		require.Equal(t, c.want, arranged(sh, c.lengths), "%v", c.lengths)
	}
	sh.Narrower = [2]int{}
	require.Equal(t, []int{0, 1, 2}, arranged(sh, []int{64, 1, 20}), "one width: their own order")
}

// The micro-batches of a step are as wide as their rows, and weigh what they do in one width.
func TestMinibatchOfWidths(t *testing.T) {
	sh := model.Shapes{MicroBatch: 2, Sequence: 8, Narrower: [2]int{4}}
	var rows []BatchRow
	for _, length := range []int32{8, 3, 4, 4, 5} {
		r := BatchRow{
			Row: length, Ids: make([]int32, 8), Length: length, Mask: make([]bool, 8), Old: make([]float32, 8), Advantages: make([]float32, 8),
			Turns: make([]int32, 8),
		}
		for t := range length - 1 {
			r.Ids[t+1], r.Mask[t+1], r.Turns[t+1] = length, true, 1+(t+1)/2
		}
		rows = append(rows, r)
	}
	places := arranged(sh, []int{8, 3, 4, 4, 5})
	require.Equal(t, []int{1, 2, 3, -1, 0, 4}, places)
	for _, aggregation := range []string{"token_mean", "seq_mean_token_mean", "turn_mean"} {
		u := spec.Update{Aggregation: aggregation, ClipTurns: []spec.Clip{{Low: 0.1, High: 0.2}}}
		got, err := Minibatch(Picked(rows, places), sh, u, 1)
		require.NoError(t, err)
		require.Equal(t, []int{4, 4, 8}, []int{got[0].Width, got[1].Width, got[2].Width})
		require.Equal(t, []float32{1, 0}, got[1].RowWeights, "padding")
		want, err := Minibatch(rows, model.Shapes{MicroBatch: 2, Sequence: 8}, u, 1)
		require.NoError(t, err)
		for at, place := range places {
			if place >= 0 {
				is, was := got[at/2], want[place/2]
				require.Equal(t, was.Weights[place%2][:is.Width], is.Weights[at%2], "%s, row %d", aggregation, place)
				require.Equal(t, was.IDs[place%2][:is.Width], is.IDs[at%2])
				require.Equal(t, was.ClipHigh[place%2][:is.Width], is.ClipHigh[at%2][:is.Width])
			}
		}
	}
}
