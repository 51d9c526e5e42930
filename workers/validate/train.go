package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Train is the result of checking a spec.
type Train struct {
	Verdict
	// Spec is the resolved spec. Unknown is why the numbers that need the model are
	// omitted.
	Spec    json.RawMessage `json:"spec,omitempty"`
	Derived *derivedJSON    `json:"derived,omitempty"`
	Unknown string          `json:"unknown,omitempty"`
	// Estimated says that the widths of the contexts, which the numbers follow from, are
	// those of the starter's tokenizer: the model's own was not at hand.
	Estimated bool `json:"estimated_contexts,omitempty"`
	// Notes are what a person should know of the model and of the prompts beside the numbers.
	Notes []string `json:"notes,omitempty"`
	// Card is whether the run fits the device that was named, nil without one.
	Card *Card `json:"card,omitempty"`
	// Devices is what the run has of the devices that were asked about, nil without.
	Devices *cost.Devices `json:"devices,omitempty"`
	// Seconds is what an iteration takes on a device with known figures, nil without.
	Seconds *Seconds `json:"seconds,omitempty"`
	numbers string
}

// Fits reports whether the run fits the device that was named.
func (v Train) Fits() bool { return v.Card == nil || v.Card.Fits }

// Machine is what a run is compared with: a device's memory in bytes, and the number of devices of
// one process; each 0 for no comparison. With Figures of the device, the seconds of an iteration
// are computed.
type Machine struct {
	Card    int64
	Devices int
	Figures *Figures
}

// Describe asks the foreign environments of a spec for their descriptions and gives the spec with them.
type Describe func(spec.Train) (spec.Train, error)

// CheckTrain checks a spec, and compares its run with a machine. describe may be nil: what depends on a foreign environment's
// description is not known then. An error is about the model that the spec names, about an environment's process, about
// prompts that do not fit, or about a model whose size is not known though there is something to compare.
func CheckTrain(b []byte, machine Machine, describe Describe) (Train, error) {
	t, err := spec.Decode(b, run.Known())
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		return Train{Verdict: verdictOf(problems)}, nil
	}
	if err != nil {
		return Train{}, err
	}
	m, err := modelOf(&t.Policy, b)
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		return Train{Verdict: verdictOf(problems)}, nil
	}
	if err != nil {
		return Train{}, err
	}
	frozen, unsized, err := besides(&t, m)
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		return Train{Verdict: verdictOf(problems)}, nil
	}
	if err != nil {
		return Train{}, err
	}
	if describe != nil {
		if t, err = describe(t); err != nil {
			return Train{}, err
		}
	}
	if name := run.Undescribed(t); name != "" && m.unknown == "" {
		m.unknown, m.missing = undescribed(name), "the environment has not described itself"
	}
	measured, written, sized := t, t.Update.Recompute, func(int) spec.Train { return t }
	if m.unknown == "" {
		if measured, err = run.WithWidths(t, m.files); err != nil {
			return Train{}, err
		}
		before := measured
		sized = func(deviceGB int) spec.Train {
			u := before
			u.Limits.DeviceGB = deviceGB
			return u.WithSizes(m.shape, b)
		}
		measured = measured.WithSizes(m.shape, b)
		if !m.estimated {
			t = measured
		}
	}
	resolved, err := t.JSON()
	if err != nil {
		return Train{}, fmt.Errorf("encode the resolved spec: %w", err)
	}
	derived := spec.Derive(measured, m.shape)
	if derived.Actions, err = workflows.Actions(host.PlanOf(measured), measured.Pieces(derived)); err != nil {
		return Train{}, err
	}
	notes, err := notesOf(t, m)
	if err != nil {
		return Train{}, err
	}
	for _, w := range m.warnings {
		notes = append(notes, "The model's tokenizer: "+w+".")
	}
	notes = append(append(notes, m.notes...), frozen...)
	if most := m.config.MaxPositions; most > 0 && derived.Sequence > most {
		notes = append(notes, fmt.Sprintf("Warning: rows are %d tokens wide, and the model knows %d positions (max_position_embeddings of its config.json).\n"+
			"It was not trained for more: lower rollout.turns, rollout.max_new_tokens or rollout.prompt_tokens.", derived.Sequence, most))
	}
	if t.Teacher.Self() && t.Policy.From == spec.FromStarter && t.Credit.Algorithm == "distill" {
		notes = append(notes, `Warning: a starter has never read a message such as the one that teacher.from "self" puts before its rows,
and learns nothing good from it: one unlearned its task (docs/results/methods.md). Take a model that follows
instructions, or credit.algorithm sdar.`)
	}
	if t.WarmStartByDefault(b) {
		notes = append(notes, warmStartNote(t.Policy.WarmStart))
	}
	unasked, err := run.Unasked(t)
	if err != nil {
		return Train{}, err
	}
	for _, text := range unasked {
		notes = append(notes, "Warning: "+text+".")
	}
	judge, err := run.JudgeOf(t)
	if err != nil {
		return Train{}, err
	}
	if judge != nil && judge.Form != nil && !judge.Form.Own() {
		notes = append(notes, fmt.Sprintf("The reward %s asks a language model: the run waits for a worker with --judge %s=URL.", spec.Judge, judge.Name))
	}
	if t.Policy.Exact && machine.Card > 0 {
		notes = append(notes, "Warning: policy.exact was shown on CPUs alone. If the card's sampler gives other bits than its trainer, the run pauses at its start; "+
			"set policy.exact to false for a card.")
	}
	out := Train{
		Verdict: verdictOf(nil), Notes: notes, Spec: resolved, Derived: newDerivedJSON(derived, m.unknown == ""), Unknown: m.unknown,
		Estimated: m.estimated && t.Rollout.PromptTokens == nil, numbers: derived.Text(m.missing),
	}
	if m.unknown != "" && machine != (Machine{}) {
		asked := "--card"
		if machine.Card == 0 {
			asked = "--devices"
		}
		return Train{}, fmt.Errorf("%s: the size of the model is not known: %s", asked, m.unknown)
	}
	if unsized != "" && machine.Card > 0 {
		return Train{}, fmt.Errorf("--card: %s", unsized)
	}
	if machine.Card > 0 {
		out.Card = cardOf(measured, m.shape, max(machine.Devices, 1), machine.Card, written, sized)
	}
	if machine.Devices > 0 {
		out.Devices = new(spec.DevicesOf(measured, m.shape, machine.Devices))
	}
	if machine.Figures != nil {
		if measured.Policy.ComputeDtype != spec.BFloat16 {
			return Train{}, fmt.Errorf("--card %s: its figures are of bfloat16, and policy.compute_dtype is %s: give its memory alone, such as 80GB", machine.Figures.Name, measured.Policy.ComputeDtype)
		}
		out.Seconds = new(SecondsOf(measured, m.shape, max(machine.Devices, 1), *machine.Figures))
	}
	return out, nil
}

