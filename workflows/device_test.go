package workflows

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// A lost device costs the running step and nothing else. There is another session, the
// policy is restored, the iteration is the same, and so are the manifests.
func TestDeviceLost(t *testing.T) {
	for _, place := range []struct {
		name string
		n    int // which execution
		at   int // the version to restore afterwards
		// pending: the iteration's update was made already.
		pending bool
	}{
		{"WarmStart", 2, 0, false}, {"Restore", 1, 0, false},
		{"Generate", 1, 0, false}, // the baseline's
		{"Generate", 2, 0, false}, {"Score", 1, 0, false}, {"Update", 1, 0, false},
		{"Score", 2, 1, false}, {"Update", 2, 1, false},
		{"Snapshot", 1, 1, true},
		{"Generate", 4, 1, true}, // the evaluation's
	} {
		for how, lose := range map[string]func(p *play){
			"session": func(p *play) { p.loseAt(place.name, place.n) },
			"not resident": func(p *play) {
				p.s.errors = map[string][]error{place.name: answer1(place.n, activities.KindNotResident)}
			},
			"draining": func(p *play) {
				p.s.errors = map[string][]error{place.name: answer1(place.n, activities.KindDraining)}
			},
		} {
			t.Run(fmt.Sprintf("%s %d/%s", place.name, place.n, how), func(t *testing.T) {
				s := &stage{plan: testPlan()}
				p := newPlay(t, s)
				lose(p)
				p.train(nil)
				r := p.result()
				lost := 1
				if how == "draining" {
					lost = 0
				}
				require.Equal(t, lost, r.LostDevices)
				require.Equal(t, 1-lost, p.status().DrainedDevices)
				require.Equal(t, 2, p.opened)
				undisturbed := undisturbed(t, s)
				require.Equal(t, manifests(undisturbed), manifests(s.commits))
				for _, host := range []string{"Step", "Select", "Credit", "Measure"} {
					want := map[string]int{"Step": 6, "Select": 3, "Credit": 3, "Measure": 3}[host]
					require.Equal(t, want, s.counts[host], "%s is not repeated", host)
				}
				require.Equal(t, s.plan.Iterations, s.counts["Commit"])
				require.Equal(t, 1, p.started["Resolve"])
				for _, device := range []string{"WarmStart", "Generate", "Score", "Update", "Snapshot"} {
					want := map[string]int{"WarmStart": 3, "Generate": 6, "Score": 3, "Update": 3, "Snapshot": 2}[device]
					if device == place.name {
						want++
					}
					require.Equal(t, want, p.started[device], device)
				}
				restores := inputs[activities.RestoreInput](s, "Restore")
				last := restores[len(restores)-1]
				require.Equal(t, place.at, last.Version.Version)
				if place.name != "WarmStart" {
					require.Equal(t, 2, p.started["Restore"])
				}
				if !place.pending {
					require.Nil(t, last.Pending)
					return
				}
				require.Equal(t, &activities.PendingUpdate{
					Batch: *undisturbed[1].Batch, Settings: s.plan.Settings, State: undisturbed[1].StateAfter,
				}, last.Pending)
				require.Equal(t, undisturbed[1].StateBefore, last.Version.State)
				require.Equal(t, lost, s.commits[1].Lost, "telemetry says that a device was lost")
			})
		}
	}
}

// answer1 is an error of a kind at the nth execution.
func answer1(n int, kind string) []error {
	out := make([]error, n)
	out[n-1] = temporal.NewNonRetryableApplicationError("no", kind, nil)
	return out
}

// A rebuild that is longer than an activity may be continues in another call.
func TestRestoreInChunks(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, restores: 2}
	p := newPlay(t, s)
	p.train(nil)
	r := p.result()
	require.Equal(t, 3, s.counts["Restore"])
	require.Equal(t, 3, r.Recomputed, "what each call recomputed is counted")
	require.Zero(t, r.LostDevices)
}

