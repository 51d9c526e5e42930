package stdio

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// The example of an environment of Gymnasium's passes the check: with a stand-in of the
// package always, with the package where it is there.
func TestGymnasiumExample(t *testing.T) {
	t.Run("standin", func(t *testing.T) {
		python(t, "testdata")
		lake(t, "gymnasium-standin")
	})
	t.Run("package", func(t *testing.T) {
		if exec.Command(python(t), "-c", "import gymnasium").Run() != nil {
			t.Skip("SKIPPED: python3 has no gymnasium (pip install gymnasium); its stand-in has been checked")
		}
		lake(t, "gymnasium-")
	})
}

// lake checks the example, which says in its version which package it has.
func lake(t *testing.T, version string) {
	var pools []*Pool
	for _, seed := range []string{"1", "2"} {
		p, err := Open(Config{Command: []string{"../../../docs/own/frozen_lake.py"}, HashSeed: seed})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		pools = append(pools, p)
	}
	require.Empty(t, check(t, pools[0], pools[1]))

	s, err := foreign.Connect(t.Context(), "lake", []byte(`{"size":5}`), pools[0].Call)
	require.NoError(t, err)
	require.Contains(t, s.Description.Version, version)
	// A group: one instance, so one map; many chances, so several places after a step.
	group := make([]foreign.Asked, 16)
	for i := range group {
		group[i] = foreign.Asked{Instance: 7, Chance: uint64(i)}
	}
	begun, err := s.Play(t.Context(), group)
	require.NoError(t, err)
	for i, a := range begun {
		require.Equal(t, begun[0].Observation, a.Observation)
		require.Equal(t, 5, len(strings.Split(a.Observation, "\n")))
		group[i].Chain, group[i].Next = a.Chain, []string{"right"}
	}
	stepped, err := s.Play(t.Context(), group)
	require.NoError(t, err)
	places := map[string]bool{}
	for _, a := range stepped {
		require.Equal(t, "Right", a.Steps[0].Action)
		places[a.Observation] = true
	}
	require.Greater(t, len(places), 1)
}
