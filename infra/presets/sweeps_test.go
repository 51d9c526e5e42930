package presets_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Presets of sweeps expand, and each has a twin that varies the same fields on the
// starter.
func TestSweepsDecode(t *testing.T) {
	known := sweep.Known{Spec: spec.Known{Environments: []string{"bandit", "frozenlake", "sokoban"}}, Base: presets.Read}
	trials := map[string]int{"fig7-filter": 12, "fig7-filter-starter": 6}
	for _, name := range presets.Names() {
		if !strings.HasPrefix(name, sweeps) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b, err := presets.Read(name)
			require.NoError(t, err)
			d, expanded, err := sweep.Decode(b, known)
			require.NoError(t, err)
			require.NotEmpty(t, d.Description)
			require.Len(t, expanded, trials[name])
			train, err := spec.Decode(expanded[0].Spec, known.Spec)
			require.NoError(t, err)
			if strings.HasSuffix(name, "-starter") {
				require.Equal(t, spec.FromStarter, train.Policy.From)
				require.LessOrEqual(t, train.Limits.ActivitySeconds, 60)
			} else {
				require.Equal(t, 8*16, train.Rollout.Trajectories())
				require.Equal(t, 200, train.Iterations)
			}
		})
	}
}
