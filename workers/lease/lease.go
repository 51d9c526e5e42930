// Package lease gives one device to one run at a time, first come, first served: the activities Acquire, Hold and Release of a
// device worker, and the slot by which it asks for the next in line.
//
// What gives leases and what computes may be two processes. Then the one that gives them opens no device, so that it is never
// late with a heartbeat, and says at once that the other has ended.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// Unheld is how long a lease that was given waits for its Hold. Then it is free again.
const Unheld = 10 * time.Second

// beatEvery is the time between two heartbeats of a Hold.
const beatEvery = time.Second

// Beat records a heartbeat of the activity with a token, as client.Client does.
type Beat func(ctx context.Context, token []byte, details ...any) error

// Holder gives a device to one run at a time. One that is new has no device.
type Holder struct {
	// Slot is that of the worker which serves the line: it is there while the device is free.
	Slot *Slot
	// Line, where set, gives the runs that stand in line for a device with a fingerprint, the first one first.
	Line func(ctx context.Context, fingerprint string) []string
	// Given, where set, is told that a run has the device, until the function that it returns is called.
	Given func(run string) (back func())

	worker, queue string
	beats         Beat
	unheld        time.Duration // Unheld, but in tests

	// The slot's lock guards what follows.
	computes string // the queue of what computes; "" while nothing does
	info     activities.DeviceInfo
	stopping bool
	outside  int // sessions of the SDK's, which earlier builds' runs have
	given    *grant
}

// New makes the holder of a process: worker is its name, and queue its own. beat sends heartbeats, without the delays of the
// SDK's own.
func New(worker, queue string, beat Beat) *Holder {
	h := &Holder{worker: worker, queue: queue, beats: beat, unheld: Unheld}
	h.Slot = NewSlot(h.free)
	return h
}

// Queue is that on which the process serves Steps.
func (h *Holder) Queue() string { return h.queue }

// free tells whether a lease can be given. The caller has the lock.
func (h *Holder) free() bool {
	return h.computes != "" && !h.stopping && h.given == nil && h.outside == 0
}

// grant is a lease that was given.
type grant struct {
	id, run string
	held    bool
	back    func()
	end     chan activities.HoldResult // has room for one
	expires *time.Timer
}

// errNone says that a worker cannot give a lease now: the run stands in line again.
var errNone = errors.New("the worker's device is not there now")

// Computes says that a process computes, on a queue of its own, on a device.
func (h *Holder) Computes(queue string, info activities.DeviceInfo) {
	h.Slot.Change(func() { h.computes, h.info = queue, info })
}

// Ends says that what computed has ended, or soon will: the lease ends so, and no other is given before Computes.
func (h *Holder) Ends(how activities.HoldResult) {
	h.Slot.Change(func() {
		h.computes = ""
		h.finish(how)
	})
}

// Stop gives no more leases.
func (h *Holder) Stop() { h.Slot.Change(func() { h.stopping = true }) }

// finish ends the lease that is given. The caller has the lock.
func (h *Holder) finish(how activities.HoldResult) {
	if h.given == nil {
		return
	}
	h.given.end <- how
	h.forget(h.given)
}

// forget makes the device free, if the lease has it. The caller has the lock.
func (h *Holder) forget(g *grant) {
	if h.given != g {
		return
	}
	h.given = nil
	g.expires.Stop()
	g.back()
}

// Describe says what the device is, who has it, and who waits for it.
func (h *Holder) Describe(ctx context.Context) (activities.DeviceInfo, error) {
	h.Slot.mu.Lock()
	info := h.info
	if h.given != nil {
		info.Busy = h.given.run
	}
	h.Slot.mu.Unlock()
	if h.Line != nil && info.Busy != "" {
		info.Line = h.Line(ctx, info.Fingerprint)
	}
	return info, nil
}

