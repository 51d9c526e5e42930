// Package gpu is what a machine with a card is asked in its first minutes: does it compute the
// right numbers, the same ones twice and after a kill, and how fast. The parts come in the order
// of what they are worth. Each runs in a process of its own with a limit of time, so that
// whatever fails, hangs or takes the device's memory is one line and stops nothing else.
package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
)

// Options say what is measured, and where it is written.
type Options struct {
	// Worker has the options of the device; its workers' options are those of the durable run.
	Worker workers.Options
	// Out is the folder that gets ReportFile and SummaryFile, and a file of Twins of each part that trains.
	Out string
	// Keep is the folder of what parts keep for a later call and is too large for Out: a model, compiled programs,
	// and the stacks of the runs that go on. "" is a folder in Out.
	Keep string
	// Model is the folder of SmolLM2-135M-Instruct, its GGUF file, or the wheel with it; a file may come in
	// several parts, in their order. nil is the folder of `make pretrained`.
	Model []string
	// Parts are the names of the parts to run; nil is all of them.
	Parts []string
	// Tiny measures at sizes for a CPU: it shows that the parts work, and nothing about speed.
	Tiny bool
	// Limit is the time for all parts. A part begins only while some of it is left.
	Limit time.Duration
	// Goldens are folders with golden.json and a model, or whose folders have them.
	Goldens []string
	// Program is the program that runs a part: this one.
	Program string
	// Arguments are those with which the program runs a part; the part's name, folder and flags follow.
	Arguments []string
}

// The files in Options.Out. They are two because some machines give few files back.
const (
	ReportFile  = "gpu.json"
	SummaryFile = "gpu.txt"
)

// Figure is one thing that a part found.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value,omitempty"`
	Unit  string  `json:"unit,omitempty"`
	// Text is what was found where it is no number.
	Text string `json:"text,omitempty"`
	// Goal is what was hoped for, in words; "" for none. Missed says that it is not met.
	Goal   string `json:"goal,omitempty"`
	Missed bool   `json:"missed,omitempty"`
}

// Result is what a part found. It has the figures up to a failure.
type Result struct {
	Part    string   `json:"part"`
	Seconds float64  `json:"seconds"`
	Figures []Figure `json:"figures,omitempty"`
	// Failed is why the part did not end; "" if it did. Log is the end of what it printed then.
	Failed string `json:"failed,omitempty"`
	Log    string `json:"log,omitempty"`
}

// Report is what Run found.
type Report struct {
	Build   string   `json:"build"`
	Tiny    bool     `json:"tiny,omitempty"`
	Results []Result `json:"results"`
}

// Failed says whether a part did not end, or found what must not be: other bits, other numbers.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Results, func(p Result) bool { return p.Failed != "" })
}

// part is one thing to find out.
type part struct {
	name string
	// limit is its time.
	limit time.Duration
	// flags are XLA flags of its process alone.
	flags string
	// environment are variables of its process alone, each NAME=value.
	environment []string
	// measure runs in the part's process.
	measure func(ctx context.Context, m *machine) error
}

