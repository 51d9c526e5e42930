package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/interceptor"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/environments"
	"github.com/reprise-rl/reprise/workers/lab/heartbeats"
	"github.com/reprise-rl/reprise/workers/lab/speed"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Report is the result of Run.
type Report struct {
	Cores       int    `json:"cores"`
	Fingerprint string `json:"fingerprint"`
	Preset      string `json:"preset"`
	// Load is the machine's load average before and after: other load is part of the
	// figures.
	Load         [2]string            `json:"load_average"`
	Environments *environments.Speeds `json:"environments,omitempty"`
	Foreign      []ForeignTurn        `json:"foreign_turns,omitempty"`
	Calls        []Call               `json:"calls,omitempty"`
	Algorithms   *Algorithms          `json:"algorithms,omitempty"`
	Report       *ReportSpeed         `json:"report,omitempty"`
	Speed        *speed.Speeds        `json:"speed,omitempty"`
	Exact        []Exactness          `json:"exact,omitempty"`
	Tax          Tax                  `json:"tax"`
	// LongTax is that of the preset with twice as many groups: iterations of about a second.
	LongTax    Tax                 `json:"long_tax"`
	Sweep      *Sweep              `json:"sweep,omitempty"`
	Stubs      *Stubs              `json:"stubs,omitempty"`
	SlowBucket *SlowBucket         `json:"slow_bucket,omitempty"`
	Helped     *Helped             `json:"helped,omitempty"`
	Size       *Size               `json:"size,omitempty"`
	Recoveries []Recovery          `json:"recoveries"`
	Heartbeats *heartbeats.Figures `json:"heartbeats,omitempty"`
	// WorkerPeak is the peak resident memory of a worker process in bytes.
	WorkerPeak int64 `json:"worker_peak_bytes"`
}

// Options select what Run measures.
type Options struct {
	// Worker configures the workers.
	Worker workers.Options
	// Parts names the parts to measure, some of [Parts].
	Parts []string
	// Preset names the preset whose iterations are measured, Tokenizer a model folder whose
	// tokenizer is measured in addition to the starter's.
	Preset, Tokenizer string
	// Model names a model folder whose architecture's speed is measured, in place of the starter's and the
	// wide policy's.
	Model string
	// Repeats is how often each program and algorithm is timed, Rounds how often each side
	// of a comparison runs, Iterations the iterations of a round.
	Repeats, Rounds, Iterations int
	// Trials is the number of trials of the measured sweep, StubTrials of the sweep whose
	// trials are stubs; 0 leaves that one out.
	Trials, StubTrials int
	// Kills is how many workers are killed, KillAt the iteration during whose update.
	Kills, KillAt int
	// KillWorker kills a whole worker, as when its machine is lost, in place of the process that computes for it.
	KillWorker bool
	// KillLarge kills while a policy of 98 million parameters is trained, in place of the preset's.
	KillLarge bool
	// Heartbeats are the time-outs that are measured, and how. Its repeats are Kills.
	Heartbeats heartbeats.Options
}

// The parts of the bench, in the order they are measured.
const (
	partEnv        = "env"
	partCalls      = "calls"
	partAlgorithms = "algorithms"
	partReport     = "report"
	partSpeed      = "speed"
	partExact      = "exact"
	partTax        = "tax"
	partSweep      = "sweep"
	partBucket     = "bucket"
	partWorkers    = "workers"
	partSize       = "size"
	partRecovery   = "recovery"
	partHeartbeats = "heartbeats"
)

// Parts lists all parts in that order.
var Parts = []string{
	partEnv, partCalls, partAlgorithms, partReport, partSpeed, partExact, partTax, partSweep, partBucket, partWorkers, partSize, partRecovery,
	partHeartbeats,
}

// DefaultParts are those that take minutes.
var DefaultParts = slices.DeleteFunc(slices.Clone(Parts), func(part string) bool { return part == partHeartbeats })

// has reports whether a part is to be measured.
func (o Options) has(part string) bool { return slices.Contains(o.Parts, part) }

// check validates the options.
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
	if o.has(partHeartbeats) {
		if err := o.Heartbeats.Check(); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return nil
}

