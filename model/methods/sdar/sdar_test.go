package sdar

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestSDARGolden(t *testing.T) {
	type in struct {
		Rows              []float64
		Old, Teacher      [][]float64
		Informed          []bool
		Mask              [][]bool
		Weight, Sharpness float64
	}
	type out struct{ Advantages [][]float64 }
	g := golden.ReadMethod[in, out](t, "sdar")
	for i, c := range g.Cases {
		got, err := SDAR(c.In.Rows, c.In.Old, c.In.Teacher, c.In.Informed, c.In.Mask, Gate{Weight: c.In.Weight, Sharpness: c.In.Sharpness})
		require.NoError(t, err)
		for row := range got {
			golden.Near(t, c.Out.Advantages[row], got[row], g.Tolerance, "case %d, row %d", i, row)
		}
	}
}

// By hand, with a sharpness of 1: a teacher that finds a token three times as likely opens the gate to 3/4, one that finds it a third
// as likely to 1/4, and one that agrees to 1/2. A row whose teacher was shown nothing has its own advantage.
func TestWorked(t *testing.T) {
	three := math.Log(3)
	mask := [][]bool{{false, true, true, true}, {true}}
	old, teacher := [][]float64{{-9, -2, -2, -2}, {-1}}, [][]float64{{-1, -2 + three, -2 - three, -2}, {-1}}
	got, err := SDAR([]float64{-1, -1}, old, teacher, []bool{true, false}, mask, Gate{Weight: 0.4, Sharpness: 1})
	require.NoError(t, err)
	golden.Near(t, []float64{0, -0.7, -0.9, -0.8}, got[0], 1e-15)
	require.Equal(t, []float64{-1}, got[1])
	all, err := SDAR([]float64{-1, -1}, old, teacher, []bool{true, true}, mask, Gate{Weight: 0.4, Sharpness: 1})
	require.NoError(t, err)
	require.Equal(t, got[0], all[0])
	golden.Near(t, []float64{-0.8}, all[1], 1e-15)
}

// However far apart they are, the gate is from 0 to 1.
func TestTheGateIsAShare(t *testing.T) {
	got, err := SDAR([]float64{0}, [][]float64{{-1000, 0}}, [][]float64{{0, -1000}}, []bool{true}, [][]bool{{true, true}}, Gate{Weight: 1, Sharpness: 1e6})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 0}, got[0])
}

func TestErrors(t *testing.T) {
	of := func(_ [][]float64, err error) error { return err }
	row, one, yes, mask, gate := []float64{1}, [][]float64{{-1}}, []bool{true}, [][]bool{{true}}, Gate{Weight: 1, Sharpness: 1}
	credittest.Refused(t, map[string]credittest.Refusal{
		"policy":    {of(SDAR(row, [][]float64{{math.NaN()}}, one, yes, mask, gate)), credit.ErrNotFinite, "row 0, token 0 are NaN by the policy and -1 by the teacher"},
		"teacher":   {of(SDAR(row, one, [][]float64{{math.Inf(-1)}}, yes, mask, gate)), credit.ErrNotFinite, "-Inf by the teacher"},
		"rows":      {of(SDAR(row, one, nil, yes, mask, gate)), credit.ErrInput, "0 rows of log-probs of the teacher"},
		"tokens":    {of(SDAR(row, [][]float64{{-1, -1}}, one, yes, mask, gate)), credit.ErrInput, "row 0 has 2 log-probs"},
		"informed":  {of(SDAR(row, one, one, nil, mask, gate)), credit.ErrInput, "0 rows are informed or not, 1 of the mask"},
		"advantage": {of(SDAR(nil, one, one, yes, mask, gate)), credit.ErrInput, "0"},
		"weight":    {of(SDAR(row, one, one, yes, mask, Gate{Sharpness: 1})), credit.ErrInput, "the gate's weight is 0 and its sharpness 1"},
		"sharpness": {of(SDAR(row, one, one, yes, mask, Gate{Weight: 1, Sharpness: math.Inf(1)})), credit.ErrInput, "its sharpness +Inf"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t, credittest.Bits{Name: "sdar", Want: "5d7e1d76f479", Compute: func() ([][]float64, error) {
		return SDAR(e.Returns, e.Values, e.Tokens, slices.Repeat([]bool{true}, len(e.Mask)), e.Mask, Gate{Weight: 0.3, Sharpness: 1.7})
	}})
}
