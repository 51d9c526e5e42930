package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/measure/bench"
	"github.com/reprise-rl/reprise/workers/measure/environments"
	pages "github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// benchReport is all that the bench measured, in one sitting.
type benchReport struct {
	Cores       int    `json:"cores"`
	Fingerprint string `json:"fingerprint"`
	Preset      string `json:"preset"`
	// Load is the machine's load before and after: what others did meanwhile
	// is in the figures too.
	Load         [2]string            `json:"load_average"`
	Environments *environments.Speeds `json:"environments,omitempty"`
	Algorithms   *bench.Algorithms    `json:"algorithms,omitempty"`
	Report       *pages.Measured      `json:"report,omitempty"`
	Speed        bench.Speed          `json:"speed"`
	Tax          bench.Tax            `json:"tax"`
	Sweep        *bench.Sweep         `json:"sweep,omitempty"`
	Recoveries   []bench.Recovery     `json:"recoveries"`
	// WorkerPeak is the most memory a worker process had resident, in bytes.
	WorkerPeak int64 `json:"worker_peak_bytes"`
}

// benchOptions are the bench's flags.
type benchOptions struct {
	stack.WorkerFlags
	parts                       []string
	preset, tokenizer           string
	repeats, rounds, iterations int
	trials                      int
	kills, killAt               int
	asJSON                      bool
}

// The parts of the bench, in the order they are measured.
const (
	partEnv        = "env"
	partAlgorithms = "algorithms"
	partReport     = "report"
	partSpeed      = "speed"
	partTax        = "tax"
	partSweep      = "sweep"
	partRecovery   = "recovery"
)

var benchParts = []string{partEnv, partAlgorithms, partReport, partSpeed, partTax, partSweep, partRecovery}

// has says that a part was asked for.
func (o benchOptions) has(part string) bool { return slices.Contains(o.parts, part) }

// check finds what no bench could be made of.
func (o benchOptions) check() error {
	if o.rounds < 1 || o.iterations < 3 || o.kills < 1 || o.killAt < 1 || o.repeats < 1 || o.trials < 1 {
		return fmt.Errorf("bench: --rounds, --repeats, --trials, --kills and --kill-at are at least 1, --iterations at least 3")
	}
	for _, part := range o.parts {
		if !slices.Contains(benchParts, part) {
			return fmt.Errorf("bench: --part %q is none of %s", part, strings.Join(benchParts, ", "))
		}
	}
	if len(o.parts) == 0 {
		return fmt.Errorf("bench: --part names none of %s", strings.Join(benchParts, ", "))
	}
	return nil
}