// undescribed says why nothing that depends on the prompts is known.
func undescribed(name string) string {
	return fmt.Sprintf("the environment %s describes itself when the run starts (--env-process %[1]s=COMMAND asks it now)", name)
}

func (v Train) text(string) (string, error) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, v.Spec, "", "  "); err != nil {
		return "", fmt.Errorf("format the resolved spec: %w", err)
	}
	return fmt.Sprintf("%s\n\n%s", pretty.Bytes(), v.summary()), nil
}

// summary implements [Result]: the numbers that follow from the spec.
func (v Train) summary() string {
	numbers := strings.TrimRight(v.numbers, "\n")
	if v.Unknown != "" {
		// The rows from "parameters" on depend on the model.
		numbers, _, _ = strings.Cut(numbers, "\nparameters ")
		numbers += "\n\nParameters, device memory and bytes to S3 are left out: " + v.Unknown + "."
	}
	if v.Estimated {
		numbers += "\n\nThe model's tokenizer is fetched at the start. The widths of the contexts are those of the starter's tokenizer;\nthose of a large vocabulary are smaller in most texts. Give rollout.prompt_tokens to fix them."
	}
	numbers += "\n"
	for _, note := range v.Notes {
		numbers += "\n" + note + "\n"
	}
	if v.Card != nil {
		numbers += v.Card.text()
	}
	if v.Devices != nil {
		numbers += devicesText(*v.Devices)
	}
	if v.Seconds != nil {
		numbers += v.Seconds.text()
	}
	return numbers
}

// origin is what is known here of the model that a policy starts from.
type origin struct {
	shape cost.Network
	// files are its small files; nil for a starter, and where they are not at hand.
	files map[string][]byte
	// config is the model's, where the files are at hand.
	config model.Config
	// estimated says that the shape is known by the model's name alone, so that contexts
	// are measured with another tokenizer.
	estimated bool
	warnings  []string // of its tokenizer
	notes     []string // of its folder
	unknown   string   // why the model is not known here
	missing   string   // the same in a few words
}

// modelOf finds the model of a policy, and gives the policy the adapters that its folder holds.
// document is what a person wrote.
func modelOf(p *spec.Policy, document []byte) (origin, error) {
	from, err := p.Origin()
	if err == nil && from.Kind == spec.OriginFolder {
		var base spec.Policy
		if *p, base, err = host.LocalAdapters(from.Name, *p, document); err == nil && base.From != p.From {
			return adaptersOf(from.Name, base)
		}
	}
	if err != nil {
		return origin{}, fmt.Errorf("policy.from: %w", err)
	}
	return wholeModel(*p, from, "policy.from")
}

// noModel is why the widths of contexts are not known without a model.
const noModel = "the model is unknown, whose tokenizer gives the context widths"

