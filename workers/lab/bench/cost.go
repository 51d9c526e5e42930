package bench

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// Cost is the cost of a workload as medians over its repetitions.
type Cost struct {
	Name string `json:"name"`
	// Seconds is wall time. Processor is the time of all processors together, which other
	// load on the machine changes little.
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"`
	// Ratio and ProcessorRatio are relative to a baseline measured right before or after;
	// 0 for a baseline itself.
	Ratio          float64 `json:"ratio,omitempty"`
	ProcessorRatio float64 `json:"processor_ratio,omitempty"`
}

// workload is work whose cost is measured.
type workload struct {
	name string
	// base is the index of the workload it is compared with, −1 for none.
	base int
	run  func(context.Context) error
}

// timing is the cost of one repetition.
type timing struct{ seconds, processor float64 }

// measure runs the workloads in turns, each for at least the given time, and returns the
// cost of each. A workload and its baseline run one after the other, in alternating
// order, so that other load on the machine disturbs both. The first repetition warms up.
func measure(ctx context.Context, workloads []workload, repeats int, least time.Duration) ([]Cost, error) {
	own, beside := make([][]timing, len(workloads)), make([][]timing, len(workloads)) // [workloads][repeats]
	isBase := make([]bool, len(workloads))
	for _, d := range workloads {
		if d.base >= 0 {
			isBase[d.base] = true
		}
	}
	for repeat := range repeats + 1 {
		long := least
		if repeat == 0 {
			long = 0
		}
		for k, d := range workloads {
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
				once, err := workloads[at].time(ctx, long)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", workloads[at].name, err)
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
	return costs(workloads, own, beside), nil
}

// time repeats the workload for at least the given time and returns the mean.
func (d workload) time(ctx context.Context, least time.Duration) (timing, error) {
	before, err := processorTime()
	if err != nil {
		return timing{}, err
	}
	begin, times := time.Now(), 0
	for times == 0 || time.Since(begin) < least {
		if err := ctx.Err(); err != nil {
			return timing{}, err
		}
		if err := d.run(ctx); err != nil {
			return timing{}, err
		}
		times++
	}
	passed := time.Since(begin)
	after, err := processorTime()
	return timing{passed.Seconds() / float64(times), (after - before).Seconds() / float64(times)}, err
}

// costs summarizes timings: own are the workloads' and beside their baselines', both
// [workloads][repeats]. A baseline's own timings are all of those in beside.
func costs(workloads []workload, own, beside [][]timing) []Cost {
	all := slices.Clone(own)
	for k, d := range workloads {
		if d.base >= 0 {
			all[d.base] = append(all[d.base], beside[k]...)
		}
	}
	out := make([]Cost, len(workloads))
	for k, d := range workloads {
		seconds, processor := func(t timing) float64 { return t.seconds }, func(t timing) float64 { return t.processor }
		out[k] = Cost{Name: d.name, Seconds: medians.By(all[k], seconds), Processor: medians.By(all[k], processor)}
		if d.base >= 0 {
			out[k].Ratio, out[k].ProcessorRatio = ratio(own[k], beside[k], seconds), ratio(own[k], beside[k], processor)
		}
	}
	return out
}

// ratio is the median of the ratios of each repetition. Repetitions whose baseline was
// too short for the clock are omitted.
func ratio(ts, bases []timing, of func(timing) float64) float64 {
	var xs []float64
	for i, t := range ts {
		if base := of(bases[i]); base > 0 {
			xs = append(xs, of(t)/base)
		}
	}
	return medians.Of(xs)
}

// processorTime is the processor time of this process so far. Linux only.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
