package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// costs are what a run has cost by device kind. The run computes them itself, by the
// workflow's clock: a process that is killed reports nothing.
type costs struct {
	// Committed are in the telemetry of committed iterations, Due go there with the next
	// commit. A rollback gives up neither.
	Committed []activities.Cost `json:"committed,omitempty"`
	Due       []activities.Cost `json:"due,omitempty"`
	// Lost are the sessions lost since the last commit, the newest of them.
	Lost []activities.LostSession `json:"lost,omitempty"`
}

// maxLostSessions bounds the lost sessions of one commit, because they are carried.
const maxLostSessions = 32

// add adds to what goes with the next commit.
func (c *costs) add(more activities.Cost) { c.Due = activities.AddCosts(c.Due, more) }

// costsNow is all that the run has cost so far, with what is in the commit that is under way.
func (t *train) costsNow() []activities.Cost {
	return activities.AddCosts(activities.AddCosts(t.Costs.Committed, t.sent...), t.Costs.Due...)
}

// costsCommitted moves what has gone with a commit, and returns it.
func (t *train) costsCommitted() []activities.Cost {
	row := t.sent
	t.Costs.Committed, t.sent = activities.AddCosts(t.Costs.Committed, row...), nil
	return row
}

// deviceKind is the kind of the device that the run belongs to.
func (t *train) deviceKind() string { return activities.DeviceKind(t.Device) }

// waitedSince counts a wait for a device.
func (t *train) waitedSince(ctx workflow.Context, begun time.Time) {
	if waited := workflow.Now(ctx).Sub(begun).Seconds(); waited > 0 {
		t.Costs.add(activities.Cost{Kind: t.deviceKind(), Waiting: waited})
	}
}

// usage is what a session has used of its device.
type usage struct {
	opened time.Time
	// counted is until when the session's seconds are in the run's costs.
	counted time.Time
	// price is that of an hour, as its worker reports it; 0 while it is not known.
	price float64
	// failed is the step that ended with the session; "" where there is none.
	failed, reason string
	seconds        float64 // for which that step ran
}

// measured notes how a step of the session ended: err is its error, result what it gave.
func (t *train) measured(ctx workflow.Context, s *session, r steps.Routing, summary string, begun time.Time, result any, err error) {
	var f *failure
	switch {
	case err == nil:
		took, _ := activities.TelemetryOf(result)
		if took.PriceHour > 0 {
			s.used.price = took.PriceHour
		}
		t.Costs.add(activities.Cost{
			Kind: t.deviceKind(), Useful: max(0, took.Seconds-took.RecomputeSeconds), Recomputed: took.RecomputeSeconds, Waiting: took.WaitSeconds,
		})
	case errors.As(err, &f):
		// A step that the worker refuses has not begun: it fails by errDeviceLost alone.
		s.used.failed, s.used.reason = stepName(r, summary), f.kind
		s.used.seconds = max(0, workflow.Now(ctx).Sub(begun).Seconds())
		t.Costs.add(activities.Cost{Kind: t.deviceKind(), Lost: s.used.seconds})
	}
	t.holds(ctx, s)
}

// holds counts the seconds for which the session has held its device, up to now.
func (t *train) holds(ctx workflow.Context, s *session) {
	now := workflow.Now(ctx)
	held := now.Sub(s.used.counted).Seconds()
	if s.used.counted = now; held <= 0 {
		return
	}
	c := activities.Cost{Kind: t.deviceKind(), Held: held, Money: held / time.Hour.Seconds() * s.used.price}
	if s.used.price == 0 {
		c.Unpriced = held
	}
	t.Costs.add(c)
}

// leaves counts a session that ends. err is why: a lost session has a row of its own.
func (t *train) leaves(ctx workflow.Context, s *session, err error) {
	t.holds(ctx, s)
	if !errors.Is(err, errDeviceLost) {
		return
	}
	if errors.Is(err, errDrained) {
		s.used.reason = kindDrained
	}
	lost := append(t.Costs.Lost, activities.LostSession{
		Kind: t.deviceKind(), Opened: moment(s.used.opened), Lost: moment(workflow.Now(ctx)),
		Step: s.used.failed, Seconds: s.used.seconds, Reason: s.used.reason, PriceHour: s.used.price,
	})
	t.Costs.Lost = lost[max(0, len(lost)-maxLostSessions):]
}

// moment is a time as telemetry writes it.
func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// withCosts gives a commit the costs that go with it.
func (t *train) withCosts(ctx workflow.Context, s *session, input any) any {
	in, ok := input.(activities.CommitInput)
	if !ok {
		return input
	}
	t.holds(ctx, s)
	in.Costs, in.LostSessions = t.Costs.Due, t.Costs.Lost
	t.sent, t.Costs.Due, t.Costs.Lost = in.Costs, nil, nil
	return in
}

// showCosts is a table of costs; none where there are none.
func showCosts(b *strings.Builder, costs []activities.Cost) {
	if len(costs) == 0 {
		return
	}
	b.WriteString("\n| device | held | useful | recomputed | lost | waiting | cost |\n|---|---|---|---|---|---|---|\n")
	for _, c := range costs {
		kind, money := c.Kind, missing
		if kind == "" {
			kind = "none yet"
		}
		if c.Unpriced < c.Held {
			money = fmt.Sprintf("%.2f", c.Money)
			if c.Unpriced > 0 {
				money += " and " + span(c.Unpriced) + " without a price"
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", kind, span(c.Held), span(c.Useful), span(c.Recomputed), span(c.Lost), span(c.Waiting), money)
	}
}

// span is a number of seconds as people read it.
func span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
