package envturn

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// BenchmarkTurn plays the third turn of 128 episodes in two workflows at the same time, the
// replay of the two turns before it included: what a turn of a run would cost.
func BenchmarkTurn(b *testing.B) {
	for name, start := range map[string]func(b *testing.B){
		"go":     func(b *testing.B) { start(b, "bench-go", standin.None, "") },
		"python": func(b *testing.B) { python(b, "bench-python") },
	} {
		b.Run(name, func(b *testing.B) {
			start(b)
			s, err := connect(b, "bench-"+name, time.Minute)
			require.NoError(b, err)
			asked := episodes()
			for turn := range 3 {
				for i, a := range playAll(b, s, asked) {
					if turn > 0 {
						asked[i].Played = append(slices.Clone(asked[i].Played), asked[i].Next[:len(a.Steps)]...)
					}
					asked[i].Chain, asked[i].Next = a.Chain, []string{"1"}
				}
			}
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				playAll(b, s, asked)
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms/turn")
		})
	}
}
