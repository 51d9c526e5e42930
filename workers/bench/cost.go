package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// Cost is what a work takes, medians over the repetitions.
type Cost struct {
	Name string `json:"name"`
	// Seconds passed; Processor is the seconds of all processors together, which a
	// machine that is busy otherwise makes little larger.
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"`
	// Ratio and ProcessorRatio are these over the base's of the same repetition; 0
	// of a base itself.
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
// what each costs once. Their order is reversed in every other repetition, and the
// first warms up.
func measure(ctx context.Context, deeds []deed, repeats int, least time.Duration) ([]Cost, error) {
	all := make([][]took, len(deeds)) // [deeds][repeats]
	for repeat := range repeats + 1 {
		for k := range deeds {
			at := k
			if repeat%2 == 1 {
				at = len(deeds) - 1 - k
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			long := least
			if repeat == 0 {
				long = 0
			}
			once, err := deeds[at].time(ctx, long)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", deeds[at].name, err)
			}
			if repeat > 0 {
				all[at] = append(all[at], once)
			}
		}
	}
	return costs(deeds, all), nil
}

// time does it until so much time has passed, at least once.
func (d deed) time(ctx context.Context, least time.Duration) (took, error) {
	before, err := processorTime()
	if err != nil {
		return took{}, err
	}
	begin, times := time.Now(), 0
	for times == 0 || time.Since(begin) < least {
		if err := d.run(ctx); err != nil {
			return took{}, err
		}
		times++
	}
	passed := time.Since(begin)
	after, err := processorTime()
	return took{passed.Seconds() / float64(times), (after - before).Seconds() / float64(times)}, err
}

// costs puts the figures together.
func costs(deeds []deed, all [][]took) []Cost {
	seconds := func(t took) float64 { return t.seconds }
	processor := func(t took) float64 { return t.processor }
	median := func(ts []took, of func(took) float64) float64 {
		xs := make([]float64, len(ts))
		for i, t := range ts {
			xs[i] = of(t)
		}
		return Median(xs)
	}
	ratio := func(ts, bases []took, of func(took) float64) float64 {
		var xs []float64
		for i, t := range ts {
			if base := of(bases[i]); base > 0 {
				xs = append(xs, of(t)/base)
			}
		}
		return Median(xs)
	}
	out := make([]Cost, len(deeds))
	for k, d := range deeds {
		out[k] = Cost{Name: d.name, Seconds: median(all[k], seconds), Processor: median(all[k], processor)}
		if d.base >= 0 {
			out[k].Ratio, out[k].ProcessorRatio = ratio(all[k], all[d.base], seconds), ratio(all[k], all[d.base], processor)
		}
	}
	return out
}

// processorTime is what this process has had of all processors. Linux.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
