package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/measure/environments"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Report is all that the bench measured, in one sitting.
type Report struct {
	Cores       int    `json:"cores"`
	Fingerprint string `json:"fingerprint"`
	Preset      string `json:"preset"`
	// Load is the machine's load before and after: what others did meanwhile
	// is in the figures too.
	Load         [2]string            `json:"load_average"`
	Environments *environments.Speeds `json:"environments,omitempty"`
	Algorithms   *Algorithms          `json:"algorithms,omitempty"`
	Report       *ReportSpeed         `json:"report,omitempty"`
	Speed        Speed                `json:"speed"`
	Tax          Tax                  `json:"tax"`
	Sweep        *Sweep               `json:"sweep,omitempty"`
	Recoveries   []Recovery           `json:"recoveries"`
	// WorkerPeak is the most memory a worker process had resident, in bytes.
	WorkerPeak int64 `json:"worker_peak_bytes"`
}

// Options are the bench's flags.
type Options struct {
	// Worker are the options of the workers.
	Worker workers.Options
	// Parts are which of [Parts] are measured.
	Parts []string
	// Preset is the one whose iterations are measured, Tokenizer a model folder whose
	// tokenizer is measured beside the starter's.
	Preset, Tokenizer string
	// Repeats is how often each program and algorithm is timed; Rounds are the turns of
	// what is compared; Iterations are those of a turn.
	Repeats, Rounds, Iterations int
	// Trials are those of the measured sweep.
	Trials int
	// Kills is how many workers are killed, KillAt the iteration whose update is.
	Kills, KillAt int
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

// Parts are all parts, in that order.
var Parts = []string{partEnv, partAlgorithms, partReport, partSpeed, partTax, partSweep, partRecovery}

// has says that a part was asked for.
func (o Options) has(part string) bool { return slices.Contains(o.Parts, part) }

// check finds what no bench could be made of.
func (o Options) check() error {
	if o.Rounds < 1 || o.Iterations < 3 || o.Kills < 1 || o.KillAt < 1 || o.Repeats < 1 || o.Trials < 1 {
		return fmt.Errorf("bench: --rounds, --repeats, --trials, --kills and --kill-at are at least 1, --iterations at least 3")
	}
	for _, part := range o.Parts {
		if !slices.Contains(Parts, part) {
			return fmt.Errorf("bench: --part %q is none of %s", part, strings.Join(Parts, ", "))
		}
	}
	if len(o.Parts) == 0 {
		return fmt.Errorf("bench: --part names none of %s", strings.Join(Parts, ", "))
	}
	return nil
}

// Run measures the parts that are asked for. progress gets a line for each step.
func Run(ctx context.Context, o Options, progress io.Writer) (r Report, err error) {
	if err := o.check(); err != nil {
		return r, err
	}
	say := func(line string) { fmt.Fprintln(progress, line) }
	text, t, err := specOf(o.Preset, o.Iterations)
	if err != nil {
		return r, err
	}
	r.Cores, r.Preset = runtime.GOMAXPROCS(0), o.Preset
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
		err = stack.With(ctx, servers, o.Worker, func(ctx context.Context, on stack.Served) error {
			return r.measureTax(ctx, on, o, text, say)
		})
		if err != nil {
			return r, err
		}
	}
	if o.has(partSweep) {
		err = stack.With(ctx, servers, o.Worker, func(ctx context.Context, on stack.Served) error {
			return r.measureSweep(ctx, on, o, say)
		})
		if err != nil {
			return r, err
		}
	}
	if o.has(partRecovery) {
		if text, _, err = specOf(o.Preset, o.KillAt+3); err != nil {
			return r, err
		}
		err = stack.WithServers(ctx, servers, func(on stack.Servers) error { return r.kill(ctx, on, o, text, say) })
		if err != nil {
			return r, err
		}
	}
	r.Load[1] = loadAverage()
	return r, nil
}

