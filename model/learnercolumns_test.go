package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestBadWeightsAreRefused(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	for name, spoil := range map[string]func([]batch.MicroBatch){
		"of some only":   func(b []batch.MicroBatch) { b[0].Columns[batch.Weights] = nil },
		"unmasked":       func(b []batch.MicroBatch) { b[0].Columns[batch.Weights][0][1] = 1 },
		"of a pad row":   func(b []batch.MicroBatch) { b[0].RowWeights = []float32{0, 1, 1} },
		"negative":       func(b []batch.MicroBatch) { b[0].Columns[batch.Weights][0][6] = -1 },
		"not finite":     func(b []batch.MicroBatch) { b[0].Columns[batch.Weights][0][6] = float32(math.NaN()) },
		"too few rows":   func(b []batch.MicroBatch) { b[0].Columns[batch.Weights] = b[0].Columns[batch.Weights][:2] },
		"too few tokens": func(b []batch.MicroBatch) { b[0].Columns[batch.Weights][0] = b[0].Columns[batch.Weights][0][:5] },
		"old log-probs":  func(b []batch.MicroBatch) { b[1].Columns[batch.OldLogProbs] = [][]float32{{}, {}, {}} },
		"none above 0": func(b []batch.MicroBatch) {
			for i := range b {
				for r := range b[i].Columns[batch.Weights] {
					clear(b[i].Columns[batch.Weights][r])
				}
			}
		},
	} {
		batches := []batch.MicroBatch{batchOf(randomRows(1, p.c, 3, 7), 1), batchOf(randomRows(2, p.c, 3, 7), 1)}
		require.NoError(t, batch.Weigh(batches, loss.TokenMean, 0))
		spoil(batches)
		_, _, err := p.Learner.Update(bg, s, batches, testSettings())
		require.ErrorIs(t, err, ErrInput, name)
	}
}
