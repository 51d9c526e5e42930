package program

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workers"
)

// An iteration of other programs has a status of its own: nothing is said to differ.
func TestReplayNeedsPrograms(t *testing.T) {
	differ := activities.SamePrograms(map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "3", "b": "2"})
	err := needs("r", workers.Replay{Branch: 1, Iteration: 12, Wanted: "f00d"}, fmt.Errorf("restore: %w", differ))
	require.Equal(t, 3, status(err))
	require.EqualError(t, err, `iteration 12 of branch 1 of r needs other programs than this build lowers, with fingerprint f00d:
  a: needed 1, this build's 3
replay it with the build that began the branch: programs differ from the recorded ones`)
	other := errors.New("no store")
	require.Equal(t, other, needs("r", workers.Replay{}, other))
	require.Equal(t, 1, status(other))
}
