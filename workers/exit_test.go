package workers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
)

func TestExitCodes(t *testing.T) {
	seen := map[int]bool{0: true, 1: true, 2: true}
	for _, e := range Exits {
		require.False(t, seen[e.Code], "%d", e.Code)
		seen[e.Code] = true
		require.Equal(t, e.Code, ExitCode(fmt.Errorf("worker: %w", &device.Ending{Cause: e.Cause})))
		meaning, known := ExitMeaning(e.Code)
		require.True(t, known)
		require.Equal(t, e.Meaning, meaning)
	}
	require.Equal(t, 1, ExitCode(errors.New("no server")))
	_, known := ExitMeaning(1)
	require.False(t, known)
}
