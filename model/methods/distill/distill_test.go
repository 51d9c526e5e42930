package distill

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestDistillGolden(t *testing.T) {
	type in struct {
		Old, Teacher [][]float64
		Returns      []float64
		Groups       []int
		Mask         [][]bool
	}
	type out struct {
		Advantages [][]float64
		KL         float64
	}
	g := golden.ReadMethod[in, out](t, "distill")
	for i, c := range g.Cases {
		got, err := Distill(c.In.Old, c.In.Teacher, c.In.Returns, c.In.Groups, c.In.Mask, 1)
		require.NoError(t, err)
		for row := range got {
			golden.Near(t, c.Out.Advantages[row], got[row], g.Tolerance, "case %d, row %d", i, row)
		}
		golden.Near(t, []float64{c.Out.KL}, []float64{credit.Divergence(c.In.Old, c.In.Teacher, c.In.Mask)}, g.Tolerance, "case %d", i)
	}
}

// With the policy as its own teacher it is SDPO's gradient, whose mask leaves out the rows that were shown nothing: their teacher's
// log-probs are their own.
func TestSDPOGolden(t *testing.T) {
	type in struct {
		Old, Teacher [][]float64
		Mask         [][]bool
	}
	type out struct{ Advantages [][]float64 }
	g := golden.ReadMethod[in, out](t, "sdpo")
	for i, c := range g.Cases {
		got, err := Distill(c.In.Old, c.In.Teacher, nil, nil, c.In.Mask, 0)
		require.NoError(t, err)
		for row := range got {
			golden.Near(t, c.Out.Advantages[row], got[row], g.Tolerance, "case %d, row %d", i, row)
		}
	}
}

// By hand: a teacher that is twice as sure of a token gives it ln 2, one that is half as sure takes ln 2 from it, and what the
// context holds counts nothing.
func TestWorked(t *testing.T) {
	half, quarter := math.Log(0.5), math.Log(0.25)
	mask := [][]bool{{false, true, true, true}}
	old, teacher := [][]float64{{-9, quarter, half, half}}, [][]float64{{-1, half, half, quarter}}
	got, err := Distill(old, teacher, nil, nil, mask, 0)
	require.NoError(t, err)
	golden.Near(t, []float64{0, math.Ln2, 0, -math.Ln2}, got[0], 1e-15)
	require.Zero(t, credit.Divergence(old, teacher, mask))
	require.InDelta(t, math.Ln2/2, credit.Divergence(old, teacher, [][]bool{{false, false, true, true}}), 1e-15)
	require.Zero(t, credit.Divergence(old, teacher, [][]bool{{false, false, false, false}}))
}

// Over the policy's own tokens the mean advantage is −KL(policy ‖ teacher): here of two tokens, by their probabilities.
func TestTheExpectationIsTheReverseKL(t *testing.T) {
	p, q := []float64{0.8, 0.2}, []float64{0.5, 0.5}
	var mean, kl float64
	for i := range p {
		got, err := Distill([][]float64{{math.Log(p[i])}}, [][]float64{{math.Log(q[i])}}, nil, nil, [][]bool{{true}}, 0)
		require.NoError(t, err)
		mean += p[i] * got[0][0]
		kl += p[i] * math.Log(p[i]/q[i])
	}
	require.InDelta(t, -kl, mean, 1e-15)
	require.Greater(t, kl, 0.1)
}

func TestErrors(t *testing.T) {
	of := func(_ [][]float64, err error) error { return err }
	one, mask := [][]float64{{-1}}, [][]bool{{true}}
	credittest.Refused(t, map[string]credittest.Refusal{
		"policy":  {of(Distill([][]float64{{math.NaN()}}, one, nil, nil, mask, 0)), credit.ErrNotFinite, "row 0, token 0 are NaN by the policy and -1 by the teacher"},
		"teacher": {of(Distill(one, [][]float64{{math.Inf(-1)}}, nil, nil, mask, 0)), credit.ErrNotFinite, "-Inf by the teacher"},
		"rows":    {of(Distill(one, nil, nil, nil, mask, 0)), credit.ErrInput, "0 rows of log-probs of the teacher"},
		"tokens":  {of(Distill([][]float64{{-1, -1}}, one, nil, nil, mask, 0)), credit.ErrInput, "row 0 has 2 log-probs"},
		"weight":  {of(Distill(one, one, nil, nil, mask, -1)), credit.ErrInput, "the weight of the task is -1"},
		"returns": {of(Distill(one, one, nil, nil, mask, 1)), credit.ErrInput, "0 returns, 1 rows"},
		"reward":  {of(Distill(one, one, []float64{math.NaN()}, []int{0}, mask, 1)), credit.ErrRewards, "row 0 has NaN"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t, credittest.Bits{Name: "distill", Want: "44aaa4ca2a43", Compute: func() ([][]float64, error) {
		return Distill(e.Values, e.Tokens, e.Returns, e.Groups, e.Mask, 0.3)
	}})
}
