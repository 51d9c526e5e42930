package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workers/measure/bench"
)

// print writes the report for people.
func (r benchReport) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d cores, load %s before and %s after", r.Cores, r.Load[0], r.Load[1])
	if r.Fingerprint != "" {
		fmt.Fprintf(&b, ", device fingerprint %s", r.Fingerprint)
	}
	b.WriteByte('\n')
	if r.Environments != nil {
		if err := printEnvironments(&b, *r.Environments); err != nil {
			return err
		}
	}
	if r.Algorithms != nil {
		if err := printAlgorithms(&b, *r.Algorithms); err != nil {
			return err
		}
	}
	if r.Report != nil {
		printReportMeasured(&b, *r.Report)
	}
	if s := r.Speed; s.Parameters > 0 {
		fmt.Fprintf(&b, "\nStarter policy, %.2f M parameters (compiled in %.1f s)\n\n", float64(s.Parameters)/1e6, s.Compile)
		fmt.Fprintf(&b, "  forward   %8.0f tokens/s\n  training  %8.0f tokens/s\n  decoding  %8.0f new tokens/s\n", s.Forward, s.Training, s.Decoding)
	}
	if t := r.Tax; t.Iterations > 0 {
		fmt.Fprintf(&b, "\nAn iteration of %s in seconds, medians of %d; all ways end with state %s\n\n", r.Preset, t.Iterations, t.State)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\tTemporal and S3\tdirectly, S3\tdirectly, memory\t\n")
		for _, s := range t.Steps {
			fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%.4f\t\n", s.Name, s.Durable, s.Bucket, s.Direct)
		}
		fmt.Fprintf(w, "iteration\t%.4f\t%.4f\t%.4f\t\n", t.Durable, t.Bucket, t.Direct)
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n  durability tax %.3f (goal: at most 1.10); Temporal's part alone %.3f;\n  over the lower quartiles, which a busy machine disturbs less: %.3f\n", t.Ratio, t.BucketRatio, t.QuietRatio)
	}
	if r.Sweep != nil {
		if err := printSweep(&b, *r.Sweep); err != nil {
			return err
		}
	}
	if len(r.Recoveries) > 0 {
		fmt.Fprintf(&b, "\nA worker killed by SIGKILL in an iteration, another one waiting; seconds\n\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\tdetection\tdispatch\tcompile\tload\trebuild\tupdates\tkill to going on\t\n")
		for n, x := range r.Recoveries {
			recoveryRow(w, fmt.Sprintf("kill %d", n+1), x)
		}
		m := medianRecovery(r.Recoveries)
		recoveryRow(w, "median", m)
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n  detection and dispatch %.1f s together (goal: at most 10)\n", m.Detection+m.Dispatch)
		fmt.Fprintf(&b, "  a worker process had at most %s resident\n", human.Bytes(r.WorkerPeak))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func recoveryRow(w io.Writer, name string, r bench.Recovery) {
	fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t\n", name, r.Detection, r.Dispatch, r.Compile, r.Load, r.Rebuild, r.Updates, r.Total)
}

// medianRecovery is the median of each figure by itself.
func medianRecovery(rs []bench.Recovery) bench.Recovery {
	of := func(f func(bench.Recovery) float64) float64 {
		xs := make([]float64, len(rs))
		for i, r := range rs {
			xs[i] = f(r)
		}
		return statistics.Median(xs)
	}
	return bench.Recovery{
		Detection: of(func(r bench.Recovery) float64 { return r.Detection }),
		Dispatch:  of(func(r bench.Recovery) float64 { return r.Dispatch }),
		Compile:   of(func(r bench.Recovery) float64 { return r.Compile }),
		Load:      of(func(r bench.Recovery) float64 { return r.Load }),
		Rebuild:   of(func(r bench.Recovery) float64 { return r.Rebuild }),
		Total:     of(func(r bench.Recovery) float64 { return r.Total }),
		Updates:   int(of(func(r bench.Recovery) float64 { return float64(r.Updates) })),
	}
}