// The parts, the most valuable first.
var parts = []part{
	{name: "device", limit: time.Minute, measure: deviceFacts},
	{name: "exact", limit: 3 * time.Minute, measure: exact},
	{name: "exact-workspace", limit: 2 * time.Minute, environment: []string{"CUBLAS_WORKSPACE_CONFIG=:16:8"}, measure: exact},
	{name: "exact-cublaslt", limit: 2 * time.Minute, flags: "--xla_gpu_enable_cublaslt=true", measure: exact},
	{name: "exact-triton", limit: 2 * time.Minute, flags: "--xla_gpu_enable_triton_gemm=true", measure: exact},
	{name: "self-test", limit: 2 * time.Minute, measure: selfTest},
	{name: "goldens", limit: 90 * time.Second, measure: goldens},
	{name: "same-bits", limit: 3 * time.Minute, measure: sameBits},
	{name: "kernels", limit: 90 * time.Second, measure: kernels},
	{name: "0.5b-bfloat16", limit: 3 * time.Minute, measure: sized("qwen2.5-0.5b", "bfloat16")},
	{name: "killed", limit: 4 * time.Minute, measure: killed},
	{name: "0.5b-killed", limit: 5 * time.Minute, measure: killedAtSize},
	{name: "0.5b-float32", limit: 3 * time.Minute, measure: sized("qwen2.5-0.5b", "float32")},
	{name: "0.5b-again", limit: 2 * time.Minute, measure: sized("qwen2.5-0.5b", "bfloat16")},
	{name: "1.5b-bfloat16", limit: 4 * time.Minute, measure: sized("qwen2.5-1.5b", "bfloat16")},
	{name: "1.5b-float32", limit: 4 * time.Minute, measure: sized("qwen2.5-1.5b", "float32")},
	{name: "autotune", limit: 5 * time.Minute, flags: tune, measure: sized("qwen2.5-0.5b", "bfloat16")},
	{name: "smol-bandit", limit: 30 * time.Minute, measure: twinned("smol-bandit")},
	{name: "smol-frozenlake", limit: 30 * time.Minute, measure: twinned("smol-frozenlake")},
}

// tune lets XLA choose among deterministic kernels by their time: with
// xla_gpu_deterministic_ops it would not try any. What is chosen may be other kernels the next time, and an
// H100 loaded no recorded choice again, so runs do without.
const tune = "--xla_gpu_deterministic_ops=false --xla_gpu_exclude_nondeterministic_ops=true --xla_gpu_autotune_level=4"

// trains says that a part trains a model that must be there. Where all parts are run and it is not, such a
// part is left out.
func (p part) trains() bool { return strings.HasPrefix(p.name, "smol-") }

// Parts are the names of all parts, in their order.
func Parts() []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p.name
	}
	return out
}

func partOf(name string) (part, error) {
	if i := slices.IndexFunc(parts, func(p part) bool { return p.name == name }); i >= 0 {
		return parts[i], nil
	}
	return part{}, fmt.Errorf("gpu: no part is called %q: they are %s", name, strings.Join(Parts(), ", "))
}

// Run runs the parts one after the other, and writes what each found to Out when it has ended.
// The error is of writing, or of the caller's context; what a part fails of is in the report.
func Run(ctx context.Context, o Options, build string, progress io.Writer) (Report, error) {
	report, begin := Report{Build: build, Tiny: o.Tiny}, time.Now()
	all := len(o.Parts) == 0
	if all {
		o.Parts = Parts()
	}
	if o.Keep == "" {
		o.Keep = filepath.Join(o.Out, "kept")
	}
	var chosen []part
	for _, name := range o.Parts {
		p, err := partOf(name)
		if err != nil {
			return report, err
		}
		chosen = append(chosen, p)
	}
	if slices.ContainsFunc(chosen, part.trains) && !(o.Tiny && len(o.Model) == 0) {
		folder, err := prepareModel(ctx, o.Model, o.Keep, progress)
		if err != nil {
			return report, fmt.Errorf("gpu: --model: %w", err)
		}
		if o.Model = nil; folder != "" {
			o.Model = []string{folder}
		} else if all {
			chosen = slices.DeleteFunc(chosen, part.trains)
			fmt.Fprintf(progress, "the parts that train a model are left out: %v\n", errNoModel)
		}
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return report, fmt.Errorf("gpu: make the folder of the results: %w", err)
	}
	scratch, err := os.MkdirTemp("", "reprise-gpu-*") // 0700, as a cache of programs must be
	if err != nil {
		return report, fmt.Errorf("gpu: make a folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	for i, p := range chosen {
		left := o.Limit - time.Since(begin)
		if left <= 0 {
			report.Results = append(report.Results, Result{Part: p.name, Failed: "not begun: no time was left"})
		} else {
			fmt.Fprintf(progress, "==> %s\n", p.name)
			r := o.run(ctx, p, min(p.limit, shareOf(left, chosen[i:])), scratch)
			printResult(progress, r)
			report.Results = append(report.Results, r)
		}
		if err := write(o.Out, report); err != nil {
			return report, err
		}
		if err := ctx.Err(); err != nil {
			return report, err
		}
	}
	return report, nil
}

// shareOf is the time that the first of some parts may take of what is left. Parts that train take all they can get
// and go on later, so they share it.
func shareOf(left time.Duration, of []part) time.Duration {
	if !of[0].trains() {
		return left
	}
	n := 0
	for _, p := range of {
		if p.trains() {
			n++
		}
	}
	return left / time.Duration(n)
}

// write puts the report and its summary into their places.
func write(dir string, report Report) error {
	content, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return fmt.Errorf("gpu: encode the report: %w", err)
	}
	var summary strings.Builder
	Print(&summary, report)
	return errors.Join(writeFile(dir, ReportFile, append(content, '\n')), writeFile(dir, SummaryFile, []byte(summary.String())))
}

