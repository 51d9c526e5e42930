package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

// The SDK's gauges of a worker, by the queue that it polls.
const (
	pollersGauge = "temporal_num_pollers"                 // polls that wait for the server now
	slotsGauge   = "temporal_worker_task_slots_available" // tasks that the worker could begin
)

// pollTime is how long a queue may go without a poll although its worker has room: longer than a poll takes, and the SDK's
// wait after one that failed.
const pollTime = 2 * time.Minute

// Wanted is how a queue has to be polled.
type Wanted int

// What is wanted of the polls of a queue.
const (
	Always  Wanted = iota // while its worker has room
	Once                  // once: its worker leaves it alone while its device is in use
	Ignored               // not at all
)

// Pollers knows which queues the process's workers poll, by the gauges that the SDK keeps of them.
type Pollers struct {
	wanted func(queue string) Wanted
	now    func() time.Time

	mu     sync.Mutex
	queues map[pollerKey]*polled
}

// pollerKey is a queue and what is polled there.
type pollerKey struct{ queue, kind string }

// polled is what is known of the polls of a queue.
type polled struct {
	made     time.Time // its worker
	last     time.Time // end of the last poll; zero before the first
	inFlight float64
	room     float64 // tasks that could be begun; -1 where it is not known
}

// NewPollers knows no queue yet. wanted tells of each what is wanted of it.
func NewPollers(wanted func(queue string) Wanted) *Pollers {
	return &Pollers{wanted: wanted, now: time.Now, queues: map[pollerKey]*polled{}}
}

// Handler is next for the SDK's metrics, and notes what it says of polls.
func (p *Pollers) Handler(next client.MetricsHandler) client.MetricsHandler {
	return &pollersHandler{MetricsHandler: next, pollers: p}
}

// Check is a check for each queue that a worker of this process serves.
func (p *Pollers) Check(context.Context) []Check {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Check
	for key, q := range p.queues {
		c := Check{Name: "queue " + key.queue + ", " + strings.ReplaceAll(key.kind, "_task", " tasks")}
		c.Ready, c.Reason = q.state(p.now(), p.wanted(key.queue))
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (q *polled) state(now time.Time, wanted Wanted) (ready bool, reason string) {
	ago := now.Sub(q.last).Round(time.Second)
	switch {
	case q.inFlight > 0:
		return true, "it is polled"
	case q.last.IsZero():
		return false, fmt.Sprintf("it was not polled yet; its worker was made %s ago", now.Sub(q.made).Round(time.Second))
	case q.room == 0:
		return true, fmt.Sprintf("its worker has all that it can do; last polled %s ago", ago)
	case wanted == Once || ago < pollTime:
		return true, fmt.Sprintf("last polled %s ago", ago)
	}
	return false, fmt.Sprintf("last polled %s ago, though its worker has room", ago)
}

// pollersHandler is a view of the SDK's metrics with the tags given so far.
type pollersHandler struct {
	client.MetricsHandler
	pollers             *Pollers
	queue, poller, kind string
}

// WithTags implements client.MetricsHandler.
func (h *pollersHandler) WithTags(tags map[string]string) client.MetricsHandler {
	return &pollersHandler{
		MetricsHandler: h.MetricsHandler.WithTags(tags), pollers: h.pollers,
		queue: cmp.Or(tags["task_queue"], h.queue), poller: cmp.Or(tags["poller_type"], h.poller), kind: cmp.Or(tags["worker_type"], h.kind),
	}
}

// Gauge implements client.MetricsHandler.
func (h *pollersHandler) Gauge(name string) client.MetricsGauge {
	next := h.MetricsHandler.Gauge(name)
	switch {
	// Sticky queues and those of single sessions come and go.
	case h.queue == "" || strings.Contains(h.queue, "@") || h.pollers.wanted(h.queue) == Ignored:
	case name == pollersGauge && (h.poller == "workflow_task" || h.poller == "activity_task"):
		return h.pollers.gauge(h.queue, h.poller, next, (*polled).polls)
	case name == slotsGauge && h.kind == "WorkflowWorker":
		return h.pollers.gauge(h.queue, "workflow_task", next, (*polled).has)
	case name == slotsGauge && h.kind == "ActivityWorker":
		return h.pollers.gauge(h.queue, "activity_task", next, (*polled).has)
	}
	return next
}

func (q *polled) polls(now time.Time, inFlight float64) {
	if q.inFlight > 0 || inFlight > 0 {
		q.last = now
	}
	q.inFlight = inFlight
}

func (q *polled) has(_ time.Time, room float64) { q.room = room }

// gauge notes what the gauge of a queue is set to.
func (p *Pollers) gauge(queue, kind string, next client.MetricsGauge, note func(*polled, time.Time, float64)) client.MetricsGauge {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := pollerKey{queue, kind}
	q := p.queues[key]
	if q == nil {
		q = &polled{made: p.now(), room: -1}
		p.queues[key] = q
	}
	return noted{next, func(v float64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		note(q, p.now(), v)
	}}
}

// noted is a gauge that is watched.
type noted struct {
	client.MetricsGauge
	note func(float64)
}

// Update implements client.MetricsGauge.
func (n noted) Update(v float64) {
	n.note(v)
	n.MetricsGauge.Update(v)
}
