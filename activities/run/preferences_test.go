package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

// The step of a process reward model has its own log-probs as the old ones, and the weights of preferences as
// advantages, which are summed: a token weighs 1, whatever the number of rows is. The batch stays as it is.
func TestPreferences(t *testing.T) {
	var rows []batch.Row
	for n := range 3 {
		v := float32(10 * n)
		rows = append(rows, batch.Row{
			Row: int32(n), IDs: []int32{0, 1, 2}, Length: 3, Mask: []bool{false, true, n != 1}, Turns: []int32{0, 1, 2}, Columns: batch.RowColumns{batch.OldLogProbs: []float32{v, v + 1, v + 2}, batch.Advantages: []float32{9, 9, 9}, batch.Returns: []float32{0, v + 3, v + 4}, batch.OldValues: []float32{0, v + 5, v + 6}, batch.RefLogProbs: []float32{7, 7, 7}},
		})
	}
	got, err := Preferences(rows, model.Shapes{MicroBatch: 2, Sequence: 3})
	require.NoError(t, err)
	require.Len(t, got, 2)
	for n := range 3 {
		m, i := got[n/2], n%2
		require.Equal(t, rows[n].Columns[batch.OldValues], m.Columns[batch.OldLogProbs][i])
		require.Equal(t, rows[n].Columns[batch.Returns], m.Columns[batch.Advantages][i])
		require.Equal(t, rows[n].Mask, m.Mask[i])
		want := []float32{0, 1, 1}
		if n == 1 {
			want[2] = 0
		}
		require.Equal(t, want, m.Columns[batch.Weights][i], "row %d", n)
		require.Nil(t, m.Columns[batch.RefLogProbs])
		v := float32(10 * n)
		require.Equal(t, []float32{v, v + 1, v + 2}, rows[n].Columns[batch.OldLogProbs])
		require.Equal(t, []float32{9, 9, 9}, rows[n].Columns[batch.Advantages])
		require.Equal(t, []float32{7, 7, 7}, rows[n].Columns[batch.RefLogProbs])
	}
	require.Equal(t, []float32{1, 0}, got[1].RowWeights)
}
