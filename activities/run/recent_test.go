package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecent(t *testing.T) {
	r := recent[int]{most: 2}
	_, ok := r.get("a")
	require.False(t, ok)
	r.put("a", 1)
	r.put("b", 2)
	r.get("a")
	r.put("c", 3)
	_, ok = r.get("b")
	require.False(t, ok, "it was used longest ago")
	for key, want := range map[string]int{"a": 1, "c": 3} {
		got, ok := r.get(key)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	r.put("c", 4)
	require.Len(t, r.order, 2)
}
