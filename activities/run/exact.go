package run

import (
	"math"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// Exactness says how far the log-probs of tokens are from the sampler's, and counts those that are not the same, to the bit.
type Exactness struct {
	apart     []float64 // of each token, in nats
	most      float64
	Differing int
	// Row is the trajectory's row of the first that differs, Token its place among the row's tokens, and then come both log-probs.
	Row, Token       int32
	Sampler, Trainer float32
}

// Compare counts a token.
func (e *Exactness) Compare(row, token int32, sampler, trainer float32) {
	d := math.Abs(float64(trainer) - float64(sampler))
	e.apart, e.most = append(e.apart, d), math.Max(e.most, d)
	if math.Float32bits(sampler) == math.Float32bits(trainer) {
		return
	}
	if e.Differing++; e.Differing == 1 {
		e.Row, e.Token, e.Sampler, e.Trainer = row, token, sampler, trainer
	}
}

// Metrics say how far the log-probs are apart, and where they must be the same, how many tokens differ and which is the first.
func (e *Exactness) Metrics(exact bool) activities.Metrics {
	out := activities.Metrics{collapse.MetricRolloutDiff: canon.Float(Mean(e.apart)), collapse.MetricRolloutDiffMax: canon.Float(e.most)}
	if !exact {
		return out
	}
	out[collapse.MetricDiffering] = canon.Float(e.Differing)
	if e.Differing > 0 {
		out[collapse.MetricDifferingRow], out[collapse.MetricDifferingToken] = canon.Float(e.Row), canon.Float(e.Token)
		out[collapse.MetricSamplerLogProb], out[collapse.MetricTrainerLogProb] = canon.Float(e.Sampler), canon.Float(e.Trainer)
	}
	return out
}

// ExactnessOf compares the log-probs of rows with those of their scores.
func ExactnessOf(rows []episode.TrajectoryRow, scores []episode.ScoreRow) *Exactness {
	e := &Exactness{}
	for i, r := range rows {
		sampled, place := 0, int32(0)
		for turn, n := range r.SampledLengths {
			place += r.PromptLengths[turn]
			for range n {
				e.Compare(r.Row, place, r.RolloutLogProbs[sampled], scores[i].LogProbs[sampled])
				sampled, place = sampled+1, place+1
			}
		}
	}
	return e
}
