package bench

import (
	"cmp"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// SweepGoal is the maximum overhead of a sweep relative to its trials' own time.
const SweepGoal = 0.05

// Sweep is the cost of a sweep whose trials run one after the other, compared with the
// trials' own times and with the same runs started by hand. Figures are medians over the
// turns.
type Sweep struct {
	// Trials of so many iterations each make a sweep.
	Trials     int `json:"trials"`
	Iterations int `json:"iterations_a_trial"`
	// Overhead is the sweep's time from the start of its first trial to its end over
	// the sum of its trials' own times, less 1.
	Overhead float64 `json:"overhead"`
	// OverAlone is the same time over the sum of the own times of the runs started by
	// hand, less 1. It includes what a sweep adds inside its trials, and any disturbance of
	// one side alone.
	OverAlone float64 `json:"overhead_to_alone"`
	// Processor is the processor time of worker and servers together for the whole sweep,
	// over the processor time for the runs started by hand, less 1; 0 if it cannot be
	// read.
	Processor float64 `json:"processor_overhead"`
	// Trial and Alone are the own seconds of a run in the sweep and by hand, medians
	// over all runs of all turns.
	Trial float64 `json:"trial_seconds"`
	Alone float64 `json:"alone_seconds"`
	// Outside is the seconds outside trials per trial. Before is the seconds before the
	// first trial; they occur once and are in neither ratio.
	Outside float64 `json:"outside_seconds_a_trial"`
	Before  float64 `json:"before_seconds"`
	// Events is the length of the sweep's history, Bytes its size.
	Events int64       `json:"history_events"`
	Bytes  int64       `json:"history_bytes"`
	Turns  []SweepTurn `json:"turns"`
}

// SweepTurn is a sweep, and the same runs by hand right before or after it. All times are
// in seconds by the server's clock.
type SweepTurn struct {
	// Wall is from the start of the first trial to the sweep's end, Own the sum of
	// the trials' times from their starts to their ends.
	Wall float64 `json:"wall_seconds"`
	Own  float64 `json:"trials_seconds"`
	// Before is from the sweep's start to its first trial's; Between the sum from a
	// trial's end to the next one's start, negative if a trial began before the previous
	// one had closed; After from the last one's end to the sweep's. Wall is
	// Own, Between and After together.
	Before  float64 `json:"before_seconds"`
	Between float64 `json:"between_seconds"`
	After   float64 `json:"after_seconds"`
	// Alone is the sum of the times of the runs started by hand, AloneWall from the
	// first one's start to the last one's end.
	Alone     float64 `json:"alone_seconds"`
	AloneWall float64 `json:"alone_wall_seconds"`
	// Overhead is Wall over Own less 1, OverAlone Wall over Alone less 1.
	Overhead  float64 `json:"overhead"`
	OverAlone float64 `json:"overhead_to_alone"`
	// Processor is what worker and servers had from the sweep's start to its end, and
	// AloneProcessor from the first start by hand to the last end.
	Processor      Processor `json:"processor"`
	AloneProcessor Processor `json:"alone_processor"`
}

// processorOverhead is the processor time of the sweep over that by hand, less 1; 0
// if it was not measured.
func (t SweepTurn) processorOverhead() float64 {
	if t.AloneProcessor.Total() <= 0 {
		return 0
	}
	return t.Processor.Total()/t.AloneProcessor.Total() - 1
}

// span is the time from a workflow's start to its end.
type span struct{ begin, end time.Time }

func (s span) seconds() float64 { return s.end.Sub(s.begin).Seconds() }

// inOrder sorts spans by their start.
func inOrder(spans []span) []span {
	return slices.SortedFunc(slices.Values(spans), func(a, b span) int {
		return cmp.Or(a.begin.Compare(b.begin), a.end.Compare(b.end))
	})
}

// own is the duration of each span in seconds.
func own(spans []span) []float64 {
	out := make([]float64, len(spans))
	for i, s := range spans {
		out[i] = s.seconds()
	}
	return out
}

func sum(xs []float64) float64 {
	total := 0.0
	for _, x := range xs {
		total += x
	}
	return total
}

// sweepTimes is the times of a sweep, its trials and the same runs by hand. There is at
// least one trial and one run.
type sweepTimes struct {
	sweep                     span
	trials, alone             []span
	processor, aloneProcessor Processor
	events, bytes             int64
}

// turn computes the figures of a turn from its times.
func (m sweepTimes) turn() SweepTurn {
	sweep, trials, alone := m.sweep, inOrder(m.trials), inOrder(m.alone)
	first, last := trials[0], trials[len(trials)-1]
	t := SweepTurn{
		Wall: sweep.end.Sub(first.begin).Seconds(), Own: sum(own(trials)),
		Before: first.begin.Sub(sweep.begin).Seconds(), After: sweep.end.Sub(last.end).Seconds(),
		Alone: sum(own(alone)), AloneWall: alone[len(alone)-1].end.Sub(alone[0].begin).Seconds(),
		Processor: m.processor, AloneProcessor: m.aloneProcessor,
	}
	for i := range len(trials) - 1 {
		t.Between += trials[i+1].begin.Sub(trials[i].end).Seconds()
	}
	t.Overhead, t.OverAlone = t.Wall/t.Own-1, t.Wall/t.Alone-1
	return t
}

// sweepOf summarizes the turns; trial and alone are the seconds of every run.
func sweepOf(trials, iterations int, turns []SweepTurn, trial, alone []float64) Sweep {
	median := func(of func(SweepTurn) float64) float64 { return medians.By(turns, of) }
	return Sweep{
		Trials: trials, Iterations: iterations, Turns: turns, Trial: medians.Of(trial), Alone: medians.Of(alone),
		Overhead:  median(func(t SweepTurn) float64 { return t.Overhead }),
		OverAlone: median(func(t SweepTurn) float64 { return t.OverAlone }),
		Processor: median(SweepTurn.processorOverhead),
		Outside:   median(func(t SweepTurn) float64 { return (t.Between + t.After) / float64(trials) }),
		Before:    median(func(t SweepTurn) float64 { return t.Before }),
	}
}