// specOf is a preset with so many iterations, one snapshot at the end and no
// evaluation: each iteration does the same.
func specOf(preset string, iterations int) ([]byte, spec.Train, error) {
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
func (r *Report) measureSpeed(ctx context.Context, o Options, starter spec.Starter, say func(string)) error {
	device, err := model.OpenDevice(o.Worker.Device)
	if err != nil {
		return err
	}
	defer device.Close()
	r.Fingerprint = device.Fingerprint().ID()
	say("measuring the starter's programs")
	r.Speed, err = MeasureSpeed(ctx, device, starter, o.Repeats)
	return err
}

// measureTax fills in the tax.
func (r *Report) measureTax(ctx context.Context, on stack.Served, o Options, text []byte, say func(string)) error {
	device, err := model.OpenDevice(o.Worker.Device)
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
	r.Tax, err = MeasureTax(ctx, Durable{Client: on.Client, Store: on.Bucket}, Local{Engine: engine, Store: on.Bucket}, text, o.Rounds, say)
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

// pythonEnv names the Python to compare with; python3 where it is not set.
const pythonEnv = "REPRISE_PYTHON"

// How long each kind is measured in a round, so that all of it takes 20 seconds.
const (
	leastHere   = 50 * time.Millisecond
	leastPython = 400 * time.Millisecond
)

// measureEnvironments fills in the environments.
func (r *Report) measureEnvironments(ctx context.Context, o Options, s spec.Starter, say func(string)) error {
	models, err := measuredModels(s, o.Tokenizer, say)
	if err != nil {
		return err
	}
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	got, err := environments.Measure(ctx, environments.Options{
		Models: models, Rounds: o.Rounds, Least: leastHere, LeastPython: leastPython, Python: python,
	}, say)
	if err != nil {
		return err
	}
	r.Environments = &got
	return nil
}

// leastAlgorithm is how long each of a host's algorithms is measured at a time: a
// selection takes a microsecond.
const leastAlgorithm = 20 * time.Millisecond

// measureAlgorithms fills in the algorithms.
func (r *Report) measureAlgorithms(ctx context.Context, o Options, starter spec.Starter, say func(string)) error {
	var out Algorithms
	var err error
	say("measuring credit and selection")
	if out.Host, err = MeasureHostAlgorithms(ctx, o.Repeats, leastAlgorithm); err != nil {
		return err
	}
	device, err := model.OpenDevice(o.Worker.Device)
	if err != nil {
		return err
	}
	defer device.Close()
	r.Fingerprint = device.Fingerprint().ID()
	// An update takes long, and is compared with another right beside it: half as many do.
	if out.Device, err = MeasureDeviceAlgorithms(ctx, device, starter, (o.Repeats+1)/2, say); err != nil {
		return err
	}
	r.Algorithms = &out
	return nil
}

// The runs of the measured sweep: short ones of a small policy, to which a sweep
// adds the most.
const (
	sweepPreset     = "chaos"
	sweepIterations = 3
)

// measureSweep fills in the sweep.
func (r *Report) measureSweep(ctx context.Context, on stack.Served, o Options, say func(string)) error {
	text, err := presets.With(sweepPreset, map[string]any{"iterations": sweepIterations})
	if err != nil {
		return err
	}
	r.Fingerprint = on.Device.Fingerprint
	say(fmt.Sprintf("warming up; then sweeps of %d trials and the same runs by hand, in turns", o.Trials))
	got, err := MeasureSweep(ctx, on.Client, text, o.Trials, o.Rounds, say)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	r.Sweep = &got
	return nil
}

// measureReport fills in how long the report of a large run takes.
func (r *Report) measureReport(ctx context.Context, say func(string)) error {
	say("writing a run of 220 iterations and its report, in memory")
	m, err := MeasureReport(ctx, synthetic.Paper(), nil)
	r.Report = &m
	return err
}
