package gdpo

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

func TestGDPOGolden(t *testing.T) {
	type in struct {
		Groups, Lengths []int
		Components      map[string][]float64
		Weights         map[string]float64
		Epsilon         float64
	}
	type out struct{ Sum, Advantage []float64 }
	g := golden.ReadMethod[in, out](t, "gdpo")
	for _, c := range g.Cases {
		var names []string
		for name := range c.In.Components {
			names = append(names, name)
		}
		slices.Sort(names)
		components, mask := make([][]float64, len(c.In.Groups)), make([][]bool, len(c.In.Groups))
		var weights []float64
		for _, name := range names {
			weights = append(weights, c.In.Weights[name])
			for row, v := range c.In.Components[name] {
				components[row] = append(components[row], v)
			}
		}
		for row, n := range c.In.Lengths {
			mask[row] = slices.Repeat([]bool{true}, n)
		}
		o := credit.Options{NormalizeByStd: true, Epsilon: c.In.Epsilon}
		sums, err := ComponentSums(components, weights, c.In.Groups, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Sum, sums, g.Tolerance)
		tokens, err := GDPO(components, weights, c.In.Groups, mask, o)
		require.NoError(t, err)
		for row, advantage := range c.Out.Advantage {
			golden.Near(t, slices.Repeat([]float64{advantage}, len(mask[row])), tokens[row], g.Tolerance)
		}
	}
}

// The worked numbers of the method's description.
func TestGDPOWorked(t *testing.T) {
	four := []int{0, 0, 0, 0}
	sums, err := ComponentSums([][]float64{{1, 0}, {0, 1}, {0, 1}, {0, 0}}, []float64{1, 1}, four, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
	require.NoError(t, err)
	golden.Near(t, []float64{.634, .366, .366, -1.366}, sums, 1e-3)
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	one, two := [][]float64{{1}}, [][]float64{{1, 2}}
	gdpo := func(c [][]float64, w []float64, g []int, o credit.Options) error {
		_, err := GDPO(c, w, g, [][]bool{{true}}, o)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"gdpo weight":     {gdpo(one, []float64{nan}, []int{0}, credit.Options{}), credit.ErrInput, "the weight of component 0 is NaN"},
		"gdpo components": {gdpo(two, []float64{1}, []int{0}, credit.Options{}), credit.ErrInput, "row 0 has 2 components, there are 1 weights"},
		"gdpo groups":     {gdpo(one, []float64{1}, nil, credit.Options{}), credit.ErrInput, "components of 1 rows, 0 group indexes"},
		"gdpo reward":     {gdpo([][]float64{{nan}}, []float64{1}, []int{0}, credit.Options{}), credit.ErrRewards, "component 0: unusable rewards: row 0 has NaN"},
		"gdpo rows":       {gdpo([][]float64{{1}, {2}}, []float64{1}, []int{0, 0}, credit.Options{}), credit.ErrInput, "2 advantages for 1 rows"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t,
		credittest.Bits{Name: "gdpo", Want: "541b0aaa5dd2", Compute: func() ([][]float64, error) {
			components := make([][]float64, len(e.Returns))
			for row := range components {
				components[row] = []float64{e.Returns[row], e.Rewards[row][0]}
			}
			return GDPO(components, []float64{1, 0.3}, e.Groups, e.Mask, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
		}},
	)
}