func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure speeds, the durability tax, a sweep's overhead, and recoveries",
		Long: `Measures in one sitting, on a dev stack of its own that is thrown away where it
needs one:

  env         on one core: rooms and lakes made, actions taken, states replayed,
              prompts built and replies parsed a second; and a host's part of an
              iteration. Beside gym-sokoban and gymnasium, in turns, where
              $REPRISE_PYTHON or python3 has them
  algorithms  on one core: credit and selection for 128 trajectories of 3,600
              tokens, each algorithm (goal: at most 20 ms together); on the device,
              as ratios: an update of a quarter of the groups (goal: at most 0.35 of
              one of all), a critic beside the policy, each option of the loss
  report      the page of a synthetic run of 220 iterations with 28,160 trajectories
  speed       forward, training and decoding tokens a second of the starter policy
  tax         an iteration through Temporal and S3 beside the same activities called
              directly in one process, in turns, split by step; goal: at most 1.10
  sweep       a sweep's trials, one after the other, beside their own times and the
              same runs started by hand; goal: at most 5 % more
  recovery    a worker process is killed by SIGKILL in the middle of an iteration
              while another one waits: detection and dispatch (goal: at most 10 s
              together), compiling, loading, rebuilding

Figures are medians. A machine that does something else meanwhile makes them
larger, and the ratios less sure; its load is printed.`,
		Example: `  reprise bench
  reprise bench --part env
  reprise bench --part speed,tax --rounds 6
  reprise bench --json > bench.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := runBench(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if o.asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.parts, "part", benchParts, "which parts are measured")
	f.StringVar(&o.preset, "preset", "bandit-demo", "the preset whose iterations are measured")
	f.StringVar(&o.tokenizer, "tokenizer", "", "a Hugging Face model folder: its tokenizer is measured beside the starter's (default: a tiny Qwen's, in the repository)")
	f.IntVar(&o.repeats, "repeats", 9, "how often each program and algorithm is timed; updates beside each other half as often")
	f.IntVar(&o.rounds, "rounds", 3, "turns of what is compared: with Python, of the three ways to make an iteration, of a sweep and the same runs by hand")
	f.IntVar(&o.iterations, "iterations", 12, "iterations a turn; the first and the last are not counted")
	f.IntVar(&o.trials, "trials", 8, "trials of the measured sweep")
	f.IntVar(&o.kills, "kills", 3, "how many workers are killed")
	f.IntVar(&o.killAt, "kill-at", 6, "the iteration whose update is killed: so many updates are rebuilt")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	o.AddFlags(cmd, 5*time.Second)
	return cmd
}

func runBench(ctx context.Context, o benchOptions, progress io.Writer) (r benchReport, err error) {
	if err := o.check(); err != nil {
		return r, err
	}
	say := func(line string) { fmt.Fprintln(progress, line) }
	text, t, err := benchSpec(o.preset, o.iterations)
	if err != nil {
		return r, err
	}
	r.Cores, r.Preset = runtime.GOMAXPROCS(0), o.preset
	r.Load[0] = loadAverage()
	// The first, with the machine to itself.
	if o.has(partEnv) {
		if err := r.measureEnvironments(ctx, o, *t.Policy.Starter, say); err != nil {
			return r, fmt.Errorf("environments: %w", err)
		}
	}
	if o.has(partAlgorithms) {
		if err := r.measureAlgorithms(ctx, o, *t.Policy.Starter, say); err != nil {
			return r, fmt.Errorf("algorithms: %w", err)
		}
	}
	if o.has(partReport) {
		if err := r.measureReport(ctx, say); err != nil {
			return r, fmt.Errorf("report: %w", err)
		}
	}
	if o.has(partSpeed) {
		if err := r.measureSpeed(ctx, o, *t.Policy.Starter, say); err != nil {
			return r, fmt.Errorf("speed: %w", err)
		}
	}
	servers := dev.Options{Ephemeral: true, Stdout: progress}
	if o.has(partTax) {
		err = stack.With(ctx, servers, o.WorkerFlags, func(ctx context.Context, on stack.Served) error {
			return r.measureTax(ctx, on, o, text, say)
		})
		if err != nil {
			return r, err
		}
	}
	if o.has(partSweep) {
		err = stack.With(ctx, servers, o.WorkerFlags, func(ctx context.Context, on stack.Served) error {
			return r.measureSweep(ctx, on, o, say)
		})
		if err != nil {
			return r, err
		}
	}
	if o.has(partRecovery) {
		if text, _, err = benchSpec(o.preset, o.killAt+3); err != nil {
			return r, err
		}
		if err := r.kill(ctx, servers, o, text, say); err != nil {
			return r, err
		}
	}
	r.Load[1] = loadAverage()
	return r, nil
}

// benchSpec is a preset with so many iterations, one snapshot at the end and no
// evaluation: each iteration does the same.
func benchSpec(preset string, iterations int) ([]byte, spec.Train, error) {
	text, err := presets.With(preset, map[string]any{
		"iterations": iterations, "snapshot": map[string]any{"every": iterations}, "evaluation": map[string]any{"every": 0},
	})
	if err != nil {
		return nil, spec.Train{}, err
	}
	t, err := spec.Decode(text, activities.Known())
	if err == nil && t.Policy.Starter == nil {
		err = fmt.Errorf("preset %s has no starter policy", preset)
	}
	return text, t, err
}

// measureSpeed fills in speed.
func (r *benchReport) measureSpeed(ctx context.Context, o benchOptions, starter spec.Starter, say func(string)) error {
	device, err := model.OpenDevice(model.DeviceOptions{Plugin: o.Plugin, XLAFlags: o.XLAFlags})
	if err != nil {
		return err
	}
	defer device.Close()
	r.Fingerprint = device.Fingerprint().ID()
	say("measuring the starter's programs")
	r.Speed, err = bench.MeasureSpeed(ctx, device, starter, o.repeats)
	return err
}

// measureTax fills in the tax.
func (r *benchReport) measureTax(ctx context.Context, on stack.Served, o benchOptions, text []byte, say func(string)) error {
	device, err := model.OpenDevice(model.DeviceOptions{Plugin: o.Plugin, XLAFlags: o.XLAFlags})
	if err != nil {
		return err
	}
	defer device.Close()
	engine, err := activities.NewEngine(device)
	if err != nil {
		return err
	}
	r.Fingerprint = engine.Info().Fingerprint
	say("making the starter, in memory and in the bucket; then the turns")
	r.Tax, err = bench.MeasureTax(ctx, bench.Durable{Client: on.Client, Store: on.Bucket}, bench.Local{Engine: engine, Store: on.Bucket}, text, o.rounds, say)
	if err != nil {
		return fmt.Errorf("durability tax: %w", err)
	}
	return nil
}

// loadAverage is the machine's load of the last minute, or "" where it does not say.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
