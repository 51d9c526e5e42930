package credit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

func TestMethodsErrors(t *testing.T) {
	nan := math.NaN()
	one, two := [][]float64{{1}}, [][]float64{{1, 2}}
	gdpo := func(c [][]float64, w []float64, g []int, o Options) error {
		_, err := GDPO(c, w, g, [][]bool{{true}}, o)
		return err
	}
	empg := func(a []float64, h [][]float64, m Modulation) error {
		_, err := EMPG(a, h, m)
		return err
	}
	blocks := func(r [][]float64, g []int, o [][]int) error {
		_, _, err := Blockwise(r, g, o)
		return err
	}
	mas := func(r [][]float64, a [][]string, g []int, o Options) error {
		_, err := DrMAS(r, a, g, o)
		return err
	}
	worth := func(least float64) error {
		_, err := WorthAStep(one, least)
		return err
	}
	for name, c := range map[string]struct {
		err  error
		kind error
		text string
	}{
		"gdpo weight":      {gdpo(one, []float64{nan}, []int{0}, Options{}), ErrInput, "the weight of component 0 is NaN"},
		"gdpo components":  {gdpo(two, []float64{1}, []int{0}, Options{}), ErrInput, "row 0 has 2 components, there are 1 weights"},
		"gdpo groups":      {gdpo(one, []float64{1}, nil, Options{}), ErrInput, "components of 1 rows, 0 group indexes"},
		"gdpo reward":      {gdpo([][]float64{{nan}}, []float64{1}, []int{0}, Options{}), ErrRewards, "component 0: unusable rewards: row 0 has NaN"},
		"gdpo rows":        {gdpo([][]float64{{1}, {2}}, []float64{1}, []int{0, 0}, Options{}), ErrInput, "2 advantages for 1 rows"},
		"empg advantage":   {empg([]float64{nan}, one, Modulation{}), ErrRewards, "row 0 has NaN"},
		"empg rows":        {empg(nil, one, Modulation{}), ErrRewards, "0 rewards, 1 rows of entropies"},
		"empg entropy":     {empg([]float64{1}, [][]float64{{nan}}, Modulation{}), ErrNotFinite, "the entropy of row 0, turn 0 is NaN"},
		"empg gain":        {empg([]float64{1}, one, Modulation{Gain: -1}), ErrInput, "Gain is -1"},
		"empg future gain": {empg([]float64{1}, one, Modulation{FutureGain: nan}), ErrInput, "FutureGain is NaN"},
		"blocks reward":    {blocks([][]float64{{nan}}, []int{0}, [][]int{{0}}), ErrRewards, "row 0, turn 0 has NaN"},
		"blocks rows":      {blocks(one, []int{0}, nil), ErrInput, "rewards of 1 rows, 1 group indexes, outcomes of 0 rows"},
		"blocks turns":     {blocks(two, []int{0}, [][]int{{0}}), ErrInput, "row 0 has 2 rewards and 1 outcomes"},
		"mas epsilon":      {mas(one, [][]string{{"a"}}, []int{0}, Options{Epsilon: -1}), ErrInput, "Epsilon is -1"},
		"mas return":       {mas([][]float64{{nan}}, [][]string{{"a"}}, []int{0}, Options{}), ErrRewards, "row 0, turn 0 has NaN"},
		"mas rows":         {mas(one, nil, []int{0}, Options{}), ErrInput, "returns of 1 rows, 1 group indexes, agents of 0 rows"},
		"mas turns":        {mas(two, [][]string{{"a"}}, []int{0}, Options{}), ErrInput, "row 0 has 2 returns and 1 agents"},
		"worth":            {worth(-1), ErrInput, "the least advantage is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.err, c.kind)
			require.ErrorContains(t, c.err, c.text)
		})
	}
}

func TestWorthAStep(t *testing.T) {
	rows := [][]float64{{0, .005}, {0, -.01}, {}, {math.NaN()}}
	got, err := WorthAStep(rows, .01)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, false, true}, got, "what is not a number reaches the update, which skips its step")
	got, err = WorthAStep(rows, 0)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true, true}, got)
}

// Equal entropies leave the advantages as they are, but for the mean.
func TestEMPGOfEqualEntropies(t *testing.T) {
	got, err := EMPG([]float64{1, -3}, [][]float64{{.5, .5}, {.5}}, Modulation{Gain: 1, FutureGain: 1})
	require.NoError(t, err)
	mean := (1.0 + 1 - 3) / 3
	golden.Near(t, []float64{1 - mean, 1 - mean}, got[0], 1e-15)
	golden.Near(t, []float64{-3 - mean}, got[1], 1e-15)
}