// Acquire gives a lease to a run. The slot has seen to it that the device is free, unless it was lost since.
func (h *Holder) Acquire(_ context.Context, in activities.AcquireInput) (l activities.Lease, err error) {
	h.Slot.Change(func() {
		if !h.free() {
			err = errNone
			return
		}
		g := &grant{id: uuid.NewString(), run: in.Run, back: func() {}, end: make(chan activities.HoldResult, 1)}
		if h.Given != nil {
			g.back = h.Given(in.Run)
		}
		g.expires = time.AfterFunc(h.unheld, func() {
			h.Slot.Change(func() {
				if !g.held {
					h.forget(g)
				}
			})
		})
		h.given = g
		l = activities.Lease{ID: g.id, Worker: h.worker, Queue: h.computes, Holder: h.queue}
	})
	return l, err
}

// Hold lasts as long as the run has the device. It ends by itself if the server says that the run has it no more, or if the
// server has not answered for as long as the run would wait: then the run may have another device.
func (h *Holder) Hold(ctx context.Context, in activities.HoldInput) (activities.HoldResult, error) {
	h.Slot.mu.Lock()
	g := h.given
	if g == nil || g.id != in.Lease || g.held {
		h.Slot.mu.Unlock()
		return activities.HoldResult{End: activities.LeaseRefused, Reason: "the worker has not given this lease, or it was not held in time"}, nil
	}
	g.held = true
	g.expires.Stop()
	h.Slot.mu.Unlock()
	defer h.Slot.Change(func() { h.forget(g) })
	info := activity.GetInfo(ctx)
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	lost := make(chan error, 1)
	go h.beat(ctx, info.TaskToken, info.HeartbeatTimeout, beats.C, lost)
	select {
	case how := <-g.end:
		return how, nil
	case err := <-lost:
		return activities.HoldResult{}, err
	case <-ctx.Done():
		select {
		case how := <-g.end: // the worker stops, and says why
			return how, nil
		default:
		}
		return activities.HoldResult{}, ctx.Err()
	}
}

// beat sends heartbeats until one of them, or none for too long, ends the lease.
func (h *Holder) beat(ctx context.Context, token []byte, silence time.Duration, ticks <-chan time.Time, lost chan<- error) {
	heard := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		err := func() error {
			within, cancel := context.WithTimeout(ctx, max(silence/2, beatEvery))
			defer cancel()
			return h.beats(within, token)
		}()
		gone, ended := errors.AsType[*serviceerror.NotFound](err)
		switch {
		case err == nil:
			heard = time.Now()
		case ended:
			lost <- fmt.Errorf("the run has this lease no more: %w", gone)
			return
		case temporal.IsCanceledError(err):
			lost <- err
			return
		case silence > 0 && time.Since(heard) > silence:
			lost <- fmt.Errorf("the server has not answered for %s: %w", time.Since(heard).Round(time.Second), err)
			return
		}
	}
}

// Release gives the device back.
func (h *Holder) Release(_ context.Context, in activities.HoldInput) (struct{}, error) {
	h.Slot.Change(func() {
		if h.given != nil && h.given.id == in.Lease {
			h.finish(activities.HoldResult{End: activities.LeaseGivenBack})
		}
	})
	return struct{}{}, nil
}

// Outside notes a session of the SDK's on the device, until end is called; false while a run has a lease.
func (h *Holder) Outside() (end func(), ok bool) {
	h.Slot.Change(func() {
		if ok = h.given == nil; ok {
			h.outside++
		}
	})
	return func() { h.Slot.Change(func() { h.outside-- }) }, ok
}

// Steps are what the process's own queue serves.
func (h *Holder) Steps() []steps.Binding {
	return []steps.Binding{steps.Hold.By(h.Hold), steps.Release.By(h.Release)}
}

// InLine is what the line of the device's fingerprint serves.
func (h *Holder) InLine() []steps.Binding { return []steps.Binding{steps.Acquire.By(h.Acquire)} }

// Question is what any device worker answers.
func (h *Holder) Question() []steps.Binding {
	return []steps.Binding{{Routing: steps.Describe.Routing, Func: h.Describe}}
}
