package curves

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
)

func TestOf(t *testing.T) {
	table := iterations.Table{
		Columns: []iterations.Column{
			{Name: "run", Kind: iterations.Text},
			{Name: "branch", Kind: iterations.Integer},
			{Name: "iteration", Kind: iterations.Integer},
			{Name: "abandoned", Kind: iterations.Truth},
			{Name: "manifest", Kind: iterations.Text},
			{Name: "settings_digest", Kind: iterations.Text},
			{Name: "update.skipped", Kind: iterations.Truth},
			{Name: "snapshot.version", Kind: iterations.Integer},
			{Name: "evaluation/own/success/mean", Kind: iterations.Number},
			{Name: "evaluation_before/own/success/mean", Kind: iterations.Number},
			{Name: "reward/mean", Kind: iterations.Number},
		},
		Rows: [][]any{
			{"r", int64(0), int64(0), false, "m0", "s0", false, nil, 0.25, 0.125, 0.5},
			{"r", int64(0), int64(1), true, "m1", "s0", true, int64(2), nil, nil, math.Inf(1)},
			{"r", int64(1), int64(1), false, "m2", "s1", false, nil, 0.75, nil, 0.625},
		},
	}
	const success = "evaluation/own/success/mean"
	require.Equal(t, []Branch{
		{Number: 0, Abandoned: true, Settings: "s0", Manifest: "m1", Steps: []Step{
			{0, []Value{{success, 0.125}, {"update.skipped", 0}, {"reward/mean", 0.5}}},
			{1, []Value{{success, 0.25}, {"update.skipped", 1}, {"reward/mean", math.Inf(1)}}},
		}},
		{Number: 1, Settings: "s1", Manifest: "m2", Steps: []Step{
			{1, []Value{{"update.skipped", 0}, {"reward/mean", 0.625}}},
			{2, []Value{{success, 0.75}}},
		}},
	}, normal(Of(table)))
}

// normal puts the values of evaluations first; within a step their place is not promised.
func normal(branches []Branch) []Branch {
	for _, b := range branches {
		for _, s := range b.Steps {
			for i, v := range s.Values {
				if v.Name == "evaluation/own/success/mean" {
					copy(s.Values[1:i+1], s.Values[:i])
					s.Values[0] = v
				}
			}
		}
	}
	return branches
}
