package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainLanes is the fingerprint of a snapshot of a policy, computed word by word.
func plainLanes(s Snapshot) (sum [lanes]uint32) {
	sum = stepLanes(s.Step, policyParts)
	for part, of := range []Params{s.Params, s.M, s.V} {
		seed := mixWord(policyParts + uint32(part))
		for tensor, values := range of.Values {
			for lane := range uint32(lanes) {
				salt := 2 * (uint32(tensor)*lanes + lane)
				for place, x := range values {
					at := uint32(place)*(mixWord(salt+1)|1) + mixWord(salt+2) + seed
					sum[lane] += mixWord(math.Float32bits(x) ^ at)
				}
			}
		}
	}
	return sum
}

// The blocks that the words of a tensor are mixed in do not change the fingerprint, whether
// they divide the tensor or not.
func TestFingerprintDoesNotDependOnBlocks(t *testing.T) {
	snap := NewSnapshot(tinyParams(tiny()))
	snap.Step = 1<<40 + 3
	for i, v := range snap.V.Values {
		for at := range v {
			v[at] = float32(i*at) / 7
		}
	}
	want := digits(plainLanes(snap))
	l := defaultLimits
	for _, l.words = range []int{5, 64, 100, defaultLimits.words} {
		p, err := testDevice(t).programsWith(tiny(), nil, Shapes{}, l)
		require.NoError(t, err)
		s, err := p.Upload(snap)
		require.NoError(t, err)
		require.Equal(t, want, mark(t, s), "%d words", l.words)
		s.Free()
		p.Free()
	}
}
