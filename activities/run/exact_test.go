package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
)

// A token differs if a bit does, and the first that differs is named by its place among all of its row's tokens.
func TestExactnessOf(t *testing.T) {
	rows := []episode.TrajectoryRow{
		{Row: 3, PromptLengths: []int32{4}, SampledLengths: []int32{2}, RolloutLogProbs: []float32{-1, -2}},
		{Row: 7, PromptLengths: []int32{2, 3}, SampledLengths: []int32{1, 2}, RolloutLogProbs: []float32{-1, -2, -3}},
	}
	scores := []episode.ScoreRow{{LogProbs: []float32{-1, -2}}, {LogProbs: []float32{-1, -2, -3}}}
	require.Equal(t, activities.Metrics{"exact/differing_tokens": 0}, ExactnessOf(rows, scores).Metrics())
	scores[1].LogProbs = []float32{-1, math.Nextafter32(-2, 0), float32(math.NaN())}
	got := ExactnessOf(rows, scores)
	require.Equal(t, Exactness{Differing: 2, Row: 7, Token: 6, Sampler: -2, Trainer: math.Nextafter32(-2, 0)}, *got)
	require.Len(t, got.Metrics(), 5)
	require.EqualValues(t, 6, got.Metrics()["exact/token"])
}
