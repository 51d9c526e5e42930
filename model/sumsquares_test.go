package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// squaring are the tiny programs whose Score gives sums of squares too.
func squaring(t *testing.T, legal []bool, l limits) *Programs {
	t.Helper()
	sh := tinyShapes
	sh.SumSquares = true
	p, err := testDevice(t).programsWith(tiny(), legal, sh, l)
	require.NoError(t, err)
	t.Cleanup(p.Free)
	return p
}

// Σp² is that of the probabilities which Score gives to all ids, one after the other, and that of the same network in float64.
func TestSumSquares(t *testing.T) {
	const temperature = 0.7
	legal := make([]bool, tiny().VocabSize)
	for id := range legal {
		legal[id] = id%5 != 3
	}
	rows := randomRows(3, tiny(), tinyShapes.MicroBatch, tinyShapes.Sequence)
	for name, l := range map[string]limits{"at once": defaultLimits, "in chunks": {queries: 3, logits: 37 * 4, prefill: 12}} {
		t.Run(name, func(t *testing.T) {
			p := squaring(t, legal, l)
			s, err := p.NewState(tinyParams(tiny()))
			require.NoError(t, err)
			defer s.Free()
			last := tinyShapes.Sequence - 1
			want := make([]float64, len(rows))
			for id := range legal {
				b := batchOf(randomRows(3, tiny(), tinyShapes.MicroBatch, tinyShapes.Sequence), 1)
				for r := range b.IDs {
					b.IDs[r][last] = int32(id)
				}
				scores, err := p.Scorer.ScoreAll(bg, s, []batch.MicroBatch{b}, temperature)
				require.NoError(t, err)
				for r := range b.IDs {
					want[r] += math.Exp(2 * float64(scores[0].LogProbs[r][last]))
				}
			}
			b := batchOf(rows, 1)
			b.Lengths[1] = 4
			scores, err := p.Scorer.ScoreAll(bg, s, []batch.MicroBatch{b}, temperature)
			require.NoError(t, err)
			got := scores[0].SumSquares
			for r, row := range got {
				require.Len(t, row, tinyShapes.Sequence)
				for at, v := range row {
					require.Equal(t, at == 0 || at >= int(b.Lengths[r]), v == 0, "row %d, token %d: %v", r, at, v)
				}
				if r != 1 {
					require.InEpsilon(t, want[r], row[last], 1e-5)
				}
			}
			d := inFloat64(t, p, legal, temperature)
			_, params := d.params(t, tinyParams(tiny()))
			defer free(params)
			for r, row := range d.scores(t, params, b, 3) {
				for at := 1; at < int(b.Lengths[r]); at++ {
					require.InEpsilon(t, row[at], got[r][at], 1e-5, "row %d, token %d", r, at)
				}
			}
		})
	}

	// A certain id is drawn twice; of ids without a difference, as often as there are.
	one := make([]bool, tiny().VocabSize)
	one[4] = true
	for _, ids := range [][]bool{one, nil} {
		p := squaring(t, ids, defaultLimits)
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		scores, err := p.Scorer.ScoreAll(bg, s, []batch.MicroBatch{batchOf(rows, 1)}, 1e9)
		s.Free()
		require.NoError(t, err)
		want := 1.0
		if ids == nil {
			want /= float64(tiny().VocabSize)
		}
		require.InEpsilon(t, want, scores[0].SumSquares[0][3], 1e-6)
	}
}

// A run that asks for sums of squares computes all else with the same bits; only its forward program is another.
func TestSumSquaresBesideTheRest(t *testing.T) {
	plain, s := tinyPrograms(t, tiny())
	p := squaring(t, nil, defaultLimits)
	before, err := plain.Hashes()
	require.NoError(t, err)
	hashes, err := p.Hashes()
	require.NoError(t, err)
	for name, hash := range before {
		require.Equal(t, name != string(kindForward), hash == hashes[name], name)
	}
	require.Len(t, hashes, len(before))

	q, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer q.Free()
	b := scoredBatch(t, plain, s, 1, 0.7)
	want, err := plain.Scorer.ScoreAll(bg, s, []batch.MicroBatch{b}, 0.7)
	require.NoError(t, err)
	require.Nil(t, want[0].SumSquares)
	got, err := p.Scorer.ScoreAll(bg, q, []batch.MicroBatch{b}, 0.7)
	require.NoError(t, err)
	require.NotNil(t, got[0].SumSquares)
	got[0].SumSquares = nil
	require.Equal(t, want, got)
	k := testSettings()
	k.Temperature = 0.7
	one, m, err := plain.Learner.Update(bg, twin(t, plain, s), []batch.MicroBatch{b}, k)
	require.NoError(t, err)
	defer one.Free()
	two, m2, err := p.Learner.Update(bg, twin(t, p, q), []batch.MicroBatch{b}, k)
	require.NoError(t, err)
	defer two.Free()
	require.Equal(t, m, m2)
	require.Equal(t, mark(t, one), mark(t, two))

	_, err = testDevice(t).Programs(tiny().Critic(), nil, Shapes{MicroBatch: 3, Sequence: 7, SumSquares: true})
	require.ErrorIs(t, err, ErrInput)
}
