package sweep

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// A judge that sees points as they come, in any order of trials, decides in the end what
// one decides that sees all at once, and looks at few of them again.
func TestJudge(t *testing.T) {
	rungs := []int{2, 4, 8}
	for _, rule := range []*Stopping{{Method: Median, MinTrials: 3}, {Method: Halving, Factor: 3, MinTrials: 2}} {
		draw := rand.New(rand.NewPCG(3, 4))
		const trials = 200
		whole := make([]Progress, trials)
		for i := range whole {
			whole[i].Ended = true
			for range draw.IntN(len(rungs) + 1) {
				v := canon.Float(draw.Float64())
				whole[i].Points = append(whole[i].Points, Point{Known: true, Judged: v, Against: v})
			}
		}
		want := rule.Decide(whole, rungs, Maximize)
		require.NotEmpty(t, want)

		now := make([]Progress, trials)
		looks := 0
		judge := rule.NewJudge(rungs, Maximize)
		var got []Decision
		for more := true; more; {
			more = false
			for _, i := range draw.Perm(trials) {
				if now[i].Ended {
					continue
				}
				more = true
				if n := len(now[i].Points); n < len(whole[i].Points) {
					now[i].Points = whole[i].Points[:n+1]
				} else {
					now[i].Ended = true
				}
				got = append(got, judge.Decide(trials, func(i int) Progress { looks++; return now[i] })...)
			}
		}
		slices.SortFunc(got, func(a, b Decision) int { return cmp.Compare(a.Trial, b.Trial) })
		require.Equal(t, want, got)
		require.Less(t, looks, 10*trials*len(rungs))
	}
}

func TestContinues(t *testing.T) {
	one := []Point{{Known: true, Judged: 1, Against: canon.Float(math.NaN())}}
	two := append(slices.Clone(one), Point{Known: true})
	require.True(t, Continues(one, two))
	require.True(t, Continues(nil, one))
	require.False(t, Continues(two, one))
	require.False(t, Continues([]Point{{Known: true, Judged: 2}}, two))
}
