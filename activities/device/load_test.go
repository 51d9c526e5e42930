package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

func TestLoadOf(t *testing.T) {
	require.Equal(t, &activities.Load{Average: 31.5, Cores: 2}, loadOf("31.50 20.00 9.00 3/400 1\n", 2))
	require.Equal(t, "load 32 on 2 cores", loadOf("31.50 20.00 9.00 3/400 1\n", 2).String())
	require.Nil(t, loadOf("1.99 20.00 9.00 3/400 1\n", 2), "it has less to do than it can")
	require.Nil(t, loadOf("", 2))
	require.Nil(t, loadOf("x y", 2))
}
