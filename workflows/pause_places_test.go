package workflows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// everything is a run that has each kind of step: a warm start in chunks, rollouts of
// two turns and two rounds that serve two iterations, diagnoses, two suites.
func everything() *stage {
	s := &stage{plan: testPlan(), parts: []int{4, 2}}
	s.plan.Iterations, s.plan.Turns = 3, 2
	s.plan.Suites = []activities.PlanSuite{{Name: "near", Turns: 2, Rows: 8}, {Name: "far", Turns: 1, Rows: 8}}
	s.plan.Freshness = spec.Freshness{Online: 2, Reuse: 1}
	s.plan.Diagnostics = spec.Diagnostics{Every: 1, Samples: 2}
	return s
}

// followsPaused are the steps that still begin after a pause that came in the step of
// an order at a place: what was sampled is answered by the environment, and episodes
// that are over are selected from or measured, on the host. Everything else waits.
func followsPaused(order []string, at int) int {
	n := at + 1
	if order[at] == "Commit" && n < len(order) && order[n] == "Generate" {
		n++ // it runs beside the commit
	}
	if order[n-1] == "Generate" {
		n++ // its Step
	}
	if step := order[n-1]; step == "Step" && (order[n] == "Select" || order[n] == "Measure") {
		n++
	}
	return n
}

// Wherever a pause comes, a chunk of the warm start included, the running step is the
// last one. The device is given back before another step begins on it, and after resume
// the run continues with the next step, repeating none.
func TestPauseAtEveryPlace(t *testing.T) {
	s := everything()
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	want, order := manifests(s.commits), p.order
	require.Equal(t, 3, p.started["WarmStart"])
	require.Equal(t, 2, p.started["Diagnose"])
	places := map[string]int{}
	for at, name := range order {
		places[name]++
		n := places[name]
		if name == "Resolve" || name == "Describe" {
			continue // before the run is resolved, and before it has a device
		}
		t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
			s := everything()
			p := newPlay(t, s)
			var pause *answer
			var status Status
			var begun []string
			closed, opened := 0, 0
			p.when(name, n, func() { pause = p.send("pause") })
			p.RegisterDelayedCallback(func() {
				status, begun, closed, opened = p.status(), append(begun, p.order...), p.closed, p.opened
				p.send("resume")
			}, 1<<40)
			p.train(nil)
			p.result()
			require.NoError(t, pause.err)
			if at == len(order)-1 {
				require.Equal(t, order, p.order, "the last commit ends the run")
				return
			}
			require.Equal(t, strings.Join(order[:followsPaused(order, at)], " "), strings.Join(begun, " "), "until resume")
			require.True(t, status.Paused)
			require.Equal(t, "paused", status.Phase)
			require.Equal(t, opened, closed, "the device was given back")
			require.Equal(t, 1, opened)
			require.Equal(t, 2, p.opened)

			rest := order[len(begun):]
			if rest[0] != "WarmStart" && rest[0] != "Restore" {
				rest = append([]string{"Restore"}, rest...) // on the new session
			}
			require.Equal(t, strings.Join(rest, " "), strings.Join(p.order[len(begun):], " "), "after resume")
			require.Equal(t, want, manifests(s.commits))
			require.Zero(t, p.status().LostDevices)
		})
	}
}

// A run that is paused in its warm start makes a new history like any other, and the
// chunk that is done is not made again.
func TestPausedWarmStartIsCarried(t *testing.T) {
	s := everything()
	p := newPlay(t, s)
	p.when("WarmStart", 1, func() {
		p.send("pause")
		p.SetContinueAsNewSuggested(true)
	})
	p.train(nil)
	c := carried(t, p)
	require.True(t, c.Paused)
	require.Equal(t, 10, c.WarmStart.Version)
	require.Equal(t, 1, p.started["WarmStart"])

	again := everything()
	q := newPlay(t, again)
	var begun []string
	q.RegisterDelayedCallback(func() {
		begun = append(begun, q.order...)
		q.send("resume")
	}, 1<<40)
	q.train(c)
	q.result()
	require.Equal(t, []string{"Load"}, begun)
	chunks := inputs[activities.WarmStartInput](again, "WarmStart")
	require.Len(t, chunks, 2)
	require.Equal(t, 10, chunks[0].From.Version)
	whole := everything()
	w := newPlay(t, whole)
	w.train(nil)
	w.result()
	require.Equal(t, manifests(whole.commits), manifests(again.commits))
}