func TestLostEverySession(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{}}
	for _, name := range []string{"Generate", "Score", "Update", "Snapshot"} {
		s.errors[name] = answer1(1, activities.KindDraining)
	}
	p := newPlay(t, s)
	p.train(nil)
	r := p.result()
	require.Zero(t, r.LostDevices)
	require.Equal(t, 4, p.status().DrainedDevices)
	require.Equal(t, 5, p.opened)
	require.Equal(t, 1, p.closed, "nothing waits for a worker that is gone")
	require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
}

func TestWaitsForDevice(t *testing.T) {
	t.Run("of the fingerprint", func(t *testing.T) {
		s := &stage{plan: testPlan(), head: &activities.Head{Manifest: ref("manifest"), Iteration: 1, State: "s2", Fingerprint: "wanted", Base: ref("base")}}
		p := newPlay(t, s)
		p.absent = 2
		var seen []Status
		for n := 1; n <= 3; n++ {
			p.when("Acquire", n, func() { seen = append(seen, p.status()) })
		}
		p.when("Restore", 1, func() { seen = append(seen, p.status()) })
		p.train(nil)
		p.result()
		require.Nil(t, seen[0].Waiting, "asking is not waiting yet")
		require.Equal(t, "waiting for a device", seen[1].Phase)
		require.Equal(t, &Waiting{Wanted: "wanted", Present: []string{testPrint}}, seen[1].Waiting)
		require.Equal(t, &Waiting{Wanted: "wanted", Present: []string{testPrint}}, seen[2].Waiting)
		require.Nil(t, seen[3].Waiting)
		require.Zero(t, p.status().LostDevices, "waiting is not losing")
	})
	t.Run("of any", func(t *testing.T) {
		late := temporal.NewTimeoutError(1, nil)
		s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Describe": {late, fmt.Errorf("odd"), late}}}
		p := newPlay(t, s)
		var seen *Waiting
		p.when("Describe", 3, func() { seen = p.status().Waiting })
		p.train(nil)
		p.result()
		require.Equal(t, "any", seen.Wanted)
		require.Equal(t, 4, s.counts["Describe"])
		require.Equal(t, testPrint, p.status().Fingerprint)
		require.Nil(t, p.status().Waiting)
	})
}

// A wait of days ends in a new history, not in the server's limit.
func TestLongWaitContinuesAsNew(t *testing.T) {
	for _, fingerprint := range []string{"", "wanted"} {
		s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Describe": {temporal.NewTimeoutError(1, nil), temporal.NewTimeoutError(1, nil)}}}
		if fingerprint != "" {
			s.head = &activities.Head{Manifest: ref("manifest"), Iteration: 1, State: "s2", Fingerprint: fingerprint, Base: ref("base")}
		}
		p := newPlay(t, s)
		p.absent = 1000
		p.when("Describe", 2, func() { p.SetContinueAsNewSuggested(true) })
		p.train(nil)
		c := carried(t, p)
		require.Equal(t, fingerprint, c.Fingerprint)
		require.Equal(t, testRun, c.Run.ID)
		require.Zero(t, p.opened)
		require.Equal(t, 2, p.started["Describe"])

		again := &stage{plan: testPlan()}
		q := newPlay(t, again)
		q.train(c)
		q.result()
		require.Equal(t, "Load", again.calls[0].name)
	}
}

// carried is what the run hands to its continuation.
func carried(t *testing.T, p *play) *Carry {
	t.Helper()
	require.True(t, workflow.IsContinueAsNewError(p.GetWorkflowError()), "%v", p.GetWorkflowError())
	return carryOf(t, p.GetWorkflowError())
}

// A worker that drains refuses work and ends its session in a moment: the run
// waits for that, and does not open another one with the same worker.
func TestDraining(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Score": answer1(1, activities.KindDraining)}}
	p := newPlay(t, s)
	p.train(nil)
	require.Zero(t, p.result().LostDevices)
	require.Equal(t, 2, p.opened)
	require.Equal(t, 1, p.closed, "nothing waits for the worker that is gone")
	require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
}
