package selection

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// worked reads the examples of testdata, worked out by hand in its comments.
func worked(t *testing.T, into any) {
	t.Helper()
	content, err := os.ReadFile("testdata/worked.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, into))
}

func TestMethodsWorked(t *testing.T) {
	var e struct {
		Methods []struct {
			Name         string
			Scores       []float64
			Method       string
			Order        Order
			Value, Slack float64
			Want         []int
		}
	}
	worked(t, &e)
	require.NotEmpty(t, e.Methods)
	for _, c := range e.Methods {
		t.Run(c.Name, func(t *testing.T) {
			o := Options{Method: c.Method, Order: c.Order, Value: c.Value, Slack: c.Slack}
			if o.Order == "" {
				o.Order = Largest
			}
			require.NoError(t, o.check())
			before := append([]float64{}, c.Scores...)
			require.Equal(t, c.Want, o.choose(c.Scores, len(c.Scores)))
			require.Equal(t, before, append([]float64{}, c.Scores...))
		})
	}
}

func TestSelectWorked(t *testing.T) {
	var e struct {
		Select struct {
			Rewards, Entropies, Lengths [][]float64
			Cases                       []struct {
				Name    string
				Options Options
				Want    []int
			}
		}
	}
	worked(t, &e)
	require.NotEmpty(t, e.Select.Cases)
	g := Groups{Rewards: e.Select.Rewards, Entropies: e.Select.Entropies, Exact: e.Select.Entropies, Lengths: e.Select.Lengths}
	spreads, err := RewardStd(g.Rewards)
	require.NoError(t, err)
	for _, c := range e.Select.Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := Select(g, c.Options)
			require.NoError(t, err)
			require.Equal(t, c.Want, got.Kept)
			require.Equal(t, spreads, got.Spreads)
			require.Len(t, got.Scores, len(g.Rewards))
		})
	}
}

func TestReweightWorked(t *testing.T) {
	var e struct {
		Reweight struct{ Spreads, Want []float64 }
	}
	worked(t, &e)
	golden.Near(t, e.Reweight.Want, Reweight(e.Reweight.Spreads), 1e-15)
	require.Equal(t, []float64{0, 0}, Reweight([]float64{0, 0}))
	require.Equal(t, []float64{}, Reweight(nil))
}