// wholeModel finds the model that a policy without adapters of its own starts from, or a teacher's: field says which in errors.
func wholeModel(p spec.Policy, from spec.Origin, field string) (origin, error) {
	switch from.Kind {
	case spec.OriginStarter:
		return origin{shape: p.Starter.Shape(starter.Vocabulary(p.Starter.Tokenizer).Size())}, nil
	case spec.OriginFolder:
		if _, err := os.Stat(from.Name); errors.Is(err, fs.ErrNotExist) {
			out := origin{unknown: fmt.Sprintf("there is no folder %s on this machine (the path is the host worker's)", from.Name), missing: noModel}
			where := "a host worker without it refuses the run"
			if !filepath.IsAbs(from.Name) {
				where += ", and a relative path is from the folder in which that worker was started: give the whole path"
			}
			out.notes = []string{fmt.Sprintf("Warning: there is no folder %s on this machine: %s.", from.Name, where)}
			return out, nil
		}
		m, err := host.OpenModelFolder(from.Name)
		if err != nil {
			return origin{}, fmt.Errorf("%s: %s: %w", field, p.From, err)
		}
		defer m.Close()
		out := origin{shape: run.ShapeOf(m.Config), files: m.Small, config: m.Config, warnings: m.Warnings, notes: m.Notes}
		if err := out.checkWeights(m); err != nil {
			return origin{}, fmt.Errorf("%s: %s: %w", field, p.From, err)
		}
		return out, nil
	}
	if known, ok := families.OnHub(from.Name); ok && from.Kind == spec.OriginHub {
		return origin{shape: run.ShapeOf(known.Config), estimated: true}, nil
	}
	out := origin{unknown: fmt.Sprintf("%s is fetched at the start", p.From), missing: noModel}
	if from.Kind == spec.OriginHub {
		out.notes = []string{fmt.Sprintf("Warning: the sizes of %s are not known here, and the hub was not asked whether there is such a model.", p.From)}
	}
	return out, nil
}

// adaptersOf is the base model of a folder of adapters, which are checked against it; with their
// tokenizer, if they have one.
func adaptersOf(folder string, base spec.Policy) (origin, error) {
	from, err := base.Origin()
	if err != nil {
		return origin{}, fmt.Errorf("policy.base: %w", err)
	}
	out, err := wholeModel(base, from, "policy.from")
	if err != nil || out.files == nil {
		return out, err
	}
	m, err := host.OpenAdapterFolder(folder, out.config)
	if err != nil {
		return origin{}, fmt.Errorf("policy.from: %s: %w", folder, err)
	}
	defer m.Close()
	if err := out.checkWeights(m); err != nil {
		return origin{}, fmt.Errorf("policy.from: %s: %w", folder, err)
	}
	out.notes = append(out.notes, m.Notes...)
	if _, own := m.Small[run.TokenizerFiles[0]]; own {
		out.files, out.warnings = maps.Clone(out.files), m.Warnings
		for _, name := range run.TokenizerFiles {
			delete(out.files, name)
			if b, ok := m.Small[name]; ok {
				out.files[name] = b
			}
		}
	}
	return out, nil
}

// checkedBytes is the most bytes of weights that are read here to see that all are finite numbers:
// some seconds from a disk.
const checkedBytes = 8 << 30

// checkWeights reads the weights of a folder as Resolve does, or notes that they are too many.
func (o *origin) checkWeights(m *host.ModelFolder) error {
	if n := m.WeightBytes(); n > checkedBytes {
		o.notes = append(o.notes, fmt.Sprintf("The model's weights, %.1f GB, were not read here. The start of a run reads them "+
			"all, and refuses one that is no finite number.",
			float64(n)/1e9))
		return nil
	}
	return m.CheckFinite()
}

// notesOf says where the chat template of a model at hand renders earlier turns in another way
// than the context keeps them.
func notesOf(t spec.Train, m origin) ([]string, error) {
	if m.files == nil || t.Rollout.Turns == 1 {
		return nil, nil
	}
	said := "<answer>an answer</answer>"
	if t.Rollout.Think {
		said = "<think>a thought</think>" + said
	}
	r, err := run.Rewrites(t, m.files, said)
	if err != nil || r == nil {
		return nil, err
	}
	return []string{fmt.Sprintf("The chat template renders an earlier turn in another way than it was sampled.\nWhat was sampled stays in the context, token by token:\n  %q\nThe template would write:\n  %q",
		r.Kept, r.Rendered)}, nil
}

// warmStartNote says that a run has a warm start that its spec does not ask for.
func warmStartNote(w spec.WarmStart) string {
	rows := fmt.Sprintf("%d transcripts of random play in the right format", w.Rows)
	if w.Demonstrations > 0 {
		rows = fmt.Sprintf("%d transcripts, of which %g are demonstrations", w.Rows, w.Demonstrations)
	}
	return fmt.Sprintf("A warm start is on by default: before the first iteration %d supervised updates of %s,\nat a learning rate of %g. Random play teaches the format of replies and nothing about the task.\nSet policy.warm_start.steps to 0 to leave the policy as it is.", w.Steps, rows, w.LearningRate)
}
