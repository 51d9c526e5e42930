package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
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
	var rows []batch.Row
	for _, length := range []int32{8, 3, 4, 4, 5} {
		r := batch.Row{
			Row: length, IDs: make([]int32, 8), Length: length, Mask: make([]bool, 8),
			Turns: make([]int32, 8), Columns: batch.RowColumns{batch.OldLogProbs: make([]float32, 8), batch.Advantages: make([]float32, 8)},
		}
		for t := range length - 1 {
			r.IDs[t+1], r.Mask[t+1], r.Turns[t+1] = length, true, 1+(t+1)/2
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
				require.Equal(t, was.Columns[batch.Weights][place%2][:is.Width], is.Columns[batch.Weights][at%2], "%s, row %d", aggregation, place)
				require.Equal(t, was.IDs[place%2][:is.Width], is.IDs[at%2])
				require.Equal(t, was.Columns[batch.ClipHigh][place%2][:is.Width], is.Columns[batch.ClipHigh][at%2][:is.Width])
			}
		}
	}
}

// The width of a row is the least that it fits in: below, at and above each.
func TestWidthOf(t *testing.T) {
	sh := model.Shapes{Sequence: 64, Narrower: [2]int{32, 16}}
	for tokens, want := range map[int]int{0: 16, 15: 16, 16: 16, 17: 32, 31: 32, 32: 32, 33: 64, 64: 64} {
		require.Equal(t, want, widthOf(sh, tokens), "%d tokens", tokens)
	}
	require.Equal(t, 64, widthOf(model.Shapes{Sequence: 64}, 0), "there is one")
	require.Equal(t, 32, widthOf(model.Shapes{Sequence: 64, Narrower: [2]int{32}}, 1))
}

// widthsRun is a run whose rows have up to 64 tokens, in micro-batches of two, and widths of 64, 32 and 16.
func widthsRun() *Context {
	rc := &Context{Training: &Task{Groups: 1, Members: 2, Slots: 2, MaxNewTokens: 20, Widths: []int{40}}}
	rc.Train.Update.MicroBatch, rc.Train.Update.Widths = 2, 3
	return rc
}

// The rows of a step are arranged by their own widths, and are the rows that the step has.
func TestArrange(t *testing.T) {
	rc := widthsRun()
	var rows []batch.Row
	for i, length := range []int32{64, 3, 40, 20, 16, 9} {
		rows = append(rows, batch.Row{Row: int32(i), Length: length, IDs: make([]int32, 64)})
	}
	require.Equal(t, []int{1, 4, 5, -1, 3, -1, 0, 2}, rc.Arrange(rows, []int{0, 1, 2, 3, 4, 5}))
	require.Equal(t, []int{5, 1, 3, -1, 2}, rc.Arrange(rows, []int{5, 3, 2, 1}), "places in the batch, in the order of the step")
	picked := Picked(rows, []int{5, -1, 2})
	require.Equal(t, []int32{5, 0, 2}, []int32{picked[0].Row, picked[1].Row, picked[2].Row})
	require.Nil(t, picked[1].IDs)
	rc.Train.Update.Widths = 0
	require.Equal(t, []int{5, 3, 2, 1}, rc.Arrange(rows, []int{5, 3, 2, 1}))
}

// Score takes the stretches in micro-batches of their widths, and says which stretch each row is.
func TestScoreBatches(t *testing.T) {
	rc := widthsRun()
	var rows []episode.Stretch
	for i, length := range []int{64, 3, 40, 20, 16} {
		p := episode.Stretch{Of: i, Ids: make([]int32, length), Sampled: make([]bool, length)}
		p.Ids[0], p.Sampled[length-1] = int32(100+i), true
		rows = append(rows, p)
	}
	batches, places := rc.ScoreBatches(rows)
	require.Equal(t, []int{1, 4, 3, -1, 0, 2}, places)
	require.Len(t, batches, 3)
	for n, m := range batches {
		require.Equal(t, []int{16, 32, 64}[n], m.Width)
		for i := range 2 {
			require.Len(t, m.IDs[i], m.Width)
			at := places[2*n+i]
			if at < 0 {
				require.Equal(t, []any{int32(0), float32(0)}, []any{m.Lengths[i], m.RowWeights[i]})
				continue
			}
			require.Equal(t, []any{int32(100 + at), int32(len(rows[at].Ids)), float32(1)}, []any{m.IDs[i][0], m.Lengths[i], m.RowWeights[i]})
			require.True(t, m.Mask[i][len(rows[at].Ids)-1])
		}
	}
	// Of one width, the last micro-batch may be short, and its padding has no place.
	rc.Train.Update.Widths = 0
	batches, places = rc.ScoreBatches(rows)
	require.Equal(t, []int{0, 1, 2, 3, 4}, places)
	require.Equal(t, []int{64, 64, 64}, []int{batches[0].Width, batches[1].Width, batches[2].Width})
	require.Equal(t, rc.MicroBatches(rows)[2].RowWeights, batches[2].RowWeights)
	require.Equal(t, []float32{1, 0}, batches[2].RowWeights)
	batches, places = rc.ScoreBatches(nil)
	require.Empty(t, batches)
	require.Empty(t, places)
}
