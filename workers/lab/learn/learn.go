// Package learn trains policies in several settings and checks that each learns the right
// thing, by its success on fixed instances before and after.
package learn

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/twins"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Outcome is what one run measured on its suite before and after training.
type Outcome struct {
	Run    string `json:"run"`
	Seed   int    `json:"seed"`
	Before Figure `json:"before"`
	After  Figure `json:"after"`
	// Rise is the difference of success in standard errors of the difference.
	Rise float64 `json:"rise"`
	// Curve is the success of the sampled episodes of each iteration, a share.
	Curve []float64 `json:"curve,omitempty"`
	// Evaluated are the versions that were measured on the fixed instances, Before and After among them.
	Evaluated []Evaluation `json:"evaluated,omitempty"`
	// Measured has the setting's metrics, and then success.
	Measured   []Measured `json:"measured,omitempty"`
	Iterations int        `json:"iterations"`
	Seconds    float64    `json:"seconds"`
	// Broken is the promise that the run broke, in words.
	Broken string `json:"broken,omitempty"`
	// State is the state fingerprint at the run's end.
	State string `json:"state,omitempty"`
}

// Evaluation is what a version reached on the fixed instances.
type Evaluation struct {
	Version int `json:"version"`
	Figure
}

// Measured is a metric of the sampled episodes at the beginning of a run and at its end.
type Measured struct {
	Metric string `json:"metric"`
	// First and Last are the means over the few first and the few last iterations, of those
	// that have the metric; nil if none has.
	First *float64 `json:"first,omitempty"`
	Last  *float64 `json:"last,omitempty"`
}