// Run measures the selected parts. It writes its progress to progress.
func Run(ctx context.Context, o Options, progress io.Writer) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	text, t, err := specOf(o.Preset, o.Iterations, nil)
	if err != nil {
		return Report{}, err
	}
	s := &benchmark{
		Options: o, text: text, groups: t.Rollout.Groups, servers: dev.Options{Ephemeral: true, Stdout: progress},
		say: func(line string) { fmt.Fprintln(progress, line) },
	}
	s.r.Cores, s.r.Preset = runtime.GOMAXPROCS(0), o.Preset
	s.r.Load[0] = heartbeats.LoadAverage()
	s.starter = *t.Policy.Starter
	for _, part := range []struct {
		name, what string
		measure    func(context.Context) error
	}{
		// First, while no server or worker runs.
		{partEnv, "environments: ", s.environments},
		{partCalls, "calls: ", s.calls},
		{partAlgorithms, "algorithms: ", s.algorithms},
		{partReport, "report: ", s.report},
		{partSpeed, "speed: ", s.speed},
		{partExact, "exact: ", s.exactness},
		{partTax, "", s.tax},
		{partSweep, "", s.sweep},
		{partBucket, "slow bucket: ", s.slowBuckets},
		{partWorkers, "workers: ", s.helpers},
		{partSize, "size: ", s.sizes},
		{partRecovery, "", s.recoveries},
		{partHeartbeats, "heartbeats: ", s.heartbeats},
	} {
		if !o.has(part.name) {
			continue
		}
		if err := part.measure(ctx); err != nil {
			return s.r, fmt.Errorf("%s%w", part.what, err)
		}
	}
	s.r.Load[1] = heartbeats.LoadAverage()
	return s.r, nil
}

// benchmark is one call of Run with its report so far.
type benchmark struct {
	Options
	text    []byte       // the preset's spec
	groups  int          // the preset's
	starter spec.Starter // the preset's
	servers dev.Options
	say     func(line string)
	r       Report
}

// specOf is a preset with the given number of iterations, one snapshot at the end and no
// evaluation, so that all iterations do the same work, and with fields of its rollout.
func specOf(preset string, iterations int, rollout map[string]any) ([]byte, spec.Train, error) {
	text, err := presets.With(preset, map[string]any{
		"iterations": iterations, "snapshot": map[string]any{"every": iterations}, "evaluation": map[string]any{"every": 0},
		"rollout": rollout,
	})
	if err != nil {
		return nil, spec.Train{}, err
	}
	t, err := spec.Decode(text, run.Known())
	if err == nil && t.Policy.Starter == nil {
		err = fmt.Errorf("preset %s has no starter policy", preset)
	}
	return text, t, err
}

// onDevice runs f with an open device, which compiles every program, and records its
// fingerprint.
func (s *benchmark) onDevice(f func(*model.Device) error) error {
	options := s.Worker.Device
	options.ProgramCache = programcache.None
	device, err := model.OpenDevice(options)
	if err != nil {
		return err
	}
	defer device.Close()
	s.r.Fingerprint = device.Fingerprint().ID()
	return f(device)
}

// pythonEnv is the environment variable that names the Python to compare with. The
// default is python3.
const pythonEnv = "REPRISE_PYTHON"

func python() string { return cmp.Or(os.Getenv(pythonEnv), "python3") }

// How long each kind is measured in a round. All of them take about 20 seconds.
const (
	leastHere   = 50 * time.Millisecond
	leastPython = 400 * time.Millisecond
)

func (s *benchmark) environments(ctx context.Context) error {
	models, err := measuredModels(s.starter, s.Tokenizer, s.say)
	if err != nil {
		return err
	}
	got, err := environments.Measure(ctx, environments.Options{
		Models: models, Rounds: s.Rounds, Least: leastHere, LeastPython: leastPython, Python: python(),
	}, s.say)
	if err != nil {
		return err
	}
	s.r.Environments = &got
	return s.foreign(ctx)
}

// leastAlgorithm is how long each host algorithm is measured at a time: one selection
// takes a microsecond.
const leastAlgorithm = 20 * time.Millisecond

func (s *benchmark) algorithms(ctx context.Context) error {
	s.say("measuring credit and selection")
	host, err := MeasureHostAlgorithms(ctx, s.Repeats, leastAlgorithm)
	if err != nil {
		return err
	}
	return s.onDevice(func(d *model.Device) error {
		// Updates are slow and each is compared with its neighbour, so half the repeats suffice.
		device, err := MeasureDeviceAlgorithms(ctx, d, s.Worker.Device, s.starter, (s.Repeats+1)/2, s.say)
		if err == nil {
			s.r.Algorithms = &Algorithms{Host: host, Device: device}
		}
		return err
	})
}

