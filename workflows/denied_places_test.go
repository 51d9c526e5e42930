package workflows

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// Whichever step finds that the bucket denies access, the run pauses with the reason, gives the device back, and resume makes the step
// again: the run commits what an undisturbed one commits.
func TestDeniedAtEveryPlace(t *testing.T) {
	s := everything()
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	want, order := manifests(s.commits), p.order
	places := map[string]int{}
	for _, name := range order {
		places[name]++
		n := places[name]
		if name == "Describe" {
			continue // it asks no bucket
		}
		t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
			s := everything()
			denied := temporal.NewNonRetryableApplicationError("put: access denied", activities.KindStoreDenied, nil)
			s.errors = map[string][]error{name: append(make([]error, n-1), denied)}
			p := newPlay(t, s)
			var status Status
			closed, opened := 0, 0
			p.RegisterDelayedCallback(func() {
				status, closed, opened = p.status(), p.closed, p.opened
				p.send("resume")
			}, 1<<40)
			p.train(nil)
			p.result()
			require.True(t, status.Paused)
			require.Equal(t, "paused: the bucket denies access", status.Phase)
			require.Equal(t, activities.KindStoreDenied, status.PausedBy.Kind)
			require.Contains(t, status.PausedBy.Error, "put: access denied")
			require.Contains(t, status.PausedBy.Do, "update execute -w "+testRun+" --name resume")
			require.Equal(t, opened, closed, "the device was given back")
			require.Equal(t, want, manifests(s.commits))
			require.Zero(t, p.status().LostDevices)
			require.Nil(t, p.status().PausedBy)
		})
	}
}

// A sweep cannot pause: between its trials it tries again until somebody has corrected the bucket. At its start, and for a person who
// extends it, the error is the answer.
func TestSweepsWaitForTheBucket(t *testing.T) {
	for _, r := range steps.All() {
		patient := slices.Contains([]string{"SweepTrials", "LookUp", "Summarize", "WriteTable"}, r.Name)
		types := options(r, "", 30, 0).RetryPolicy.NonRetryableErrorTypes
		for _, kind := range activities.Correctable {
			require.Equal(t, !patient, slices.Contains(types, kind), "%s, %s", r.Name, kind)
		}
		require.Contains(t, types, activities.KindDivergence, r.Name)
	}
}
