package losses

import (
	"maps"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// A name that a spec may have is computed, and what is computed has a name.
func TestEveryNameHasATerm(t *testing.T) {
	// Of these there is one, which Policy computes itself.
	frame := []terms.Kind{terms.Frame, terms.Imitation, terms.Weighing}
	kinds := map[terms.Kind]bool{}
	for _, term := range terms.Table {
		kinds[term.Kind] = true
	}
	for kind := range kinds {
		got := slices.Sorted(maps.Keys(registered[kind]))
		want := slices.Sorted(slices.Values(terms.Names(kind)))
		if slices.Contains(frame, kind) {
			require.Len(t, want, 1, kind)
			require.Empty(t, got, kind)
			continue
		}
		require.Equal(t, want, got, kind)
	}
	for kind := range registered {
		require.True(t, kinds[kind], kind)
	}
	require.Panics(t, func() { find[surrogate](terms.Term{Name: "tv", Kind: terms.Surrogate}) })
	require.Panics(t, func() { find[guard](terms.Of(terms.Surrogate)[0]) })
	require.Panics(t, func() { Columns{}.Column(batch.Turns) })
	require.Panics(t, func() { Numbers{}.Knob(terms.RatioCap) })
}

// A term may leave its derivative out: then the compiler differentiates its loss. Those of surrogates whose weights are
// differentiated are what stands beside them.
func TestTheCompilerDifferentiates(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	// The logarithms of the ratios are 0.2, −0.2, 0.45, −0.64, 0 and 29.8, which is beyond the bound; the fifth token is not used.
	logProbs := []float64{-1, -2, -0.5, -3, -1, -0.2}
	old := []float64{-1.2, -1.8, -0.95, -2.36, -1, -30}
	advantages := []float64{1, -2, 0.5, -0.25, 3, -1}
	for _, name := range []loss.Surrogate{loss.Clip, loss.SAPO} {
		of := terms.Selection{Surrogate: name}
		run := func() (out [][]float64) {
			exec, err := graph.NewExec(backend, func(logProb, old, advantage, share, knobs *graph.Node) []*graph.Node {
				bound := graph.MulScalar(graph.OnesLike(logProb), 0.25)
				columns := Columns{Weight: share, Share: share, Own: map[batch.Column]*graph.Node{
					batch.OldLogProbs: old, batch.Advantages: advantage, batch.ClipLow: bound, batch.ClipHigh: bound,
				}}
				d := Policy(of, Sizes{Rows: 2, Width: 3, Wide: dtypes.Float64}, logProb, graph.ZerosLike(logProb), columns, knobs)
				return []*graph.Node{d.ByLogProb, d.ByEntropy, d.Metrics}
			})
			require.NoError(t, err)
			knobs := make([]float64, len(of.PolicyLayout().Knobs))
			for i, k := range of.PolicyLayout().Knobs {
				knobs[i] = k.Default
			}
			got, err := exec.Call(logProbs, old, advantages, []float64{0.2, 0.2, 0.2, 0.2, 0, 0.2}, knobs)
			require.NoError(t, err)
			for _, x := range got {
				out = append(out, x.Value().([]float64))
			}
			return out
		}
		beside := run()
		term := registered[terms.Surrogate][string(name)].(surrogate)
		registered[terms.Surrogate][string(name)] = surrogate(func(x Tokens) (value, slope, bound *graph.Node) {
			value, _, bound = term(x)
			return value, nil, bound
		})
		differentiated := run()
		registered[terms.Surrogate][string(name)] = term
		require.NotZero(t, beside[0][0])
		require.Zero(t, beside[0][4])
		for i := range beside {
			require.InDeltaSlice(t, beside[i], differentiated[i], 1e-12, "%s, output %d", name, i)
		}
	}
}
