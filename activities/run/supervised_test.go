package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The supervised rows of a step weigh together what the coefficient says, over the tokens of all of them, wherever
// they are among the micro-batches; the weights of the other rows stay.
func TestImitate(t *testing.T) {
	row := func(n int32, supervised bool, mask ...bool) batch.Row {
		return batch.Row{
			Row: n, IDs: []int32{n, n, n, n}, Length: 4, Mask: mask, Turns: []int32{0, 1, 1, 1}, Supervised: supervised, Columns: batch.RowColumns{batch.OldLogProbs: make([]float32, 4), batch.Advantages: make([]float32, 4)},
		}
	}
	rows := []batch.Row{
		row(0, false, false, true, true, false), row(1, true, false, true, true, true), row(2, false, false, true, true, false), row(3, false, false, true, true, false),
		row(4, true, false, false, true, false),
	}
	sh := model.Shapes{MicroBatch: 2, Sequence: 4}
	batches, err := Minibatch(rows, sh, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{1, 0}, {1, 1}, {0, 0}}, [][]float32{batches[0].RowWeights, batches[1].RowWeights, batches[2].RowWeights}, "they have no weight in the policy's loss")
	const sixth = float32(1) / 6
	Imitate(batches, rows, 2, 2)
	require.Equal(t, [][]float32{{1, 1}, {1, 1}, {1, 0}}, [][]float32{batches[0].RowWeights, batches[1].RowWeights, batches[2].RowWeights})
	require.Equal(t, []float32{0, sixth, sixth, 0}, batches[0].Columns[batch.Weights][0])
	require.Equal(t, []float32{0, .5, .5, .5}, batches[0].Columns[batch.Weights][1], "2 over four tokens")
	require.Equal(t, []float32{0, 0, .5, 0}, batches[2].Columns[batch.Weights][0])
	require.Equal(t, [][]float32{nil, {0, 1, 1, 1}}, batches[0].Columns[batch.Supervised])
	require.Nil(t, batches[1].Columns[batch.Supervised])
	require.Equal(t, [][]float32{{0, 0, 1, 0}, nil}, batches[2].Columns[batch.Supervised])

	none, err := Minibatch(rows[2:4], sh, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	Imitate(none, rows[2:4], 2, 2)
	require.Nil(t, none[0].Columns[batch.Supervised])
	empty := []batch.Row{row(0, true, false, false, false, false), row(1, false, false, true, false, false)}
	batches, err = Minibatch(empty, sh, spec.Update{Aggregation: "token_mean"}, 1)
	require.NoError(t, err)
	Imitate(batches, empty, 2, 2)
	require.Equal(t, []float32{0, 1}, batches[0].RowWeights, "without a token there is nothing to learn from")
}

// Supervised rows have the numbers that the batch's other rows have, all 0, and their own ids.
func TestSupervisedRows(t *testing.T) {
	of := []episode.Stretch{
		{Row: 7, Ids: []int32{5, 6}, Sampled: []bool{false, true}, Turns: []int32{0, 1}},
		{Row: -1, Ids: []int32{1, 2, 3}, Sampled: []bool{false, false, true}, Turns: []int32{0, 0, 2}},
	}
	like := batch.Row{IDs: make([]int32, 3), Columns: batch.RowColumns{batch.OldLogProbs: make([]float32, 3), batch.Advantages: []float32{1, 1, 1}}}
	zeros := []float32{0, 0, 0}
	want := []batch.Row{
		{Row: 7, Origin: 4, IDs: []int32{5, 6, 0}, Length: 2, Mask: []bool{false, true, false}, Turns: []int32{0, 1, 0}, Supervised: true, Columns: batch.RowColumns{batch.OldLogProbs: zeros, batch.Advantages: zeros}},
		{Row: -1, Origin: 4, IDs: []int32{1, 2, 3}, Length: 3, Mask: []bool{false, false, true}, Turns: []int32{0, 0, 2}, Supervised: true, Columns: batch.RowColumns{batch.OldLogProbs: zeros, batch.Advantages: zeros}},
	}
	require.Equal(t, want, SupervisedRows(of, 4, like))
	like.Columns[batch.RefLogProbs], like.Columns[batch.RolloutLogProbs], like.Columns[batch.Returns], like.Columns[batch.OldValues], like.Columns[batch.ReturnsMask] = []float32{1, 1, 1}, []float32{1, 1, 1}, make([]float32, 6), make([]float32, 6), []float32{1, 1, 1, 1, 1, 1}
	for i := range want {
		want[i].Columns[batch.RefLogProbs], want[i].Columns[batch.RolloutLogProbs], want[i].Columns[batch.Returns], want[i].Columns[batch.OldValues], want[i].Columns[batch.ReturnsMask] = zeros, zeros, make([]float32, 6), make([]float32, 6), make([]float32, 6)
	}
	require.Equal(t, want, SupervisedRows(of, 4, like))
	require.Nil(t, SupervisedRows(nil, 4, like))
}

// The turns of an episode are counted by the runs of its sampled ids.
func TestTurnNumbers(t *testing.T) {
	require.Equal(t, []int32{0, 1, 1, 0, 2, 0, 0, 3, 3}, turnNumbers([]bool{false, true, true, false, true, false, false, true, true}))
	require.Equal(t, []int32{1, 0}, turnNumbers([]bool{true, false}))
	require.Empty(t, turnNumbers(nil))
}

// Each environment of a mixture shows its share of the demonstrations, drawn from an address of its own; the next
// iteration shows others.
func TestDemonstrations(t *testing.T) {
	rc := newRun(t, `{"environment": {"mixture": [{"label": "one", "name": "frozenlake", "share": 2, "options": {"slippery": false}}, {"label": "two", "name": "frozenlake", "options": {"slippery": false}}]},
		"rollout": {"turns": 5}}`)
	at := draw.Address{Seed: 1, Purpose: draw.Supervised, Iteration: 2}
	got, err := rc.Demonstrations(6, spec.RolloutSettings{}, at)
	require.NoError(t, err)
	require.Len(t, got, 6)
	seen := map[string]bool{}
	turns := int32(0)
	for _, p := range got {
		require.EqualValues(t, -1, p.Row)
		require.Equal(t, turnNumbers(p.Sampled), p.Turns)
		for _, n := range p.Turns {
			turns = max(turns, n)
		}
		seen[rc.Tokenizer.Decode(p.Ids)] = true
	}
	require.Len(t, seen, 6, "the environments are the same, and their draws are not")
	require.LessOrEqual(t, turns, int32(5))
	again, err := rc.Demonstrations(6, spec.RolloutSettings{}, at)
	require.NoError(t, err)
	require.Equal(t, got, again)
	at.Iteration++
	next, err := rc.Demonstrations(6, spec.RolloutSettings{}, at)
	require.NoError(t, err)
	require.NotEqual(t, got, next)
	at.Iteration--
	short, err := rc.Demonstrations(6, spec.RolloutSettings{TurnLimit: 1}, at)
	require.NoError(t, err)
	for _, p := range short {
		for _, n := range p.Turns {
			require.LessOrEqual(t, n, int32(1))
		}
	}
	alone, err := rc.Demonstrations(1, spec.RolloutSettings{}, draw.Address{Purpose: draw.Supervised})
	require.NoError(t, err)
	require.Len(t, alone, 1, "the second environment has none")

	blind := newRun(t, `{"environment": {"name": "bandit"}}`)
	blind.Training.Turns = 0
	_, err = blind.Demonstrations(1, spec.RolloutSettings{}, at)
	require.Error(t, err)
}
