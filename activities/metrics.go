package activities

import (
	"math"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
)

// Metrics carry the names verl and RAGEN give them, so that curves can be laid
// side by side. All are computed in row order, so that the same rows give the
// same bits.

// mean is the mean of xs, 0 where there are none.
func mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// deviation is the sample standard deviation (n−1) of xs.
func deviation(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	m := mean(xs)
	var sum float64
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}

func share(yes, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(yes) / float64(all)
}

// rolloutMetrics describe all trajectories of a rollout, and the selected ones.
func rolloutMetrics(rows []TrajectoryRow, members int) Metrics {
	var rewards, returns, lengths, spreads, chosen []float64
	var success, valid, truncated, selected int
	for i, r := range rows {
		rewards = append(rewards, r.Reward())
		returns = append(returns, r.Return())
		var sampled int32
		for _, n := range r.SampledLengths {
			sampled += n
		}
		lengths = append(lengths, float64(sampled))
		if r.Success {
			success++
		}
		if r.Valid {
			valid++
		}
		if r.Truncated {
			truncated++
		}
		if r.Selected {
			selected++
		}
		if (i+1)%members == 0 {
			spread := deviation(returns[i+1-members:])
			spreads = append(spreads, spread)
			if r.Selected {
				chosen = append(chosen, spread)
			}
		}
	}
	return Metrics{
		"reward/mean":                        canon.Float(mean(rewards)),
		"reward/penalised_mean":              canon.Float(mean(returns)),
		"success/mean":                       canon.Float(share(success, len(rows))),
		"valid/mean":                         canon.Float(share(valid, len(rows))),
		"truncated/mean":                     canon.Float(share(truncated, len(rows))),
		"response_length/mean":               canon.Float(mean(lengths)),
		"rollout/in_group_reward_std":        canon.Float(mean(spreads)),
		"rollout/chosen_in_group_reward_std": canon.Float(mean(chosen)),
		"rollout/selected_rows":              canon.Float(float64(selected)),
		"rollout/trajectories":               canon.Float(float64(len(rows))),
	}
}

// scoreMetrics describe the policy on the selected rows: its entropy, and how far
// the sampler's log-probs are from the training program's.
func scoreMetrics(rows []TrajectoryRow, scores []ScoreRow) Metrics {
	var entropies, apart []float64
	var most float64
	for i, s := range scores {
		for t := range s.LogProbs {
			entropies = append(entropies, float64(s.Entropies[t]))
			d := math.Abs(float64(s.LogProbs[t]) - float64(rows[i].RolloutLogProbs[t]))
			apart = append(apart, d)
			most = math.Max(most, d)
		}
	}
	return Metrics{
		"actor/entropy":                      canon.Float(mean(entropies)),
		"training/rollout_logprob_diff_mean": canon.Float(mean(apart)),
		"training/rollout_logprob_diff_max":  canon.Float(most),
	}
}

// updateMetrics are those of one optimizer step.
func updateMetrics(m model.UpdateMetrics) Metrics {
	skipped := 0.0
	if m.Skipped {
		skipped = 1
	}
	return Metrics{
		"actor/loss":        canon.Float(m.Loss),
		"actor/pg_loss":     canon.Float(m.PolicyLoss),
		"actor/grad_norm":   canon.Float(m.GradNorm),
		"actor/pg_clipfrac": canon.Float(m.ClipFraction),
		"actor/ppo_kl":      canon.Float(m.ApproxKL),
		"actor/ratio_max":   canon.Float(m.RatioMax),
		"actor/skipped":     canon.Float(skipped),
	}
}
