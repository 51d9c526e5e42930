package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workers/measure/bench"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
)

// lesson is a setting, and what it must teach.
type lesson struct {
	Name string `json:"name"`
	// Preset is what is run, Fields what is replaced in it.
	Preset string         `json:"preset"`
	Fields map[string]any `json:"fields,omitempty"`
	// From and To bound the success before and after; Rises is by how many standard
	// errors of the difference it has to rise. A lesson that promises nothing has none.
	From  *[2]float64 `json:"from,omitempty"`
	To    *[2]float64 `json:"to,omitempty"`
	Rises float64     `json:"rises,omitempty"`
	// What says in words what is promised.
	What string `json:"what"`
}

// lessons are: does it learn, and does it learn the right thing?
//
// Two things in the bandit pull beside the mean reward, in opposite directions.
// Selection by reward deviation keeps the groups in which somebody was lucky: it
// favours the risk. GRPO's division by the group's deviation makes a group in
// which nobody was lucky, where rewards differ by 0.15, count as much as one
// with wins: it favours safety. So where no group is left out, the promises hold
// for advantages that are not divided, whose mean is the policy gradient; the
// two settings that are pulled away are reported and promise nothing.
var lessons = []lesson{
	{Name: "p25-keep25", Preset: "bandit-demo", Fields: banditLesson(0.25, 0.25, true, 30), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 %"},
	{Name: "p25-all", Preset: "bandit-demo", Fields: banditLesson(0.25, 1, false, 25), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 %"},
	{Name: "p10-all", Preset: "bandit-demo", Fields: banditLesson(0.10, 1, false, 25), From: even, To: &[2]float64{0, 0.20}, What: "35–65 % to at most 20 %"},
	{Name: "p10-keep25", Preset: "bandit-demo", Fields: banditLesson(0.10, 0.25, true, 30), What: "nothing: selection favours the risk"},
	{Name: "p25-all-std", Preset: "bandit-demo", Fields: banditLesson(0.25, 1, true, 15), What: "nothing: dividing by the deviation favours safety"},
	{Name: "frozenlake", Preset: "frozenlake-learn", Rises: 3, What: "rises by 3 standard errors"},
	{Name: "sokoban", Preset: "sokoban-learn", Rises: 3, What: "rises by 3 standard errors"},
}

// even is where a policy that knows nothing of the arms begins.
var even = &[2]float64{0.35, 0.65}

func lessonNames() string {
	var names []string
	for _, l := range lessons {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// The suite that the bandit's policies are measured on: 256 fixed samples at the
// rollout's temperature, so that what is measured is the policy that is trained.
const (
	learnInstances   = 64
	learnSamples     = 4
	learnTemperature = 1.0
)

// banditLesson is a bandit whose high arm pays 1 with a probability; the low arm
// pays 0.15 for certain. keep is the fraction of the groups that is learned from.
func banditLesson(probability, keep float64, byStd bool, iterations int) map[string]any {
	selection := map[string]any{"method": "top_fraction", "keep": keep}
	if keep == 1 {
		selection = map[string]any{"method": "all", "keep": 1.0}
	}
	return map[string]any{
		"iterations":  iterations,
		"environment": map[string]any{"options": map[string]any{"high_probability": probability}},
		"selection":   selection,
		"credit":      map[string]any{"normalize_by_std": byStd},
		"snapshot":    map[string]any{"every": iterations},
		"evaluation": map[string]any{
			"every": iterations, "instances": learnInstances, "samples": learnSamples, "temperature": learnTemperature,
		},
	}
}

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

// taught is a lesson's outcome.
type taught struct {
	Lesson lesson   `json:"lesson"`
	Runs   []learnt `json:"runs"`
}

// learnOptions are the flags of learn.
type learnOptions struct {
	stack.WorkerFlags
	dir    string
	seeds  int
	only   string
	asJSON bool
}

func learnCommand() *cobra.Command {
	var o learnOptions
	cmd := &cobra.Command{
		Use:   "learn",
		Short: "does it learn the right thing: bandit, FrozenLake, Sokoban, three seeds each",
		Long: `Trains in several settings with three seeds each, as Train workflows on a dev
stack of its own, and looks at the success on fixed instances before and after.
It ends with status 1 where a promise is broken. The bandit's high arm pays 1 with
probability p, the low arm 0.15 for certain, and success is the high arm:

  p = 0.25, a quarter of the groups kept   35–65 % high arm to at least 90 %
  p = 0.25, all groups                     the same
  p = 0.10, all groups                     to at most 20 %: the low arm pays more
  p = 0.10, a quarter kept                 nothing is promised: selection by reward
                                           deviation favours the risk
  p = 0.25, all groups, advantages         nothing is promised: a group without a
  divided by the group's deviation         win counts as much as one with wins
  FrozenLake, Sokoban (several turns)      success rises by 3 standard errors

With --dir the stack stays, and what was interrupted goes on.`,
		Example: `  reprise learn
  reprise learn --seeds 1 --only p25-keep25
  reprise learn --only sokoban
  reprise learn --dir .reprise/learn --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			results, err := runLearn(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := printLearnt(cmd.OutOrStdout(), results, o.asJSON); err != nil {
				return err
			}
			for _, t := range results {
				for _, r := range t.Runs {
					if r.Broken != "" {
						return errSilent
					}
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "keep the stack's data in this folder (default: nothing is kept)")
	f.IntVar(&o.seeds, "seeds", 3, "runs of each setting, with the seeds 1, 2, …")
	f.StringVar(&o.only, "only", "", "one setting alone: "+lessonNames())
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	// Nothing is killed here: a busy machine should not look like a lost one.
	o.AddFlags(cmd, 20*time.Second)
	return cmd
}

func runLearn(ctx context.Context, o learnOptions, progress io.Writer) ([]taught, error) {
	chosen := lessons
	if o.only != "" {
		chosen = nil
		for _, l := range lessons {
			if l.Name == o.only {
				chosen = []lesson{l}
			}
		}
		if chosen == nil {
			return nil, fmt.Errorf("learn: --only %q is none of %s", o.only, lessonNames())
		}
	}
	if o.seeds < 1 {
		return nil, fmt.Errorf("learn: --seeds %d: at least 1", o.seeds)
	}
	var out []taught
	servers := dev.Options{Dir: o.dir, Ephemeral: o.dir == "", Stdout: progress}
	err := stack.With(ctx, servers, o.WorkerFlags, func(ctx context.Context, on stack.Served) error {
		d := bench.Durable{Client: on.Client, Store: on.Bucket}
		for _, l := range chosen {
			t := taught{Lesson: l}
			for seed := 1; seed <= o.seeds; seed++ {
				r, err := teach(ctx, d, l, seed, progress)
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
func teach(ctx context.Context, d bench.Durable, l lesson, seed int, progress io.Writer) (learnt, error) {
	out := learnt{Run: fmt.Sprintf("learn-%s-s%d", l.Name, seed), Seed: seed}
	text, err := lessonSpec(l, seed)
	if err != nil {
		return out, err
	}
	begin := time.Now()
	w, err := d.Start(ctx, out.Run, text)
	if err != nil {
		return out, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go followLesson(following, d.Client, out.Run, progress)
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
		var s workflows.Status
		v, err := c.QueryWorkflow(ctx, run, "", "status")
		if err != nil || v.Get(&s) != nil || s.Iteration/10 == seen {
			continue
		}
		seen = s.Iteration / 10
		fmt.Fprintf(out, "%-22s iteration %d of %d: success %s, reward %s\n", run, s.Iteration, s.Iterations,
			watch.Percent(s.Metrics, "success/mean"), watch.Value(s.Metrics, "reward/mean", "%.3f"))
	}
}

// printLearnt prints the table.
func printLearnt(out io.Writer, results []taught, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(results)
	}
	return writeLearnt(out, results)
}
