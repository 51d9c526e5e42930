package heartbeats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
)

const (
	// away is how long the server is away before it starts again.
	away = time.Second
	// settles is how long leases may still end after a restart of the server, besides their time-outs.
	settles = 5 * time.Second
	// patience bounds each wait for leases, besides their time-outs. At a load nothing is waited for.
	patience = 2 * time.Minute
	// lookEvery is the time between two looks at the leases, tellEvery between two lines of progress.
	lookEvery = 200 * time.Millisecond
	tellEvery = time.Minute
)

// measure is one call of Measure.
type measure struct {
	Options
	on    stack.Servers
	crew  *crew.Crew
	say   func(line string)
	out   Figures
	phase string // of the leases
}

// Measure measures on a dev stack, whose server it kills. The workers that it starts have the options' device.
func Measure(ctx context.Context, on stack.Servers, device workers.Options, o Options, say func(line string)) (Figures, error) {
	m := &measure{Options: o, on: on, say: say, out: Figures{Minutes: o.Minutes}}
	for _, t := range o.TimeOuts {
		m.out.TimeOuts = append(m.out.TimeOuts, TimeOut{Seconds: t.Seconds()})
	}
	m.crew = &crew.Crew{Dir: on.Dir(), Worker: device, Roles: []workers.Role{workers.RoleDevice}}
	defer m.crew.End()
	w := worker.New(on.Client, queue, worker.Options{LocalActivityWorkerOnly: true})
	w.RegisterWorkflowWithOptions(watchLease, workflow.RegisterOptions{Name: workflowName})
	if err := w.Start(); err != nil {
		return m.out, fmt.Errorf("start the worker of leases: %w", err)
	}
	defer w.Stop()
	if err := m.complete(ctx); err != nil {
		return m.out, err
	}
	if err := m.during(ctx, "losses", m.losses); err != nil {
		return m.out, err
	}
	if o.Restarts > 0 {
		if err := m.during(ctx, "restarts", m.restarts); err != nil {
			return m.out, err
		}
	}
	if o.Minutes > 0 {
		for _, processes := range o.Loads {
			if err := m.during(ctx, fmt.Sprintf("load-%d", processes), func(ctx context.Context) error { return m.load(ctx, processes) }); err != nil {
				return m.out, err
			}
		}
	}
	return m.out, nil
}

// complete starts workers until there is one for each time-out.
func (m *measure) complete(ctx context.Context) error {
	for n := len(m.crew.PIDs()); n < len(m.TimeOuts); n++ {
		m.say(fmt.Sprintf("starting worker %d of %d", n+1, len(m.TimeOuts)))
		if err := m.crew.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// id is the workflow's that has the lease with the n-th time-out.
func (m *measure) id(n int) string { return fmt.Sprintf("lease-%s-%s", m.phase, m.TimeOuts[n]) }

// during measures a phase while there is a lease for each time-out.
func (m *measure) during(ctx context.Context, phase string, do func(context.Context) error) error {
	m.phase = phase
	for n, t := range m.TimeOuts {
		start := client.StartWorkflowOptions{ID: m.id(n), TaskQueue: queue}
		if _, err := m.on.Client.ExecuteWorkflow(ctx, start, workflowName, t, []Held(nil)); err != nil {
			return fmt.Errorf("start %s: %w", m.id(n), err)
		}
	}
	if err := m.all(ctx, "has a lease", func(held []Held) bool { return len(held) > 0 }); err != nil {
		return err
	}
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", phase, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := range m.TimeOuts {
		if err := m.on.Client.SignalWorkflow(ctx, m.id(n), "", stopSignal, nil); err != nil {
			return fmt.Errorf("stop %s: %w", m.id(n), err)
		}
	}
	for n := range m.TimeOuts {
		if err := m.on.Client.GetWorkflow(ctx, m.id(n), "").Get(ctx, nil); err != nil {
			return fmt.Errorf("end of %s: %w", m.id(n), err)
		}
	}
	return nil
}

// all waits until something is so of every workflow's leases.
func (m *measure) all(ctx context.Context, what string, is func([]Held) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience+m.TimeOuts[len(m.TimeOuts)-1])
	defer cancel()
	for n := range m.TimeOuts {
		for {
			held, err := m.read(ctx, m.id(n))
			if err == nil && is(held) {
				break
			}
			if slept := watch.Sleep(ctx, lookEvery); slept != nil {
				return fmt.Errorf("wait until %s %s: %w", m.id(n), what, errors.Join(slept, err))
			}
		}
	}
	return nil
}

// read asks a workflow for its leases.
func (m *measure) read(ctx context.Context, id string) (held []Held, err error) {
	answer, err := m.on.Client.QueryWorkflow(ctx, id, "", heldQuery)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its leases: %w", id, err)
	}
	if err := answer.Get(&held); err != nil {
		return nil, fmt.Errorf("leases of %s: %w", id, err)
	}
	return held, nil
}

