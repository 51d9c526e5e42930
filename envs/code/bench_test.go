package code

import (
	"fmt"
	"testing"

	"github.com/reprise-rl/reprise/model/draw"
)

// BenchmarkProblem is the drawing of a problem that is not kept.
func BenchmarkProblem(b *testing.B) {
	for _, levels := range []string{"1", "2", "3"} {
		b.Run(levels, func(b *testing.B) {
			c := newCode(b, fmt.Sprintf(`{"levels":%q}`, levels))
			for n := 0; b.Loop(); n++ {
				c.Reset(instance(n), draw.Address{})
			}
		})
	}
}
