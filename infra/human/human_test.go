package human

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 5 << 40: "5.0 TiB", 1 << 62: "4096.0 PiB"} {
		require.Equal(t, want, Bytes(n))
	}
}

func TestShellWord(t *testing.T) {
	for id, want := range map[string]string{"bandit-1": "bandit-1", "a/b_c.d": "a/b_c.d", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		require.Equal(t, want, ShellWord(id))
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		format string
		v      float64
		want   string
	}{
		{"%.2f", 0.5, "0.50"}, {"%.2f", 5.3e-7, "5.3e-07"}, {"%.2f", 0.0312, "0.031"}, {"%.2f", 0, "0.00"}, {"%.3f", -4e-9, "-4e-09"},
		{"%6.3f", 0.5, " 0.500"}, {"%6.3f", 0.004, " 0.004"}, {"%.2f", math.Inf(1), "+Inf"}, {"%.2f", math.NaN(), "NaN"},
	} {
		require.Equal(t, c.want, Number(c.format, c.v))
	}
}

func TestMiddle(t *testing.T) {
	require.Equal(t, "äbc", Middle("äbc", 3))
	require.Equal(t, "äb…fg", Middle("äbcdefg", 5))
	require.Equal(t, "äb…g", Middle("äbcdefg", 4))
}
