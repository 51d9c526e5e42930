package workflows

import (
	"encoding/json"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// RollTo is a rollback that is decided and not done.
type RollTo struct {
	// Iteration is the last iteration that stays.
	Iteration int `json:"iteration"`
	// Events are the reasons; there are none if a person requested the rollback.
	Events []collapse.Event `json:"events,omitempty"`
	// Adopt says that the branch goes on under other programs or on another device.
	Adopt bool `json:"adopt,omitempty"`
	// Spec is the resolved spec with the environments' new descriptions, which the branch takes; nil for the run's.
	Spec *store.Ref `json:"spec,omitempty"`
}

// maxEvents bounds the events that are carried along; the manifests have all.
const maxEvents = 8

func keepNewest(events, more []collapse.Event) []collapse.Event {
	events = append(append([]collapse.Event(nil), events...), more...)
	return events[max(0, len(events)-maxEvents):]
}

// act does what the detectors decided in a committed iteration.
func (t *train) act(n int, d *activities.Detected) {
	if d == nil {
		return
	}
	t.Detected = *d
	t.Events = keepNewest(t.Events, d.Events)
	if d.Decision.Action == collapse.Stop {
		t.StopAfter = &n
	}
	t.rollOn(d)
}

// rollOn rolls the run back if the detectors decided so.
func (t *train) rollOn(d *activities.Detected) {
	if d.Decision.Action == collapse.RollBack {
		t.RollTo = &RollTo{Iteration: d.Decision.Onset - 1, Events: d.Events}
	}
}

// rollBack goes back to a committed iteration and opens the next branch there.
// Nothing is deleted: the iterations after it stay on their branch.
func (t *train) rollBack(ctx workflow.Context) error {
	to, version := t.RollTo, t.RollTo.Iteration+1
	t.show(ctx, fmt.Sprintf("rolling back to iteration %d", to.Iteration))
	why := "as asked"
	if len(to.Events) > 0 {
		why = to.Events[0].Text
	} else if to.Adopt {
		why = "to adopt other programs"
	}
	found, err := steps.Find.Do(t.onHost(ctx, t.plan.ActivitySeconds), fmt.Sprintf("roll back to iteration %d: %s", to.Iteration, why),
		activities.FindInput{Run: t.Run.ID, Version: &version, Head: &t.Head.Manifest})
	if err != nil {
		return err
	}
	head := found.Head
	opened := &activities.Opened{Branch: t.Branch, Iteration: t.Next - 1, Events: to.Events, Detected: t.Detected}
	if to.Adopt {
		opened.Adopted = &activities.Adopted{Fingerprint: head.Fingerprint, Programs: head.Programs}
	}
	if to.Spec != nil {
		r, err := steps.Load.Do(t.onHost(ctx, t.plan.ActivitySeconds), "read the spec with the new description", activities.LoadInput{Run: t.Run.ID, Spec: *to.Spec})
		if err != nil {
			return err
		}
		t.described(ctx, *to.Spec, r.Plan)
	}
	if other := found.Run.Spec.Digest; other != "" && other != t.Run.Spec.Digest {
		if to.Iteration < t.plan.First {
			head = head.Forked(t.plan.Settings) // another run's iteration, after which this one began
		} else { // of an earlier description, with other widths
			opened.Spec = other
			head.Settings, head.Batches = t.plan.Settings.WithKnobs(head.Settings), nil
		}
	}
	t.Settings = head.Settings
	if len(to.Events) > 0 {
		t.Settings, opened.Changes = turned(head.Settings, t.plan.Collapse.Rollback.Knobs())
	}
	// The detectors' state at the fork point is in its manifest. The state of the
	// abandoned iteration has averages that the collapse has moved.
	opened.Detected.State = collapse.State{}
	if head.Detected != nil {
		opened.Detected.State = head.Detected.State.Rewind(to.Iteration)
	}
	opened.Detected.Events = nil
	t.Detected = opened.Detected
	t.Branch, t.Next, t.State, t.Metrics, t.Snapshot = t.Branch+1, version, head.State, head.Metrics, head.Snapshot
	t.Last = head.Last // else what the old branch has measured would count as the new one's
	t.Head, t.Current, t.Opened, t.RollTo = head.Carried(), nil, opened, nil
	t.Failures, t.DoneAgain = nil, 0 // of steps and iterations that are left behind
	// A branch begins with a rollout of its own.
	t.Head.Rolled, t.Head.NextRollout = nil, nil
	t.show(ctx, fmt.Sprintf("rolled back to iteration %d", to.Iteration))
	return nil
}

// turned are settings with the knobs of a rollback turned, and what that was in words. A knob that these settings do not have,
// or that would leave its range,
// stays, and the words say so.
func turned(s spec.Settings, knobs []collapse.Knob) (spec.Settings, []string) {
	var words []string
	for _, k := range knobs {
		value := k.Set
		if now, ok := s.Value(k.Path); k.Times != 0 && ok {
			value = now * k.Times
		}
		next, err := s.Apply(spec.Change{Path: k.Path, Value: json.RawMessage(strconv.FormatFloat(value, 'g', -1, 64))})
		if err != nil {
			words = append(words, k.String()+" was refused")
			continue
		}
		s = next
		words = append(words, fmt.Sprintf("%s: %s", k, strconv.FormatFloat(value, 'g', 6, 64)))
	}
	return s, words
}
