package bench

import (
	"cmp"
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
func Run(ctx context.Context, o Options, progress io.Writer) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	text, t, err := specOf(o.Preset, o.Iterations)
	if err != nil {
		return Report{}, err
	}
	s := &sitting{
		Options: o, text: text, servers: dev.Options{Ephemeral: true, Stdout: progress},
		say: func(line string) { fmt.Fprintln(progress, line) },
	}
	s.r.Cores, s.r.Preset = runtime.GOMAXPROCS(0), o.Preset
	s.r.Load[0] = loadAverage()
	s.starter = *t.Policy.Starter
	for _, part := range []struct {
		name, what string
		measure    func(context.Context) error
	}{
		// The first, with the machine to itself.
		{partEnv, "environments: ", s.environments},
		{partAlgorithms, "algorithms: ", s.algorithms},
		{partReport, "report: ", s.report},
		{partSpeed, "speed: ", s.speed},
		{partTax, "", s.tax},
		{partSweep, "", s.sweep},
		{partRecovery, "", s.recoveries},
	} {
		if !o.has(part.name) {
			continue
		}
		if err := part.measure(ctx); err != nil {
			return s.r, fmt.Errorf("%s%w", part.what, err)
		}
	}
	s.r.Load[1] = loadAverage()
	return s.r, nil
}

// sitting is one call of Run: what is measured with, and the report as far as it is.
type sitting struct {
	Options
	text    []byte       // the preset's spec
	starter spec.Starter // the preset's
	servers dev.Options
	say     func(line string)
	r       Report
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

// onDevice opens the device for f, and reports its fingerprint.
func (s *sitting) onDevice(f func(*model.Device) error) error {
	device, err := model.OpenDevice(s.Worker.Device)
	if err != nil {
		return err
	}
	defer device.Close()
	s.r.Fingerprint = device.Fingerprint().ID()
	return f(device)
}

// pythonEnv names the Python to compare with; python3 where it is not set.
const pythonEnv = "REPRISE_PYTHON"

// How long each kind is measured in a round, so that all of it takes 20 seconds.
const (
	leastHere   = 50 * time.Millisecond
	leastPython = 400 * time.Millisecond
)

func (s *sitting) environments(ctx context.Context) error {
	models, err := measuredModels(s.starter, s.Tokenizer, s.say)
	if err != nil {
		return err
	}
	got, err := environments.Measure(ctx, environments.Options{
		Models: models, Rounds: s.Rounds, Least: leastHere, LeastPython: leastPython, Python: cmp.Or(os.Getenv(pythonEnv), "python3"),
	}, s.say)
	if err == nil {
		s.r.Environments = &got
	}
	return err
}

// leastAlgorithm is how long each of a host's algorithms is measured at a time: a
// selection takes a microsecond.
const leastAlgorithm = 20 * time.Millisecond

func (s *sitting) algorithms(ctx context.Context) error {
	s.say("measuring credit and selection")
	host, err := MeasureHostAlgorithms(ctx, s.Repeats, leastAlgorithm)
	if err != nil {
		return err
	}
	return s.onDevice(func(d *model.Device) error {
		// An update takes long, and is compared with another right beside it: half as many do.
		device, err := MeasureDeviceAlgorithms(ctx, d, s.starter, (s.Repeats+1)/2, s.say)
		if err == nil {
			s.r.Algorithms = &Algorithms{Host: host, Device: device}
		}
		return err
	})
}

func (s *sitting) report(ctx context.Context) error {
	s.say("writing a run of 220 iterations and its report, in memory")
	m, err := MeasureReport(ctx, synthetic.Paper(), nil)
	s.r.Report = &m
	return err
}

func (s *sitting) speed(ctx context.Context) error {
	return s.onDevice(func(d *model.Device) (err error) {
		s.say("measuring the starter's programs")
		s.r.Speed, err = MeasureSpeed(ctx, d, s.starter, s.Repeats)
		return err
	})
}

func (s *sitting) tax(ctx context.Context) error {
	return stack.With(ctx, s.servers, s.Worker, func(ctx context.Context, on stack.Served) error {
		return s.onDevice(func(d *model.Device) error {
			engine, err := activities.NewEngine(d)
			if err != nil {
				return err
			}
			s.say("making the starter, in memory and in the bucket; then the turns")
			s.r.Tax, err = MeasureTax(ctx, Durable{Client: on.Client, Store: on.Bucket}, Local{Engine: engine, Store: on.Bucket}, s.text, s.Rounds, s.say)
			if err != nil {
				return fmt.Errorf("durability tax: %w", err)
			}
			return nil
		})
	})
}

// The runs of the measured sweep: short ones of a small policy, to which a sweep
// adds the most.
const (
	sweepPreset     = "chaos"
	sweepIterations = 3
)

func (s *sitting) sweep(ctx context.Context) error {
	text, err := presets.With(sweepPreset, map[string]any{"iterations": sweepIterations})
	if err != nil {
		return err
	}
	return stack.With(ctx, s.servers, s.Worker, func(ctx context.Context, on stack.Served) error {
		s.r.Fingerprint = on.Device.Fingerprint
		s.say(fmt.Sprintf("warming up; then sweeps of %d trials and the same runs by hand, in turns", s.Trials))
		got, err := MeasureSweep(ctx, on.Client, text, s.Trials, s.Rounds, s.say)
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		s.r.Sweep = &got
		return nil
	})
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