// losses kills all workers, and then freezes them, as often as is asked for, and starts others in their place.
func (m *measure) losses(ctx context.Context) error {
	for repeat := range m.Repeats {
		for _, kind := range []struct {
			name string
			harm func(worker int) error
			of   func(*TimeOut) *[]float64
		}{
			{"killing", m.crew.Kill, func(t *TimeOut) *[]float64 { return &t.Killed }},
			{"freezing", m.crew.Freeze, func(t *TimeOut) *[]float64 { return &t.Frozen }},
		} {
			m.say(fmt.Sprintf("%s both processes of every worker, %d of %d", kind.name, repeat+1, m.Repeats))
			if err := m.lose(ctx, kind.harm, kind.of); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
		}
	}
	return nil
}

// lose harms all workers, and notes when each lease's end was seen.
func (m *measure) lose(ctx context.Context, harm func(worker int) error, of func(*TimeOut) *[]float64) error {
	// At any moment between two heartbeats, and some after the first one.
	if err := watch.Sleep(ctx, 2*time.Second+rand.N(time.Second)); err != nil {
		return err
	}
	lost := time.Now()
	for _, pid := range m.crew.PIDs() {
		if err := harm(pid); err != nil {
			return err
		}
	}
	gone := time.Now()
	if err := m.all(ctx, "has lost its lease", func(held []Held) bool {
		h := at(held, lost)
		return h == nil || !h.Until.IsZero()
	}); err != nil {
		return err
	}
	for n := range m.TimeOuts {
		held, err := m.read(ctx, m.id(n))
		if err != nil {
			return err
		}
		// A lease that was falsely lost just then says nothing.
		if h := at(held, lost); h != nil && h.Until.After(gone) {
			times := of(&m.out.TimeOuts[n])
			*times = append(*times, h.Until.Sub(lost).Seconds())
		}
	}
	for _, pid := range m.crew.PIDs() { // the frozen ones
		if err := m.crew.Kill(pid); err != nil {
			return err
		}
	}
	if err := m.complete(ctx); err != nil {
		return err
	}
	return m.all(ctx, "has a lease again", func(held []Held) bool { return held[len(held)-1].From.After(gone) })
}

// restarts kills the server, and starts it again a second later.
func (m *measure) restarts(ctx context.Context) error {
	for repeat := range m.Restarts {
		m.say(fmt.Sprintf("killing the server, and starting it again, %d of %d", repeat+1, m.Restarts))
		began := time.Now()
		if err := m.on.KillTemporal(); err != nil {
			return err
		}
		if err := watch.Sleep(ctx, away); err != nil {
			return err
		}
		if err := m.on.RestartTemporal(ctx); err != nil {
			return err
		}
		m.out.Away = append(m.out.Away, time.Since(began).Seconds())
		if err := watch.Sleep(ctx, settles+m.TimeOuts[len(m.TimeOuts)-1]+rand.N(time.Second)); err != nil {
			return err
		}
		lost, err := m.count(ctx, began, time.Now())
		if err != nil {
			return err
		}
		for n := range m.TimeOuts {
			m.out.TimeOuts[n].Restarts.add(lost[n])
		}
		m.say("  falsely lost: " + m.tell(lost))
	}
	return nil
}

// load counts false losses beside so many busy processes.
func (m *measure) load(ctx context.Context, processes int) error {
	lasts := time.Duration(m.Minutes * float64(time.Minute))
	m.say(fmt.Sprintf("a load of %d for %s", processes, lasts.Round(time.Second)))
	work, err := beginBusy(processes)
	if err != nil {
		return err
	}
	defer work.end()
	began := time.Now()
	for until := began.Add(lasts); ; {
		if err := watch.Sleep(ctx, min(tellEvery, time.Until(until))); err != nil {
			return err
		}
		if !time.Now().Before(until) {
			break
		}
		told := fmt.Sprintf("  %s of %s, load average %s, falsely lost: ", time.Since(began).Round(time.Second), lasts.Round(time.Second), LoadAverage())
		// On a busy machine the answer may come too late for this line.
		within, cancel := context.WithTimeout(ctx, tellEvery/2)
		if lost, err := m.count(within, began, time.Now()); err == nil {
			m.say(told + m.tell(lost))
		}
		cancel()
	}
	to := time.Now()
	m.out.Loads = append(m.out.Loads, Load{Processes: processes, Average: LoadAverage()})
	work.end()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lost, err := m.count(ctx, began, to)
	if err != nil {
		return err
	}
	for n := range m.TimeOuts {
		m.out.TimeOuts[n].Loads = append(m.out.TimeOuts[n].Loads, lost[n])
	}
	m.say("  falsely lost: " + m.tell(lost))
	return nil
}

// count counts the false losses between two moments, for each time-out.
func (m *measure) count(ctx context.Context, from, to time.Time) (lost []Losses, err error) {
	for n := range m.TimeOuts {
		held, err := m.read(ctx, m.id(n))
		if err != nil {
			return nil, err
		}
		lost = append(lost, lossesIn(held, from, to))
	}
	return lost, nil
}

// tell is the number of losses in a line.
func (m *measure) tell(lost []Losses) string {
	var all []string
	for n, l := range lost {
		all = append(all, fmt.Sprintf("%s %d", m.TimeOuts[n], l.All()))
	}
	return strings.Join(all, ", ")
}

// LoadAverage is the machine's load average of the last minute; "" if unknown.
func LoadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
