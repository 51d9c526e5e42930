package empg

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestEMPGGolden(t *testing.T) {
	type in struct {
		StepEntropy [][]float64 `json:"step_entropy"`
		Advantages  []float64
		K           float64
		KFuture     float64 `json:"k_future"`
		Zeta        float64
	}
	type out struct{ Scaling, Modulated, Advantage [][]float64 }
	g := golden.ReadMethod[in, out](t, "empg")
	for _, c := range g.Cases {
		m := Modulation{Gain: c.In.K, FutureGain: c.In.KFuture, Clarity: c.In.Zeta}
		places, err := entropyPlaces(c.In.StepEntropy)
		require.NoError(t, err)
		credittest.Within(t, g.Tolerance, c.Out.Scaling, entropyScaling(places, m.Gain))
		before, err := modulated(c.In.Advantages, c.In.StepEntropy, m)
		require.NoError(t, err)
		credittest.Within(t, g.Tolerance, c.Out.Modulated, before)
		got, err := EMPG(c.In.Advantages, c.In.StepEntropy, m)
		require.NoError(t, err)
		credittest.Within(t, g.Tolerance, c.Out.Advantage, got)
	}
}

// Equal entropies leave the advantages as they are, but for the mean.
func TestEMPGOfEqualEntropies(t *testing.T) {
	got, err := EMPG([]float64{1, -3}, [][]float64{{.5, .5}, {.5}}, Modulation{Gain: 1, FutureGain: 1})
	require.NoError(t, err)
	mean := (1.0 + 1 - 3) / 3
	golden.Near(t, []float64{1 - mean, 1 - mean}, got[0], 1e-15)
	golden.Near(t, []float64{-3 - mean}, got[1], 1e-15)
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	one := [][]float64{{1}}
	empg := func(a []float64, h [][]float64, m Modulation) error {
		_, err := EMPG(a, h, m)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"empg advantage":   {empg([]float64{nan}, one, Modulation{}), credit.ErrRewards, "row 0 has NaN"},
		"empg rows":        {empg(nil, one, Modulation{}), credit.ErrRewards, "0 rewards, 1 rows of entropies"},
		"empg entropy":     {empg([]float64{1}, [][]float64{{nan}}, Modulation{}), credit.ErrNotFinite, "the entropy of row 0, turn 0 is NaN"},
		"empg gain":        {empg([]float64{1}, one, Modulation{Gain: -1}), credit.ErrInput, "Gain is -1"},
		"empg future gain": {empg([]float64{1}, one, Modulation{FutureGain: nan}), credit.ErrInput, "FutureGain is NaN"},
	})
}

func TestRanges(t *testing.T) {
	of := func(_ any, err error) error { return err }
	inf := math.Inf(1)
	gain := func(x float64) error { return of(EMPG(nil, nil, Modulation{Gain: x, FutureGain: x, Clarity: x})) }
	credittest.Ranges(t, map[string]credittest.Range{
		"gain below 0":  {gain(-1e-9), credit.ErrInput},
		"gain 0":        {gain(0), nil},
		"gain infinite": {gain(inf), credit.ErrInput},
	})
}
