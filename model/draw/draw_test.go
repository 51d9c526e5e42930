package draw

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The first draws of one address are pinned: a change here changes every run.
func TestStreamsArePinned(t *testing.T) {
	a := Address{Seed: 1, Purpose: Sample, Branch: 0, Iteration: 3, Group: 2, Member: 5, Turn: 1}
	out := make([]float32, 4)
	a.Uniforms(out)
	again := make([]float32, 4)
	a.Uniforms(again)
	require.Equal(t, out, again)
	require.Equal(t, []float32{0.6880968, 0.33139884, 0.8155595, 0.37623507}, out)
}

// Each field of an address leads to a stream of its own.
func TestEveryFieldCounts(t *testing.T) {
	base := Address{Seed: 1, Purpose: Chance, Branch: 1, Iteration: 1, Group: 1, Member: 1, Turn: 1, Step: 1}
	seen := map[uint64]Address{base.Rand().Uint64(): base}
	for _, change := range []func(*Address){
		func(a *Address) { a.Seed++ },
		func(a *Address) { a.Purpose = Evaluation.With(Chance) },
		func(a *Address) { a.Branch++ },
		func(a *Address) { a.Iteration++ },
		func(a *Address) { a.Group++ },
		func(a *Address) { a.Member++ },
		func(a *Address) { a.Turn++ },
		func(a *Address) { a.Step++ },
	} {
		a := base
		change(&a)
		v := a.Rand().Uint64()
		require.NotContains(t, seen, v)
		seen[v] = a
	}
}

func TestUniformsStayBelowOne(t *testing.T) {
	out := make([]float32, 1<<16)
	Address{Purpose: Sample}.Uniforms(out)
	for _, u := range out {
		require.GreaterOrEqual(t, u, float32(0))
		require.Less(t, u, float32(1))
		require.Equal(t, u*(1<<24), float32(int(u*(1<<24))))
	}
}
