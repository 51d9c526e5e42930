package workflows

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
)

func otherBuild() error {
	return temporal.NewNonRetryableApplicationError("programs a differ", activities.KindProgramsDiffer, nil,
		activities.SamePrograms(map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "3", "b": "2"}))
}

// A run waits for a worker with its programs, from 5 s to 5 min, and never ends.
func TestWaitsForPrograms(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{}}
	for range 10 {
		s.errors["Restore"] = append(s.errors["Restore"], otherBuild())
	}
	p := newPlay(t, s)
	var tried []time.Time
	for n := 1; n <= 11; n++ {
		p.when("Restore", n, func() { tried = append(tried, p.Now()) })
	}
	p.when("Restore", 5, func() {
		tried = append(tried, p.Now())
		w := p.status().Waiting
		require.Equal(t, testPrint, w.Wanted)
		require.Equal(t, []string{testPrint}, w.Present)
		require.Equal(t, []activities.OtherProgram{{Name: "a", Recorded: "1", Present: "3"}}, w.Programs)
	})
	p.train(nil)
	p.result()
	var waits []time.Duration
	for i := range 10 {
		waits = append(waits, tried[i+1].Sub(tried[i]).Round(time.Second))
	}
	require.Equal(t, []time.Duration{
		5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	}, waits)
	require.Equal(t, 11, p.opened)
	require.Equal(t, 11, p.closed, "the worker serves others meanwhile")
	require.Nil(t, p.status().Waiting)
	require.Zero(t, p.status().LostDevices)
	require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
}

func TestSamePrograms(t *testing.T) {
	require.NoError(t, activities.SamePrograms(nil, map[string]string{"a": "1"}))
	require.NoError(t, activities.SamePrograms(map[string]string{"a": "1"}, map[string]string{"a": "1", "b": "2"}))
	err := activities.SamePrograms(map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1"})
	require.ErrorIs(t, err, activities.ErrProgramsDiffer)
	require.EqualError(t, err, "programs b are not those the run was computed with: use the build that began it: programs differ from the recorded ones")
	var d *activities.ProgramsDiffer
	require.True(t, errors.As(err, &d))
	require.Equal(t, []activities.OtherProgram{{Name: "b", Recorded: "2"}}, d.Programs)
}

func TestDetailsShowPrograms(t *testing.T) {
	r := &train{programs: &wrongPrograms{reason: "programs a differ"}, wait: Waiting{Wanted: testPrint}}
	r.programs.Programs = []activities.OtherProgram{{Name: "a", Recorded: "1", Present: "3"}}
	require.Contains(t, r.details(), "| a | `1` | `3` |")
}
