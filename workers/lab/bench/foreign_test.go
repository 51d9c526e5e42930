package bench

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
)

// A turn of a foreign environment is measured over both transports; how long it takes is not
// tested.
func TestForeignTurns(t *testing.T) {
	s := &benchmark{servers: dev.Options{Ephemeral: true}, say: func(string) {}}
	err := s.foreign(t.Context())
	devtest.Needs(t, err)
	require.NoError(t, err)
	require.Len(t, s.r.Foreign, 2)
	var b strings.Builder
	printForeign(&b, s.r.Foreign)
	require.Contains(t, b.String(), "Temporal, in Go")
	require.Positive(t, s.r.Foreign[1].Milliseconds)
	if _, err := exec.LookPath(python()); err != nil {
		require.Contains(t, b.String(), "not measured: no Python")
		return
	}
	require.Positive(t, s.r.Foreign[0].Milliseconds)
	t.Log(b.String())
}
