package chaos

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workflows"
)

// changedProgram is the name that a manifest has for the program of a build of
// faults.OtherPrograms that differs.
const changedProgram = "turn-1." + faults.OtherProgram

// underOtherPrograms starts the run of one turn, kills its worker in iteration 3, and has
// only a worker of a build with another program up: the run waits, and its status names
// what is wanted and what is there.
func underOtherPrograms(t *testing.T) (*lane, *process) {
	t.Helper()
	l := newLane(t, sharedStack(t)).withStarter()
	first := l.worker(workerOptions{fault: "Score#3/begin/1"})
	l.start(chaosRun, single.spec(t))
	first.dies(t)
	other := l.worker(workerOptions{build: faults.OtherPrograms, trace: true})
	s := l.reaches(chaosRun, "a wait for its programs", func(s workflows.Status) bool {
		return s.Waiting != nil && len(s.Waiting.Programs) > 0
	})
	began := l.manifest(chaosRun, 2)
	require.Equal(t, "waiting for a worker with the run's programs", s.Phase)
	require.Equal(t, began.Fingerprint, s.Waiting.Wanted)
	require.Equal(t, []string{began.Fingerprint}, s.Waiting.Present)
	require.Contains(t, s.Waiting.Reason, changedProgram)
	require.Len(t, s.Waiting.Programs, 1)
	differs := s.Waiting.Programs[0]
	require.Equal(t, changedProgram, differs.Name)
	require.Equal(t, began.Programs[changedProgram], differs.Recorded)
	require.Len(t, differs.Present, len(differs.Recorded))
	require.NotEqual(t, differs.Recorded, differs.Present)
	return l, other
}

// TestBuildOtherPrograms has only a worker of a build with another program up. It serves
// the run's queue, so the run tries it again and again, and does not end. The build that
// began the run continues it.
func TestBuildOtherPrograms(t *testing.T) {
	beside(t)
	want := reference(t)
	l, other := underOtherPrograms(t)
	eventually(t, patience, "a second try", func() error { return saysTimes(other, "Restore took", 2) })
	is, err := l.state(chaosRun)
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, is)
	require.Equal(t, 2, l.committed(chaosRun))
	other.kill()
	l.worker(workerOptions{})
	l.completes(chaosRun)
	for _, step := range []string{"Generate", "Score", "Update"} {
		require.NotContains(t, other.text(), step+" took")
	}
	l.isAs(chaosRun, want)
}

// TestBuildAdopts has the run adopt the programs of the other build: it goes back to its
// newest snapshot and ends in a branch that names both sets of programs. What was
// committed stays.
func TestBuildAdopts(t *testing.T) {
	beside(t)
	want := reference(t)
	l, _ := underOtherPrograms(t)
	out, err := l.update(chaosRun, "adopt-programs", `{}`)
	require.NoError(t, err)
	require.Contains(t, out, "branch 1 begins at the snapshot of version 2: 1 committed iteration is given up (2)")
	l.completes(chaosRun)
	require.Equal(t, 5, l.committed(chaosRun))
	l.verifies(chaosRun)

	left := l.manifest(chaosRun, 2)
	first := l.firstOf(t, 1)
	require.Equal(t, 2, first.Iteration)
	require.Equal(t, store.ManifestKey(chaosRun, 0, 1), first.Parent.Key)
	var opened activities.Opened
	require.NoError(t, json.Unmarshal(first.Opened, &opened))
	require.NotNil(t, opened.Adopted)
	require.Equal(t, left.Programs, opened.Adopted.Programs)
	require.Equal(t, left.Fingerprint, opened.Adopted.Fingerprint)
	require.Equal(t, left.Fingerprint, first.Fingerprint)
	for name, hash := range left.Programs {
		require.Equal(t, name != changedProgram, first.Programs[name] == hash, name)
	}
	require.Equal(t, left.StateBefore, first.StateBefore)

	have := reach(t, l.store, chaosRun)
	for n := range 3 {
		require.Contains(t, have, store.ManifestKey(chaosRun, 0, n))
	}
	for key, digest := range have {
		if want[key] != "" {
			require.Equal(t, want[key], digest, key)
		}
	}
	// The build that began the run has not the programs of the branch.
	out, err = l.reprise("replay", chaosRun, "--iteration", fmt.Sprint(first.Iteration))
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, 3, exit.ExitCode(), out)
	require.Contains(t, out, "replay it with the build that began the branch")
}

// TestBuildOtherNumerics has only a worker of a build with a higher Numerics up. It serves
// another queue: the run waits for a device, and says which fingerprint is wanted and which
// is there.
func TestBuildOtherNumerics(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	first := l.worker(workerOptions{fault: "Update#2/begin/1"})
	l.start(chaosRun, single.spec(t))
	first.dies(t)
	other := l.worker(workerOptions{build: faults.OtherNumerics, trace: true})
	s := l.reaches(chaosRun, "a wait that names both fingerprints", func(s workflows.Status) bool {
		return s.Waiting != nil && len(s.Waiting.Present) > 0
	})
	require.Equal(t, "waiting for a device", s.Phase)
	require.Equal(t, l.manifest(chaosRun, 0).Fingerprint, s.Waiting.Wanted)
	require.Len(t, s.Waiting.Present, 1)
	require.NotContains(t, s.Waiting.Present, s.Waiting.Wanted)
	require.Empty(t, s.Waiting.Programs)
	other.says(t, fmt.Sprintf("%q: %q", "fingerprint", s.Waiting.Present[0]), time.Minute)
	require.Equal(t, 1, l.committed(chaosRun))
	l.worker(workerOptions{})
	l.completes(chaosRun)
	require.NotContains(t, other.text(), " took", "the run's work needs its own kind of device")
	l.isAs(chaosRun, want)
}
