package model

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCompile compiles the programs of narrow policies with 6 and 24 layers: programs
// are unrolled over layers, and compile time should grow no more than they do.
//
//	go test ./model -run '^$' -bench BenchmarkCompile -benchtime 1x
func BenchmarkCompile(b *testing.B) {
	d := testDevice(b)
	for _, layers := range []int{6, 24} {
		b.Run(fmt.Sprintf("%d-layers", layers), func(b *testing.B) {
			c := benchConfig()
			c.HiddenSize, c.HeadDim, c.IntermediateSize, c.Layers = 64, 16, 160, layers
			seconds := map[kind]float64{}
			for b.Loop() {
				p, err := d.Programs(c, nil, Shapes{GenerateRows: 16, PromptTokens: 64, MaxNewTokens: 32, MicroBatch: 8, Sequence: 96})
				require.NoError(b, err)
				for _, k := range slices.Sorted(maps.Keys(p.progs)) {
					begin := processorSeconds(b)
					require.NoError(b, p.progs[k].compile())
					seconds[k] += processorSeconds(b) - begin
				}
				p.Free()
			}
			all := 0.0
			for k, s := range seconds {
				all += s
				b.ReportMetric(s/float64(b.N), string(k)+"-s")
			}
			b.ReportMetric(all/float64(b.N), "all-s")
		})
	}
}

// processorSeconds is the processor time that the process has used.
func processorSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