func (s *benchmark) report(ctx context.Context) error {
	s.say("writing a run of 220 iterations and its report, in memory")
	m, err := MeasureReport(ctx, synthetic.Paper(), nil)
	s.r.Report = &m
	return err
}

// The shapes that speeds are measured at. An optimizer step of the wide policy takes seconds.
var (
	starterShape = speed.Shape{Tokens: 128, MicroBatch: 16, MicroBatches: 4, Rows: 64, PromptTokens: 64, NewTokens: 64, BlockRows: 512}
	wideShape    = speed.Shape{Tokens: 128, MicroBatch: 4, MicroBatches: 2, Rows: 16, PromptTokens: 32, NewTokens: 32, BlockRows: 128}
	folderShape  = speed.Shape{Tokens: 214, MicroBatch: 4, MicroBatches: 2, Rows: 16, PromptTokens: 150, NewTokens: 64, BlockRows: 32}
)

// leastWork is how long each kind of work is repeated in a turn.
const leastWork = 300 * time.Millisecond

func (s *benchmark) speed(ctx context.Context) error {
	subjects := []speed.Subject{
		{Name: "starter", Config: device.StarterConfig(s.starter), Shape: starterShape, Turns: s.Repeats, Least: leastWork, DecodingGoal: 2},
		{Name: "wide", Config: speed.Wide(), Shape: wideShape, Turns: s.Rounds, Least: leastWork, DecodingGoal: 1.2},
	}
	if s.Model != "" {
		c, err := architecture(s.Model)
		if err != nil {
			return err
		}
		subjects = []speed.Subject{{Name: filepath.Base(s.Model), Config: c, Shape: folderShape, Turns: s.Rounds, Least: leastWork,
			DecodingGoal: 1.5}}
	}
	return s.onDevice(func(d *model.Device) error {
		got, err := speed.Measure(ctx, d, subjects, python(), s.say)
		if err == nil {
			s.r.Speed = &got
		}
		return err
	})
}

// The goals of the durability tax: of the demo's iterations, and of those of about a second.
const (
	taxGoal     = 1.12
	longTaxGoal = 1.07
)

// The turns of the tax in a round.
const (
	taxTurns     = 3
	longTaxTurns = 2
)

func (s *benchmark) tax(ctx context.Context) error {
	long, _, err := specOf(s.Preset, s.Iterations, map[string]any{"groups": 2 * s.groups})
	if err != nil {
		return err
	}
	beside := &Beside{}
	options := s.Worker
	options.Around = []interceptor.WorkerInterceptor{beside}
	return stack.With(ctx, s.servers, options, func(ctx context.Context, on stack.Served) error {
		return s.onDevice(func(d *model.Device) error {
			engine, err := device.NewEngine(d)
			if err != nil {
				return err
			}
			s.say("making the starter, in memory and in the bucket; then the turns")
			durable := Durable{Client: on.Client, Store: on.Bucket}
			if s.r.Tax, err = MeasureTax(ctx, durable, engine, beside, "bench", s.text, taxTurns*s.Rounds, s.say); err != nil {
				return fmt.Errorf("durability tax: %w", err)
			}
			s.say("the same with twice as many groups")
			if s.r.LongTax, err = MeasureTax(ctx, durable, engine, beside, "bench-long", long, longTaxTurns*s.Rounds, s.say); err != nil {
				return fmt.Errorf("durability tax of longer iterations: %w", err)
			}
			s.r.Tax.Goal, s.r.LongTax.Goal = taxGoal, longTaxGoal
			return nil
		})
	})
}

// The runs of the measured sweep are short and of a small policy: a sweep's overhead is
// largest for them.
const (
	sweepPreset     = "chaos"
	sweepIterations = 3
)

func (s *benchmark) sweep(ctx context.Context) error {
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
		if s.StubTrials == 0 {
			return nil
		}
		s.say(fmt.Sprintf("a sweep of %d stub trials", s.StubTrials))
		stubs, err := MeasureStubs(ctx, on.Client, s.StubTrials)
		if err != nil {
			return fmt.Errorf("sweep of stubs: %w", err)
		}
		s.r.Stubs = &stubs
		return nil
	})
}
