// Package heartbeats measures what the time-out of a lease's heartbeat is worth: how soon it shows that a machine is lost, and how
// often it says so of one that is not, beside other work on the machine and while the server starts again.
//
// For each time-out there are a device worker, of two processes, and a lease. The lease is had as a run has it: a workflow of this
// package schedules the same activities with the same options. Nothing is computed under it.
package heartbeats

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Options say what is measured.
type Options struct {
	// TimeOuts are those of the heartbeat, ascending.
	TimeOuts []time.Duration
	// Repeats is how often the workers are killed, and how often they are frozen.
	Repeats int
	// Minutes is how long false losses are counted at each load; 0 leaves that out.
	Minutes float64
	// Loads are the numbers of processes that take a processor meanwhile.
	Loads []int
	// Restarts is how often the server is killed, and started again a second later; 0 leaves that out.
	Restarts int
}

// Check finds what cannot be measured. Its errors name the command's flags.
func (o Options) Check() error {
	if len(o.TimeOuts) == 0 {
		return errors.New("--timeouts names none")
	}
	if !slices.IsSorted(o.TimeOuts) || len(slices.Compact(slices.Clone(o.TimeOuts))) < len(o.TimeOuts) {
		return fmt.Errorf("--timeouts %v: give each once, ascending", o.TimeOuts)
	}
	if o.TimeOuts[0] < time.Second {
		return fmt.Errorf("--timeouts has %s: heartbeats come every second, so a second is the least", o.TimeOuts[0])
	}
	if !(o.Minutes >= 0) || o.Minutes > 24*60 {
		return fmt.Errorf("--minutes is %g: give 0 to 1440", o.Minutes)
	}
	if o.Restarts < 0 {
		return fmt.Errorf("--restarts is %d: it cannot be negative", o.Restarts)
	}
	for _, n := range o.Loads {
		if n < 0 || n > mostBusy {
			return fmt.Errorf("--load has %d: give 0 to %d processes", n, mostBusy)
		}
	}
	return nil
}

// mostBusy is the most processes of a load.
const mostBusy = 1000

// Figures are what was measured.
type Figures struct {
	// Minutes is how long each load lasted, and Loads are the loads.
	Minutes float64 `json:"minutes"`
	Loads   []Load  `json:"loads,omitempty"`
	// Away is how long the server was away at each restart, in seconds: the second, and its start.
	Away     []float64 `json:"away_seconds,omitempty"`
	TimeOuts []TimeOut `json:"timeouts"`
}

// Load is other work on the machine.
type Load struct {
	// Processes is how many took a processor; Average is the machine's load average of the last minute, at the end.
	Processes int    `json:"processes"`
	Average   string `json:"load_average"`
}

// TimeOut is one time-out of the heartbeat.
type TimeOut struct {
	Seconds float64 `json:"seconds"`
	// Killed and Frozen are the seconds from the loss of both processes of a worker until the workflow saw the end of its lease.
	Killed []float64 `json:"killed_seconds"`
	Frozen []float64 `json:"frozen_seconds"`
	// Loads are the false losses at the loads of Figures, Restarts those in its restarts of the server.
	Loads    []Losses `json:"loads,omitempty"`
	Restarts Losses   `json:"restarts"`
}

// Losses are leases that ended although nobody hurt their worker.
type Losses struct {
	// Silent ended by the server's time-out, ByHolder by the worker's own rule, and Other in other ways, which Reasons has.
	Silent   int      `json:"silent"`
	ByHolder int      `json:"by_holder"`
	Other    int      `json:"other"`
	Reasons  []string `json:"reasons,omitempty"`
	// Again are the seconds from such an end until the next lease.
	Again []float64 `json:"again_seconds,omitempty"`
}

// All is their number.
func (l Losses) All() int { return l.Silent + l.ByHolder + l.Other }

// mostReasons is how many ends of other kinds are told.
const mostReasons = 5

// lossesIn are the leases of a workflow that ended between two moments.
func lossesIn(held []Held, from, to time.Time) (l Losses) {
	for i, h := range held {
		if h.Until.IsZero() || h.Until.Before(from) || h.Until.After(to) {
			continue
		}
		switch h.End {
		case Silent:
			l.Silent++
		case ByHolder:
			l.ByHolder++
		default:
			l.Other++
		}
		if h.End != Silent && len(l.Reasons) < mostReasons {
			l.Reasons = append(l.Reasons, fmt.Sprintf("%s: %s", h.End, h.Reason))
		}
		if i+1 < len(held) {
			l.Again = append(l.Again, held[i+1].From.Sub(h.Until).Seconds())
		}
	}
	return l
}

// add adds others.
func (l *Losses) add(m Losses) {
	l.Silent += m.Silent
	l.ByHolder += m.ByHolder
	l.Other += m.Other
	l.Again = append(l.Again, m.Again...)
	l.Reasons = append(l.Reasons, m.Reasons[:min(len(m.Reasons), mostReasons-min(mostReasons, len(l.Reasons)))]...)
}

// at is the lease that was held at a moment; nil between two leases.
func at(held []Held, moment time.Time) *Held {
	for i, h := range held {
		if !h.From.After(moment) && (h.Until.IsZero() || h.Until.After(moment)) {
			return &held[i]
		}
	}
	return nil
}

// Smallest is the index of the smallest time-out without a false loss at a load of so many processes, and at all smaller ones. ok is
// false where that load was not measured, or every time-out had one.
func (f Figures) Smallest(processes int) (n int, ok bool) {
	if !slices.ContainsFunc(f.Loads, func(l Load) bool { return l.Processes == processes }) {
		return 0, false
	}
	n = slices.IndexFunc(f.TimeOuts, func(t TimeOut) bool {
		for i, l := range f.Loads {
			if l.Processes <= processes && t.Loads[i].All() > 0 {
				return false
			}
		}
		return true
	})
	return n, n >= 0
}
