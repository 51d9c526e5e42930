// Package learn trains in several settings and says whether each learned the right
// thing: the success on fixed instances, before and after.
package learn

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
)

// learnt is one run's outcome on its suite.
type learnt struct {
	Run    string `json:"run"`
	Seed   int    `json:"seed"`
	Before figure `json:"before"`
	After  figure `json:"after"`
	// Rise is the difference of success in standard errors of the difference.
	Rise       float64 `json:"rise"`
	Iterations int     `json:"iterations"`
	Seconds    float64 `json:"seconds"`
	// Broken says which promise the run broke.
	Broken string `json:"broken,omitempty"`
}

// figure is what an evaluation measured.
type figure struct {
	// Success is a share, Low and High its 95 % interval; Reward is the mean.
	Success float64 `json:"success"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Reward  float64 `json:"reward"`
	// Random and Best are the reference lines of success; Best is negative where it
	// is not known.
	Random float64 `json:"random"`
	Best   float64 `json:"best"`
}

// deviation is the standard error of the success, from its interval.
func (f figure) deviation() float64 { return (f.High - f.Low) / 2 / statistics.Z95 }

func figureOf(e *workflows.Evaluated) figure {
	value := func(name string) float64 { return float64(e.Metrics[name]) }
	f := figure{
		Success: value("success/mean"), Low: value("success/low"), High: value("success/high"), Reward: value("reward/mean"),
		Random: value("reference/random_success"), Best: -1,
	}
	if best, ok := e.Metrics["reference/best_success"]; ok {
		f.Best = float64(best)
	}
	return f
}

// rise is by how many standard errors the success rose.
func rise(before, after figure) float64 {
	return (after.Success - before.Success) / math.Hypot(before.deviation(), after.deviation())
}

// Taught is a lesson's outcome.
type Taught struct {
	Lesson lesson   `json:"lesson"`
	Runs   []learnt `json:"runs"`
}

// Options say what is trained.
type Options struct {
	// Worker are the options of the workers.
	Worker workers.Options
	// Dir keeps the stack's data; where it is empty nothing is kept.
	Dir string
	// Seeds is how many runs each setting has.
	Seeds int
	// Only names one setting alone.
	Only string
}

// Run trains in each chosen setting with each seed.
func Run(ctx context.Context, o Options, progress io.Writer) ([]Taught, error) {
	chosen := lessons
	if o.Only != "" {
		n := slices.IndexFunc(lessons, func(l lesson) bool { return l.Name == o.Only })
		if n < 0 {
			return nil, fmt.Errorf("learn: --only %q is none of %s", o.Only, Names())
		}
		chosen = lessons[n : n+1]
	}
	if o.Seeds < 1 {
		return nil, fmt.Errorf("learn: --seeds %d: at least 1", o.Seeds)
	}
	var out []Taught
	servers := dev.Options{Dir: o.Dir, Ephemeral: o.Dir == "", Stdout: progress}
	err := stack.With(ctx, servers, o.Worker, func(ctx context.Context, on stack.Served) error {
		for _, l := range chosen {
			t := Taught{Lesson: l}
			for seed := 1; seed <= o.Seeds; seed++ {
				r, err := teach(ctx, on.Client, l, seed, progress)
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

// lessonSpec is the spec of a lesson's run: the preset's with a few fields of its own.
func lessonSpec(l lesson, seed int) ([]byte, error) {
	fields := map[string]any{"description": fmt.Sprintf("reprise learn: %s, seed %d", l.Name, seed), "seed": seed}
	presets.Replace(fields, l.Fields)
	return presets.With(l.Preset, fields)
}

// teach makes one run and judges it.
func teach(ctx context.Context, c client.Client, l lesson, seed int, progress io.Writer) (learnt, error) {
	out := learnt{Run: fmt.Sprintf("learn-%s-s%d", l.Name, seed), Seed: seed}
	text, err := lessonSpec(l, seed)
	if err != nil {
		return out, err
	}
	begin := time.Now()
	w, err := stack.StartTrain(ctx, c, out.Run, text)
	if err != nil {
		return out, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go followLesson(following, c, out.Run, progress)
	var r workflows.TrainResult
	if err := w.Get(ctx, &r); err != nil {
		return out, fmt.Errorf("run %s: %w", out.Run, err)
	}
	stop()
	out.Seconds, out.Iterations = time.Since(begin).Seconds(), r.Iterations
	if r.First == nil || r.Last == nil || r.Last.Version != r.Iterations {
		return out, fmt.Errorf("run %s ended without its evaluations", out.Run)
	}
	out.Before, out.After = figureOf(r.First), figureOf(r.Last)
	out.Rise = rise(out.Before, out.After)
	out.Broken = l.broken(out)
	fmt.Fprintf(progress, "%-22s done in %.0f s: success %.1f %% to %.1f %%, mean reward %.3f to %.3f\n",
		out.Run, out.Seconds, 100*out.Before.Success, 100*out.After.Success, out.Before.Reward, out.After.Reward)
	return out, nil
}

// broken says which promise a run broke, or "".
func (l lesson) broken(r learnt) string {
	outside := func(x float64, in *[2]float64) bool { return in != nil && (x < in[0] || x > in[1]) }
	switch {
	case outside(r.Before.Success, l.From):
		return fmt.Sprintf("began at %.1f %%", 100*r.Before.Success)
	case outside(r.After.Success, l.To):
		return fmt.Sprintf("ended at %.1f %%", 100*r.After.Success)
	case l.Rises > 0 && !(r.Rise >= l.Rises):
		return fmt.Sprintf("rose by %.1f", r.Rise)
	}
	return ""
}

// followLesson prints a run's progress every ten iterations. It is company
// only: what it cannot ask, it leaves out.
func followLesson(ctx context.Context, c client.Client, run string, out io.Writer) {
	for seen := 0; watch.Sleep(ctx, time.Second) == nil; {
		s, err := watch.Status(ctx, c, run)
		if err != nil || s.Iteration/10 == seen {
			continue
		}
		seen = s.Iteration / 10
		fmt.Fprintf(out, "%-22s iteration %d of %d: success %s, reward %s\n", run, s.Iteration, s.Iterations,
			watch.Percent(s.Metrics, "success/mean"), watch.Value(s.Metrics, "reward/mean", "%.3f"))
	}
}
