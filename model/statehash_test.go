package model

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
)

// plainLanes is the fingerprint of a snapshot of a policy, computed word by word.
func plainLanes(s Snapshot) (sum [lanes]uint32) {
	sum = stepLanes(s.Step, policyParts)
	for part, of := range []Params{s.Params, s.M, s.V} {
		for tensor, values := range of.Values {
			words := make([]uint32, len(values))
			for i, x := range values {
				words[i] = math.Float32bits(x)
			}
			for lane, w := range plainSums(words, tensor, mixWord(policyParts+uint32(part))) {
				sum[lane] += w
			}
		}
	}
	return sum
}

// plainSums are the lanes of a tensor of a part with the seed.
func plainSums(words []uint32, tensor int, seed uint32) (sum [lanes]uint32) {
	for lane := range uint32(lanes) {
		salt := 2 * (uint32(tensor)*lanes + lane)
		for place, w := range words {
			at := uint32(place)*(mixWord(salt+1)|1) + mixWord(salt+2) + seed
			sum[lane] += mixWord(w ^ at)
		}
	}
	return sum
}

// A state's fingerprint is that of its words, its step and its kind.
func TestFingerprintOfAState(t *testing.T) {
	snap := NewSnapshot(tinyParams(tiny()))
	snap.Step = 1<<40 + 3
	for i, v := range snap.V.Values {
		for at := range v {
			v[at] = float32(i*at) / 7
		}
	}
	p, err := testDevice(t).Programs(tiny(), nil, Shapes{})
	require.NoError(t, err)
	defer p.Free()
	s, err := p.Upload(snap)
	require.NoError(t, err)
	defer s.Free()
	require.Equal(t, digits(plainLanes(snap)), mark(t, s))
}

// A tensor's lanes are those of its words one by one, whether they fill blocks or not, and are
// added up without a copy of the tensor.
func TestLanesOfATensor(t *testing.T) {
	d := testDevice(t)
	const block = cost.LaneRows * cost.LaneRows
	for _, shape := range [][]int{{1}, {5}, {block - 1}, {block}, {block + 1}, {37, 3 * block}, {33*block + 7, 3}, {999, 1111}} {
		ts := TensorShape{Shape: shape}
		values := make([]float32, ts.Elements())
		half := make([]bfloat16.BFloat16, len(values))
		words, halves := make([]uint32, len(values)), make([]uint32, len(values))
		for i := range values {
			values[i] = float32(i-11) / 7
			half[i] = bfloat16.FromFloat32(values[i])
			words[i], halves[i] = math.Float32bits(values[i]), uint32(half[i])
		}
		check := func(dtype dtypes.DType, x compute.Buffer, err error, words []uint32) {
			t.Helper()
			require.NoError(t, err)
			defer free([]compute.Buffer{x})
			p := &program{name: "lanes", device: d, build: buildFingerprint(ts, dtype)}
			defer p.finalize()
			const tensor, part = 3, 2
			want := plainSums(words, tensor, mixWord(part))
			sums := newTally(d)
			defer sums.free()
			for range 2 { // added to those so far
				require.NoError(t, sums.addTensor(p, 0, x, tensor, part))
			}
			got, err := sums.read()
			require.NoError(t, err)
			require.Equal(t, [lanes]uint32{2 * want[0], 2 * want[1], 2 * want[2], 2 * want[3]}, got, "%s %v", dtype, shape)
			require.LessOrEqual(t, memoryOf(t, p.exec).Temporary, int64(len(words)/32+5*lanes*block), "%s %v", dtype, shape)
		}
		x, err := upload(d, 0, values, shape...)
		check(dtypes.Float32, x, err, words)
		x, err = upload(d, 0, half, shape...)
		check(dtypes.BFloat16, x, err, halves)
	}
}
