package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// The edges of the intervals: the token is the first i with cs[i] > u·cs[last], so
// that of n equal probabilities u = k/n is id k and not the one before. Powers of
// two make every sum exact, in one block and across blocks; illegal ids between the
// others have no interval.
func TestSampleAtTheEdges(t *testing.T) {
	none := float32(math.Inf(-1))
	for _, c := range []struct {
		equal  int
		spread int // every so-many-th id is possible
	}{{4, 1}, {1024, 1}, {64, 3}} {
		vocab := c.equal * c.spread
		logits, u := make([][]float32, c.equal), make([]float32, c.equal)
		for k := range logits {
			logits[k] = make([]float32, vocab)
			for id := range logits[k] {
				logits[k][id] = none
				if id%c.spread == c.spread-1 {
					logits[k][id] = 0.5
				}
			}
			u[k] = float32(k) / float32(c.equal)
		}
		tokens, lps := drawFrom(t, logits, u, false)
		below := make([]float32, len(u)) // a hair below the next edge: the same id
		for k := range below {
			below[k] = math.Nextafter32(float32(k+1)/float32(c.equal), 0)
		}
		same, _ := drawFrom(t, logits, below, false)
		for k, id := range tokens {
			want := int32(k*c.spread + c.spread - 1)
			require.Equal(t, want, id, "%d equal of %d ids, u = %v", c.equal, vocab, u[k])
			require.Equal(t, want, same[k], "%d equal of %d ids, u = %v", c.equal, vocab, below[k])
			require.InDelta(t, -math.Log(float64(c.equal)), lps[k], 1e-6)
		}
	}
}

// If the sums round so that none is above the target, the last possible id is drawn and
// never an id of probability 0, whatever follows it. The vocabularies have real sizes,
// only a first part of each is possible, and the uniforms are the largest that exist.
func TestSampleNeverDrawsTheImpossible(t *testing.T) {
	none := float32(math.Inf(-1))
	const rows = 128
	for _, c := range []struct{ vocab, possible int }{
		{40, 27}, {1000, 667}, {5000, 70}, {100_000, 66_667},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.possible, c.vocab), func(t *testing.T) {
			r := draw.Address{Seed: uint64(c.vocab), Group: int64(c.possible)}.Rand()
			logits, u := make([][]float32, rows), make([]float32, rows)
			for i := range logits {
				logits[i] = make([]float32, c.vocab)
				for id := range logits[i] {
					logits[i][id] = none
					if id < c.possible {
						logits[i][id] = float32(r.Float64() * 0.01)
					}
				}
				if i%4 == 3 { // in the middle of the possible ones too
					for id := range c.possible {
						if r.IntN(3) == 0 && id > 0 {
							logits[i][id] = none
						}
					}
				}
				u[i] = float32(1 - float64(1+i%3)/(1<<24))
			}
			tokens, lps := drawFrom(t, logits, u, false)
			for i, id := range tokens {
				require.Greater(t, logits[i][id], none, "row %d drew id %d of probability 0 with u = %v", i, id, u[i])
				require.False(t, math.IsInf(float64(lps[i]), 0), "row %d", i)
			}
		})
	}
}

// An id that the tokenizer lacks is never drawn, however likely the weights make it:
// at low and high temperatures, at both ends of the uniforms, and where the likeliest
// is taken; and what is drawn has its log-prob over the legal ids alone.
func TestIllegalIdsAreNeverDrawn(t *testing.T) {
	c := tiny()
	for name, isLegal := range map[string]func(id int) bool{
		"every third":   func(id int) bool { return id%3 == 1 },
		"a first part":  func(id int) bool { return id < 20 },
		"a last part":   func(id int) bool { return id >= 20 },
		"all but one":   func(id int) bool { return id != 17 },
		"a single one":  func(id int) bool { return id == 5 },
		"the very last": func(id int) bool { return id == c.VocabSize-1 },
	} {
		t.Run(name, func(t *testing.T) {
			legal := make([]bool, c.VocabSize)
			var ids []int32
			params := tinyParams(c)
			for id := range legal {
				if legal[id] = isLegal(id); legal[id] {
					ids = append(ids, int32(id))
					continue
				}
				// Longer rows of the embedding, which is the head too: larger logits.
				for j := range c.HiddenSize {
					params.Values[0][id*c.HiddenSize+j] *= 8
				}
			}
			p, err := testDevice(t).Programs(c, legal, tinyShapes)
			require.NoError(t, err)
			defer p.Free()
			s, err := p.NewState(params)
			require.NoError(t, err)
			defer s.Free()
			prompts := [][]int32{ids[:1], {ids[0], ids[len(ids)-1]}, ids[len(ids)-1:], {ids[len(ids)/2], ids[0], ids[0]}}
			check := func(in GenerateInput, temperature float32) {
				t.Helper()
				in.Prompts, in.Temperature = prompts, temperature
				out, err := p.Sampler.Generate(bg, s, in)
				require.NoError(t, err)
				var b batch.MicroBatch
				for i, row := range out.Tokens {
					require.Len(t, row, tinyShapes.MaxNewTokens)
					for j, id := range row {
						require.True(t, legal[id], "row %d drew the illegal id %d at temperature %v, greedy %t", i, id, temperature, in.Greedy)
						if len(ids) == 1 {
							require.Zero(t, out.LogProbs[i][j], "the only legal id is certain")
						}
					}
					b.IDs = append(b.IDs, append(append([]int32{}, prompts[i]...), row[0]))
					b.Lengths = append(b.Lengths, int32(len(b.IDs[i])))
				}
				if in.Greedy {
					temperature = 1
				}
				b.IDs, b.Lengths = b.IDs[:tinyShapes.MicroBatch], b.Lengths[:tinyShapes.MicroBatch]
				lps, _, err := p.Scorer.Score(bg, s, b, temperature)
				require.NoError(t, err)
				for i := range b.IDs {
					require.InDelta(t, lps[i][len(prompts[i])], out.LogProbs[i][0], 1e-4)
				}
			}
			for seed, temperature := range []float32{0.1, 1, 10} {
				us := uniforms(uint64(seed), len(prompts), tinyShapes.MaxNewTokens)
				for j := range us[0] {
					us[0][j], us[1][j] = 0, lastDraw
				}
				check(GenerateInput{Uniforms: us, IgnoreStop: true}, temperature)
			}
			check(GenerateInput{Greedy: true, IgnoreStop: true}, 1)

			// Over the legal ids the probabilities make one, and the others have none.
			var sum float64
			for id := int32(0); id < int32(c.VocabSize); id += int32(tinyShapes.MicroBatch) {
				var b batch.MicroBatch
				for next := id; next < min(id+int32(tinyShapes.MicroBatch), int32(c.VocabSize)); next++ {
					b.IDs, b.Lengths = append(b.IDs, []int32{ids[0], next}), append(b.Lengths, 2)
				}
				lps, ents, err := p.Scorer.Score(bg, s, b, 1)
				require.NoError(t, err)
				for i, row := range b.IDs {
					if !legal[row[1]] {
						require.True(t, math.IsInf(float64(lps[i][1]), -1), "id %d has log-prob %v", row[1], lps[i][1])
					}
					sum += math.Exp(float64(lps[i][1]))
					require.False(t, math.IsNaN(float64(ents[i][1])))
					require.LessOrEqual(t, float64(ents[i][1]), math.Log(float64(len(ids)))+1e-5, "the entropy of so many ids")
				}
			}
			require.InDelta(t, 1, sum, 1e-4)
		})
	}
}
