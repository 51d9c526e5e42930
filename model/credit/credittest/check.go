// Package credittest has what the tests of several rooms of model/methods read, and how they compare.
package credittest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/golden"
)

// Worked reads an example of the package's testdata, worked out by hand in its comments; all of the file if
// name is "".
func Worked[T any](t *testing.T, file, name string) T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	if name != "" {
		var parts map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(content, &parts))
		require.Contains(t, parts, name)
		content = parts[name]
	}
	var v T
	require.NoError(t, json.Unmarshal(content, &v))
	return v
}

// Near compares figures of seven digits.
func Near(t *testing.T, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		require.Len(t, got[row], len(want[row]), "row %d", row)
		for i := range want[row] {
			require.InDelta(t, want[row][i], got[row][i], 1e-7, "row %d, %d", row, i)
		}
	}
}

// Within compares numbers by rows.
func Within(t *testing.T, tolerance float64, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		golden.Near(t, want[row], got[row], tolerance, "row %d", row)
	}
}

// Exact compares figures of seven digits where places are true, and wants 0 itself elsewhere.
func Exact(t *testing.T, want, got [][]float64, places [][]bool) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		require.Len(t, got[row], len(want[row]), "row %d", row)
		for at, yes := range places[row] {
			if yes {
				require.InDelta(t, want[row][at], got[row][at], 1e-7, "row %d, %d", row, at)
			} else {
				require.Equal(t, 0.0, got[row][at], "row %d, %d", row, at)
			}
		}
	}
}

// EqualRL compares where the mask is true, and wants 0 elsewhere.
func EqualRL(t *testing.T, c golden.RL, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row, sampled := range c.Sampled() {
		for at, yes := range sampled {
			if yes {
				require.InDelta(t, want[row][at], got[row][at], golden.RLTolerance, "row %d token %d", row, at)
			} else {
				require.Zero(t, got[row][at], "row %d token %d", row, at)
			}
		}
	}
}

// SpansOf are turns of the given lengths, one after another.
func SpansOf(lengths []int) (spans []credit.Span, end int) {
	for _, n := range lengths {
		spans = append(spans, credit.Span{From: end, To: end + n})
		end += n
	}
	return spans, end
}

// A Refusal is what a call has returned, and the error that it must be.
type Refusal = struct {
	Err  error
	Kind error
	Text string
}

// Refused wants each call to have been refused, by a test of its name.
func Refused(t *testing.T, calls map[string]Refusal) {
	t.Helper()
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.Err, c.Kind)
			require.ErrorContains(t, c.Err, c.Text)
		})
	}
}

// A Range is what a call has returned for a number at the edge of its range, and the kind of error that it
// must be; nil for none.
type Range = struct{ Err, Kind error }

// Ranges compares each call, by a test of its name.
func Ranges(t *testing.T, calls map[string]Range) {
	t.Helper()
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			if c.Kind == nil {
				require.NoError(t, c.Err)
			} else {
				require.ErrorIs(t, c.Err, c.Kind)
			}
		})
	}
}

// Bits are what SameBits computes, and the digest of its numbers.
type Bits struct {
	Name, Want string
	Compute    func() ([][]float64, error)
}

// SameBits compares the bits of numbers, by a test of its name each. Advantages are computed by whichever
// host is free, so their bits must not depend on whether its processor fuses a product with a sum (arm64
// and GOAMD64=v3 do). The digests come from a machine that does not.
func SameBits(t *testing.T, cases ...Bits) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := c.Compute()
			require.NoError(t, err)
			h := sha256.New()
			for _, row := range got {
				for _, x := range row {
					h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
				}
			}
			require.Equal(t, c.Want, hex.EncodeToString(h.Sum(nil)[:6]))
		})
	}
}
