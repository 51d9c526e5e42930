package envs_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// mix is a mixture of one environment under several labels.
func mix(t testing.TB, shares ...float64) envs.Mixture {
	t.Helper()
	parts := make([]envs.Part, len(shares))
	for i, share := range shares {
		parts[i] = envs.Part{Label: fmt.Sprint("part-", i), Environment: corridor{}, Share: share}
	}
	m, err := envs.NewMixture(parts)
	require.NoError(t, err)
	return m
}

func TestMixture(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		order  string
	}{
		{[]float64{3}, "00000000"},
		{[]float64{0.5, 0.5}, "01010101"},
		{[]float64{1, 1, 1}, "012012012"},
		{[]float64{3, 1}, "00010001"},
		{[]float64{1, 3}, "11011101"},
		{[]float64{0.1, 0.1, 0.8}, "2222022212"},
		{[]float64{5e-324, 5e-324}, "0101"},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, "0101"},
	} {
		m := mix(t, c.shares...)
		order := strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Order(len(c.order))), " ", ""), "[]")
		require.Equal(t, c.order, order, c.shares)
		sum := 0.0
		for _, p := range m {
			sum += p.Share
		}
		require.InDelta(t, 1, sum, 1e-12)
	}
	require.Equal(t, []int{4, 4}, mix(t, 0.5, 0.5).Counts(8))
	require.Equal(t, []int{0, 0}, mix(t, 0.5, 0.5).Counts(0))
	m, err := envs.NewMixture([]envs.Part{{Environment: corridor{}, Share: 2}, {Label: "other", Environment: corridor{}, Share: 6}})
	require.NoError(t, err)
	require.Equal(t, envs.Mixture{{Label: corridor{}.Name(), Environment: corridor{}, Share: 0.25}, {Label: "other", Environment: corridor{}, Share: 0.75}}, m)
}

// After any number of groups each part's count is within one of its share.
func TestMixtureKeepsShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		shares := make([]float64, 1+r.IntN(envs.MaxParts))
		for i := range shares {
			shares[i] = math.Exp(1.5 * r.NormFloat64())
			if trial%2 == 0 {
				shares[i] = float64(1 + r.IntN(5))
			}
		}
		m := mix(t, shares...)
		const groups = 1500
		counts := make([]int, len(m))
		for g, part := range m.Order(groups) {
			counts[part]++
			for i, p := range m {
				if off := float64(counts[i]) - float64(g+1)*p.Share; math.Abs(off) > 1+1e-6 {
					t.Fatalf("%v: after %d groups part %d is off by %v", shares, g+1, i, off)
				}
			}
			if g%97 == 0 {
				require.Equal(t, part, m.Of(g))
			}
		}
		require.Equal(t, counts, m.Counts(groups))
	}
	m := mix(t, 1, 2, 3.5)
	counts := m.Counts(1 << 20)
	for i, p := range m {
		require.InDelta(t, p.Share*(1<<20), float64(counts[i]), 1.001)
	}
	require.Equal(t, m.Order(65536)[65535], m.Of(65535))
}

// Labels are as long as a spec's may be.
func TestMixtureTakesLongLabels(t *testing.T) {
	label := strings.Repeat("a", 64)
	m, err := envs.NewMixture([]envs.Part{{Label: label, Environment: corridor{}, Share: 1}})
	require.NoError(t, err)
	require.Equal(t, label, m[0].Label)
}

func TestMixtureErrors(t *testing.T) {
	env := corridor{}
	many := make([]envs.Part, envs.MaxParts+1)
	for i := range many {
		many[i] = envs.Part{Label: fmt.Sprint(i), Environment: env, Share: 1}
	}
	for _, c := range []struct {
		parts []envs.Part
		want  []string
	}{
		{nil, []string{`found 0 parts, want 1 to 32`}},
		{many, []string{`found 33 parts, want 1 to 32`}},
		{[]envs.Part{{Environment: env}, {Label: "a", Environment: env, Share: -1}}, []string{`[0].share: found 0, want a positive number`, `[1].share: found -1`}},
		{[]envs.Part{{Environment: env, Share: math.NaN()}, {Label: "a", Environment: env, Share: math.Inf(1)}}, []string{`[0].share: found NaN`, `[1].share: found +Inf`}},
		{[]envs.Part{{Environment: env, Share: 1}, {Environment: env, Share: 1}}, []string{`[1].label: found "corridor", want another one: it is [0]'s`}},
		{[]envs.Part{{Label: "a b", Environment: env, Share: 1}, {Label: strings.Repeat("a", 65), Environment: env, Share: 1}}, []string{`[0].label: found "a b", want 1 to 64 letters`, `[1].label: found "aaa`}},
		{[]envs.Part{{Share: 1}}, []string{`[0].environment: found none, want an environment`}},
		{[]envs.Part{{Environment: env, Share: 1}, {Label: "a", Environment: env, Share: 1e-7}}, []string{`[1].share: found 1e-07, want at least 1e-06 of the sum of all shares`}},
	} {
		_, err := envs.NewMixture(c.parts)
		var wrong *envs.MixtureError
		require.ErrorAs(t, err, &wrong)
		require.Len(t, wrong.Problems, len(c.want), err.Error())
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}

func BenchmarkMixtureOf65535(b *testing.B) {
	m := mix(b, 1, 2, 3.5)
	for b.Loop() {
		m.Of(65535)
	}
}
