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

// Each order of four items comes up as often as any other, and each of three numbers.
func TestPermutationIsFair(t *testing.T) {
	const draws = 24000
	orders, numbers := map[[4]int]int{}, map[int]int{}
	for i := range draws {
		a := Address{Purpose: Shuffle, Iteration: int64(i)}
		orders[[4]int(a.Permutation(4))]++
		numbers[a.Below(3)]++
	}
	require.Len(t, orders, 24)
	for _, n := range orders {
		require.InDelta(t, draws/24, n, 160) // 5 standard errors
	}
	require.Len(t, numbers, 3)
	for _, n := range numbers {
		require.InDelta(t, draws/3, n, 370) // 5 standard errors
	}
	require.Equal(t, Address{Seed: 1}.Permutation(9), Address{Seed: 1}.Permutation(9))
	require.Empty(t, Address{}.Permutation(0))
}