// writeFile writes a file into a folder, which is made, whole or not at all.
func writeFile(dir, name string, content []byte) error {
	aside := filepath.Join(dir, "."+name)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(aside, content, 0o644)
	}
	if err == nil {
		err = os.Rename(aside, filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("gpu: write %s: %w", name, err)
	}
	return nil
}

// Print prints what all parts found.
func Print(w io.Writer, r Report) {
	fmt.Fprintf(w, "reprise %s\n", r.Build)
	if r.Tiny {
		fmt.Fprintln(w, "at a tiny size: nothing here says anything about speed")
	}
	for _, p := range r.Results {
		fmt.Fprintf(w, "\n%s\n", p.Part)
		printResult(w, p)
	}
}

func printResult(w io.Writer, r Result) {
	for _, f := range r.Figures {
		value := f.Text
		if value == "" && f.Unit == "" && f.Value == 0 {
			value = "none"
		} else if value == "" {
			value = strings.TrimSpace(fmt.Sprintf("%.5g %s", f.Value, f.Unit))
		}
		if f.Goal != "" {
			value += fmt.Sprintf(" (goal: %s%s)", f.Goal, map[bool]string{true: ", missed"}[f.Missed])
		}
		fmt.Fprintf(w, "  %-44s %s\n", f.Name, value)
	}
	if r.Failed != "" {
		fmt.Fprintf(w, "  FAILED after %.0f s: %s\n", r.Seconds, r.Failed)
		for line := range strings.Lines(r.Log) {
			fmt.Fprintf(w, "    | %s\n", strings.TrimRight(line, "\n"))
		}
		return
	}
	fmt.Fprintf(w, "  %-44s %.0f s\n", "(the part)", r.Seconds)
}

// machine is what a part works with, in its own process.
type machine struct {
	Options
	scratch string // files between parts
	out     io.Writer
}

// found tells the parent of a figure.
func (m *machine) found(f Figure) error {
	b, err := json.Marshal(f)
	if err == nil {
		_, err = fmt.Fprintf(m.out, "%s\n", b)
	}
	return err
}

// number and text are figures without a goal.
func (m *machine) number(name string, value float64, unit string) error {
	return m.found(Figure{Name: name, Value: value, Unit: unit})
}

func (m *machine) text(name, text string) error { return m.found(Figure{Name: name, Text: text}) }

// open opens the part's device, with programs from the parts before.
func (m *machine) open() (*model.Device, error) {
	options := m.Worker.Device
	options.ProgramCache = filepath.Join(m.scratch, "programs")
	return model.OpenDevice(options)
}

// Measure runs one part in this process. Each figure is a line of JSON on out, so that what was
// found before a kill is known.
func Measure(ctx context.Context, name, scratch string, o Options, out io.Writer) error {
	p, err := partOf(name)
	if err != nil {
		return err
	}
	return p.measure(ctx, &machine{Options: o, scratch: scratch, out: out})
}
