package bench

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/reprise-rl/reprise/model/statistics"
)

// Cost is what a work takes, medians over the repetitions.
type Cost struct {
	Name string `json:"name"`
	// Seconds passed; Processor is the seconds of all processors together, which a
	// machine that is busy otherwise makes little larger.
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"`
	// Ratio and ProcessorRatio are these over those of a base that was done right
	// beside it; 0 of a base itself.
	Ratio          float64 `json:"ratio,omitempty"`
	ProcessorRatio float64 `json:"processor_ratio,omitempty"`
}

// deed is a work whose cost is measured.
type deed struct {
	name string
	// base is the place among the deeds of what it is compared with; −1 for none.
	base int
	run  func(context.Context) error
}

// took is what a deed cost once.
type took struct{ seconds, processor float64 }

// measure does the deeds in turns, each until so much time has passed, and gives
// what each costs once. What is compared with a base is done right beside it, now
// behind it, now before it: a base that was disturbed disturbs one ratio alone. The
// first repetition warms up.
func measure(ctx context.Context, deeds []deed, repeats int, least time.Duration) ([]Cost, error) {
	own, beside := make([][]took, len(deeds)), make([][]took, len(deeds)) // [deeds][repeats]
	isBase := make([]bool, len(deeds))
	for _, d := range deeds {
		if d.base >= 0 {
			isBase[d.base] = true
		}
	}
	for repeat := range repeats + 1 {
		long := least
		if repeat == 0 {
			long = 0
		}
		for k, d := range deeds {
			if isBase[k] {
				continue
			}
			pair := []int{k}
			if d.base >= 0 {
				pair = append(pair, d.base)
			}
			if repeat%2 == 0 {
				slices.Reverse(pair)
			}
			for _, at := range pair {
				once, err := deeds[at].time(ctx, long)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", deeds[at].name, err)
				}
				if at == k {
					own[k] = append(own[k], once)
				} else {
					beside[k] = append(beside[k], once)
				}
			}
		}
		if repeat == 0 {
			clear(own)
			clear(beside)
		}
	}
	return costs(deeds, own, beside), nil
}

// time does it until so much time has passed, at least once.
func (d deed) time(ctx context.Context, least time.Duration) (took, error) {
	before, err := processorTime()
	if err != nil {
		return took{}, err
	}
	begin, times := time.Now(), 0
	for times == 0 || time.Since(begin) < least {
		if err := ctx.Err(); err != nil {
			return took{}, err
		}
		if err := d.run(ctx); err != nil {
			return took{}, err
		}
		times++
	}
	passed := time.Since(begin)
	after, err := processorTime()
	return took{passed.Seconds() / float64(times), (after - before).Seconds() / float64(times)}, err
}

// costs puts the figures together: what deeds took, and what their bases took beside
// them, both [deeds][repeats]. A base's own are all of the latter.
func costs(deeds []deed, own, beside [][]took) []Cost {
	all := slices.Clone(own)
	for k, d := range deeds {
		if d.base >= 0 {
			all[d.base] = append(all[d.base], beside[k]...)
		}
	}
	out := make([]Cost, len(deeds))
	for k, d := range deeds {
		seconds, processor := func(t took) float64 { return t.seconds }, func(t took) float64 { return t.processor }
		out[k] = Cost{Name: d.name, Seconds: statistics.MedianOf(all[k], seconds), Processor: statistics.MedianOf(all[k], processor)}
		if d.base >= 0 {
			out[k].Ratio, out[k].ProcessorRatio = ratio(own[k], beside[k], seconds), ratio(own[k], beside[k], processor)
		}
	}
	return out
}

// ratio is the median of the ratios, repetition by repetition; without those whose
// base was too short for the clock.
func ratio(ts, bases []took, of func(took) float64) float64 {
	var xs []float64
	for i, t := range ts {
		if base := of(bases[i]); base > 0 {
			xs = append(xs, of(t)/base)
		}
	}
	return statistics.Median(xs)
}

// processorTime is what this process has had of all processors. Linux.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