// Figure is what one evaluation measured.
type Figure struct {
	// Success is a share, Low and High its 95 % interval; Reward is the mean.
	Success float64 `json:"success"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Reward  float64 `json:"reward"`
	// Random and Best are the reference lines of success; Best is negative if it is not
	// known.
	Random float64 `json:"random"`
	Best   float64 `json:"best"`
}

// deviation is the standard error of the success, from its interval.
func (f Figure) deviation() float64 { return (f.High - f.Low) / 2 / statistics.Z95 }

func figureOf(metrics map[string]canon.Float) Figure {
	value := func(name string) float64 { return float64(metrics[name]) }
	f := Figure{
		Success: value("success/mean"), Low: value("success/low"), High: value("success/high"), Reward: value("reward/mean"),
		Random: value("reference/random_success"), Best: -1,
	}
	if best, ok := metrics["reference/best_success"]; ok {
		f.Best = float64(best)
	}
	return f
}

// reached is how far the success is on the way from random play, 0, to best play, 1; NaN if best
// play is not known or no better.
func (f Figure) reached() float64 {
	if f.Best <= f.Random {
		return math.NaN()
	}
	return (f.Success - f.Random) / (f.Best - f.Random)
}

// rise is the increase of success in standard errors of the difference.
func rise(before, after Figure) float64 {
	return (after.Success - before.Success) / math.Hypot(before.deviation(), after.deviation())
}

// Result is the outcome of every run of a setting.
type Result struct {
	Setting Setting   `json:"lesson"`
	Runs    []Outcome `json:"runs"`
}

// Options select what is trained and where.
type Options struct {
	// Worker configures the worker that trains.
	Worker workers.Options
	// Dir is the folder of the stack's data and of a record of each run that has ended, which is
	// read in place of the run the next time; if empty, the data is deleted at the end.
	Dir string
	// Seeds is how many runs each setting has.
	Seeds int
	// Only restricts training to the settings of these names, with commas between them.
	Only string
}

// Run trains in each chosen setting with each seed.
func Run(ctx context.Context, o Options, progress io.Writer) ([]Result, error) {
	chosen := settings
	if o.Only != "" {
		chosen = nil
		for name := range strings.SplitSeq(o.Only, ",") {
			n := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name })
			if n < 0 {
				return nil, fmt.Errorf("learn: --only %q is none of %s", name, Names())
			}
			chosen = append(chosen, settings[n])
		}
	}
	if o.Seeds < 1 {
		return nil, fmt.Errorf("learn: --seeds %d: at least 1", o.Seeds)
	}
	var out []Result
	servers := dev.Options{Dir: o.Dir, Ephemeral: o.Dir == "", Stdout: progress}
	err := stack.With(ctx, servers, o.Worker, func(ctx context.Context, on stack.Served) error {
		made := map[string]Outcome{} // a setting may teach several others
		run := func(s Setting, seed int) (Outcome, error) {
			id := runOf(s, seed)
			if r, ok := made[id]; ok {
				return r, nil
			}
			r, err := recorded(ctx, o.Dir, on.Servers, s, seed, progress)
			if err == nil {
				made[id] = r
			}
			return r, err
		}
		for _, s := range chosen {
			if s.Teacher != "" {
				if _, err := run(named(s.Teacher), teaching); err != nil {
					return err
				}
			}
			t := Result{Setting: s}
			for seed := 1; seed <= o.Seeds; seed++ {
				r, err := run(s, seed)
				if err != nil {
					return err
				}
				t.Runs = append(t.Runs, r)
			}
			out = append(out, t)
		}
		return nil
	})
	return out, err
}

// named is the setting of a name in the list.
func named(name string) Setting {
	return settings[slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name })]
}

// specOf is the spec of one run of a setting: its preset with its fields.
func specOf(s Setting, seed int) ([]byte, error) {
	fields := map[string]any{"description": fmt.Sprintf("reprise learn: %s, seed %d", s.Name, seed), "seed": seed}
	presets.Replace(fields, s.Fields)
	if s.Teacher != "" {
		fields["teacher"] = map[string]any{"from": spec.OriginRun + ":" + runOf(named(s.Teacher), teaching)}
	}
	return presets.With(s.Preset, fields)
}

// teaching is the seed of the run that teaches others.
const teaching = 1

// runOf is the id of a run.
func runOf(s Setting, seed int) string { return fmt.Sprintf("learn-%s-s%d", s.Name, seed) }

// train makes one run and checks its setting's promise.
func train(ctx context.Context, on stack.Servers, s Setting, seed int, progress io.Writer) (Outcome, error) {
	out := Outcome{Run: runOf(s, seed), Seed: seed}
	text, err := specOf(s, seed)
	if err != nil {
		return out, err
	}
	begin := time.Now()
	w, err := stack.StartTrain(ctx, on.Client, out.Run, text)
	if err != nil {
		return out, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go printProgress(following, on.Client, out.Run, progress)
	var r workflows.TrainResult
	if err := w.Get(ctx, &r); err != nil {
		return out, fmt.Errorf("run %s: %w", out.Run, err)
	}
	stop()
	out.Seconds, out.Iterations = time.Since(begin).Seconds(), r.Iterations
	if r.First == nil || r.Last == nil || r.Last.Version != r.Iterations {
		return out, fmt.Errorf("run %s ended without its evaluations", out.Run)
	}
	out.Before, out.After, out.State = figureOf(r.First.Metrics), figureOf(r.Last.Metrics), r.State
	out.Rise = rise(out.Before, out.After)
	chain, err := twins.Chain(ctx, on.Bucket, out.Run)
	if err != nil {
		return out, err
	}
	for _, link := range chain {
		out.Curve = append(out.Curve, float64(link.Manifest.Metrics[success]))
		for _, e := range link.Manifest.Evaluations {
			if e.Suite == r.First.Suite {
				out.Evaluated = append(out.Evaluated, Evaluation{Version: e.Version, Figure: figureOf(e.Metrics)})
			}
		}
	}
	if len(s.Metrics) > 0 {
		for _, name := range append(slices.Clone(s.Metrics), success) {
			out.Measured = append(out.Measured, measured(chain, name))
		}
	}
	out.Broken = s.broken(out)
	fmt.Fprintf(progress, "%-22s done in %.0f s: success %.1f %% to %.1f %%, mean reward %.3f to %.3f\n",
		out.Run, out.Seconds, 100*out.Before.Success, 100*out.After.Success, out.Before.Reward, out.After.Reward)
	return out, nil
}

// success is the metric that every setting is about.
const success = "success/mean"

// few is how many iterations the beginning and the end of a run are in a table of metrics.
const few = 5

// measured is a metric of a run's beginning and end.
func measured(chain store.Chain, metric string) Measured {
	mean := func(links store.Chain) *float64 {
		var values []float64
		for _, link := range links {
			if v, ok := link.Manifest.Metrics[metric]; ok {
				values = append(values, float64(v))
			}
		}
		if len(values) == 0 {
			return nil
		}
		m := statistics.Mean(values, 0.95).Mean
		return &m
	}
	n := min(few, len(chain))
	return Measured{Metric: metric, First: mean(chain[:n]), Last: mean(chain[len(chain)-n:])}
}

// broken is the promise that a run broke, or "".
func (s Setting) broken(r Outcome) string {
	outside := func(x float64, in *[2]float64) bool { return in != nil && (x < in[0] || x > in[1]) }
	switch {
	case outside(r.Before.Success, s.From):
		return fmt.Sprintf("began at %.1f %%", 100*r.Before.Success)
	case outside(r.After.Success, s.To):
		return fmt.Sprintf("ended at %.1f %%", 100*r.After.Success)
	case s.Rises > 0 && !(r.Rise >= s.Rises):
		return fmt.Sprintf("rose by %.1f", r.Rise)
	case s.Reaches > 0 && !(r.After.reached() >= s.Reaches):
		return fmt.Sprintf("came %.0f %% of the way to best play", 100*r.After.reached())
	case s.Ends != nil && r.Measured[0].Last == nil:
		return fmt.Sprintf("%s is absent", r.Measured[0].Metric)
	case s.Ends != nil && outside(*r.Measured[0].Last, s.Ends):
		return fmt.Sprintf("%s ended at %.2f", r.Measured[0].Metric, *r.Measured[0].Last)
	}
	return ""
}

// tellEvery is the longest time in which a run that has not come to its tenth iteration says nothing.
const tellEvery = 30 * time.Second

// printProgress prints a run's progress every ten iterations, and before them what it does. Queries that fail are
// skipped: nothing depends on what it prints.
func printProgress(ctx context.Context, c client.Client, run string, out io.Writer) {
	told := time.Now()
	for seen := 0; watch.Sleep(ctx, time.Second) == nil; {
		s, err := watch.Status(ctx, c, run)
		switch {
		case err != nil:
		case s.Iteration/10 != seen:
			seen = s.Iteration / 10
			fmt.Fprintf(out, "%-22s iteration %d of %d: success %s, reward %s\n", run, s.Iteration, s.Iterations,
				watch.Percent(s.Metrics, "success/mean"), watch.Value(s.Metrics, "reward/mean", "%.3f"))
		case seen == 0 && time.Since(told) >= tellEvery:
			told = time.Now()
			fmt.Fprintf(out, "%-22s iteration %d of %d, %s\n", run, s.Iteration, s.Iterations, s.Phase)
		}
	}
}
