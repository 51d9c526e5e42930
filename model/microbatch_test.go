package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestWeigh(t *testing.T) {
	batches := []MicroBatch{
		{IDs: [][]int32{{1, 2, 3}, {1, 2}}, Lengths: []int32{3, 2}, Mask: [][]bool{{false, true, true}, {false, true}}, RowWeights: []float32{1, 0}},
		{},
		{IDs: [][]int32{{1, 2}}, Lengths: []int32{2}, Mask: [][]bool{{false, true}}},
	}
	require.NoError(t, Weigh(batches, loss.SeqMeanTokenMean, 0))
	require.Equal(t, [][]float32{{0, 0.25, 0.25}, {0, 0}}, batches[0].Columns[batch.Weights])
	require.Equal(t, [][]float32{{0, 0.5}}, batches[2].Columns[batch.Weights])
	for name, spoil := range map[string]func(*MicroBatch){
		"no lengths":   func(b *MicroBatch) { b.Lengths = nil },
		"two masks":    func(b *MicroBatch) { b.Mask = append(b.Mask, nil) },
		"at the start": func(b *MicroBatch) { b.Mask = [][]bool{{true}} },
		"row weights":  func(b *MicroBatch) { b.RowWeights = []float32{1, 1} },
		"negative":     func(b *MicroBatch) { b.RowWeights = []float32{-1} },
		"not finite":   func(b *MicroBatch) { b.RowWeights = []float32{float32(math.Inf(1))} },
	} {
		b := batches[2]
		spoil(&b)
		require.ErrorIs(t, Weigh([]MicroBatch{b}, loss.TokenMean, 0), ErrInput, name)
	}
	require.ErrorIs(t, Weigh(batches, "mean", 0), ErrInput)
	require.ErrorIs(t, Weigh(batches, loss.Constant, 0), ErrInput)
}

func TestBadWeightsAreRefused(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	for name, spoil := range map[string]func([]MicroBatch){
		"of some only":   func(b []MicroBatch) { b[0].Columns[batch.Weights] = nil },
		"unmasked":       func(b []MicroBatch) { b[0].Columns[batch.Weights][0][1] = 1 },
		"of a pad row":   func(b []MicroBatch) { b[0].RowWeights = []float32{0, 1, 1} },
		"negative":       func(b []MicroBatch) { b[0].Columns[batch.Weights][0][6] = -1 },
		"not finite":     func(b []MicroBatch) { b[0].Columns[batch.Weights][0][6] = float32(math.NaN()) },
		"too few rows":   func(b []MicroBatch) { b[0].Columns[batch.Weights] = b[0].Columns[batch.Weights][:2] },
		"too few tokens": func(b []MicroBatch) { b[0].Columns[batch.Weights][0] = b[0].Columns[batch.Weights][0][:5] },
		"old log-probs":  func(b []MicroBatch) { b[1].Columns[batch.OldLogProbs] = [][]float32{{}, {}, {}} },
		"none above 0": func(b []MicroBatch) {
			for i := range b {
				for r := range b[i].Columns[batch.Weights] {
					clear(b[i].Columns[batch.Weights][r])
				}
			}
		},
	} {
		batches := []MicroBatch{batchOf(randomRows(1, p.c, 3, 7), 1), batchOf(randomRows(2, p.c, 3, 7), 1)}
		require.NoError(t, Weigh(batches, loss.TokenMean, 0))
		spoil(batches)
		_, _, err := p.Update(bg, s, batches, testSettings())
		require.ErrorIs(t, err, ErrInput, name)
	}
}
