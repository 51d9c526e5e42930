package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// A token differs if a bit does, and the first that differs is named by its place among all of its row's tokens.
func TestExactnessOf(t *testing.T) {
	rows := []episode.TrajectoryRow{
		{Row: 3, PromptLengths: []int32{4}, SampledLengths: []int32{2}, RolloutLogProbs: []float32{-1, -2}},
		{Row: 7, PromptLengths: []int32{2, 3}, SampledLengths: []int32{1, 2}, RolloutLogProbs: []float32{-1, -2, -3}},
	}
	scores := []episode.ScoreRow{{LogProbs: []float32{-1, -2}}, {LogProbs: []float32{-1, -2, -3}}}
	same := activities.Metrics{"training/rollout_logprob_diff_mean": 0, "training/rollout_logprob_diff_max": 0}
	require.Equal(t, same, ExactnessOf(rows, scores).Metrics(false))
	require.Equal(t, same, ExactnessOf(nil, nil).Metrics(false))
	same["exact/differing_tokens"] = 0
	require.Equal(t, same, ExactnessOf(rows, scores).Metrics(true))

	scores[1].LogProbs = []float32{-1, math.Nextafter32(-2, 0), -5}
	got := ExactnessOf(rows, scores)
	small := 2 + float64(math.Nextafter32(-2, 0))
	require.Equal(t, activities.Metrics{
		"training/rollout_logprob_diff_mean": canon.Float((small + 2) / 5), "training/rollout_logprob_diff_max": 2,
		"exact/differing_tokens": 2, "exact/row": 7, "exact/token": 6, "exact/sampler": -2, "exact/trainer": canon.Float(math.Nextafter32(-2, 0)),
	}, got.Metrics(true))
	require.Len(t, got.Metrics(false), 2)
	scores[1].LogProbs[2] = float32(math.NaN())
	require.Equal(t, 2, ExactnessOf(rows, scores).Differing)
}
