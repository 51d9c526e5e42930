package model

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

// worked reads the examples of testdata, worked out by hand in its
// comments.
func worked(t *testing.T, into any) {
	t.Helper()
	content, err := os.ReadFile("testdata/worked.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, into))
}

func near(t *testing.T, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		require.InDeltaSlice(t, want[row], got[row], 1e-9, "row %d", row)
	}
}

// everywhere is the mask of rows without environment tokens.
func everywhere(values [][]float64) [][]bool {
	mask := make([][]bool, len(values))
	for row := range values {
		for range values[row] {
			mask[row] = append(mask[row], true)
		}
	}
	return mask
}

func TestPolicyWorked(t *testing.T) {
	var e struct {
		Policy []struct {
			Name               string
			Ratios, Advantages [][]float64
			Turns              [][]int
			Clips              []Clip
			Ratio              loss.Ratio
			Aggregation        loss.Aggregation
			Loss               float64
			DualClip           float64     `json:"dual_clip"`
			ClipFraction       float64     `json:"clip_fraction"`
			DualClipFraction   float64     `json:"dual_clip_fraction"`
			ByLogProb          [][]float64 `json:"by_log_prob"`
		}
	}
	worked(t, &e)
	require.NotEmpty(t, e.Policy)
	for _, c := range e.Policy {
		t.Run(c.Name, func(t *testing.T) {
			mask := everywhere(c.Ratios)
			b := PolicyBatch{LogProbs: loss.Zeros(mask), OldLogProbs: loss.Zeros(mask), Advantages: c.Advantages, Mask: mask, Turns: c.Turns}
			for row := range c.Ratios {
				for at, r := range c.Ratios[row] {
					b.LogProbs[row][at] = math.Log(r)
				}
			}
			l, err := referencePolicy(b, PolicyOptions{Ratio: c.Ratio, Clips: c.Clips, DualClip: c.DualClip, Aggregation: c.Aggregation})
			require.NoError(t, err)
			require.InDelta(t, c.Loss, l.Loss, 1e-9)
			require.InDelta(t, c.ClipFraction, l.ClipFraction, 1e-9)
			require.InDelta(t, c.DualClipFraction, l.DualClipFraction, 1e-9)
			near(t, c.ByLogProb, l.ByLogProb)
		})
	}
}

func TestValueWorked(t *testing.T) {
	var e struct {
		Value struct {
			Values, Returns [][]float64
			OldValues       [][]float64 `json:"old_values"`
			Mask            [][]bool
			Clip, Loss      float64
			ClipFraction    float64     `json:"clip_fraction"`
			ByValue         [][]float64 `json:"by_value"`
		}
	}
	worked(t, &e)
	b := ValueBatch{Values: e.Value.Values, OldValues: e.Value.OldValues, Returns: e.Value.Returns, Mask: e.Value.Mask}
	l, err := referenceValue(b, ValueOptions{Clip: e.Value.Clip, Aggregation: loss.TokenMean})
	require.NoError(t, err)
	require.InDelta(t, e.Value.Loss, l.Loss, 1e-9)
	require.InDelta(t, e.Value.ClipFraction, l.ClipFraction, 1e-9)
	near(t, e.Value.ByValue, l.ByValue)
}
