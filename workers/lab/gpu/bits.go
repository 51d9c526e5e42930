package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lab/speed"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// errBits and errNumbers are what must not be.
var (
	errBits    = errors.New("other bits")
	errNumbers = errors.New("other numbers")
)

// deviceFacts tells what the device is, and whether the libraries in memory after a program has
// run are those of the fingerprint.
func deviceFacts(ctx context.Context, m *machine) error {
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	f := d.Fingerprint()
	if err := errors.Join(
		m.text("fingerprint", f.ID()), m.text("kind", f.DeviceKind), m.text("platform", f.Platform+" "+f.PlatformVersion),
		m.text("driver", f.Driver), m.text("flags", f.Flags), m.text("libraries", f.Libraries),
		m.text("memory settings", d.MemorySettings().String()), m.number("memory", float64(d.Memory())/1e9, "GB"),
	); err != nil {
		return err
	}
	if _, err := d.MeasureKernels(ctx, model.KernelSizes{Side: 256, Vocabulary: 64, Hidden: 64, Tokens: 64, Repeats: 1}); err != nil {
		return fmt.Errorf("run a first program: %w", err)
	}
	loaded, err := plugin.Loaded()
	if err != nil {
		return err
	}
	path, _, err := plugin.Find(m.Worker.Device.Plugin, "")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	if f.Libraries != "" {
		files, err := plugin.Libraries(path, "")
		if err != nil {
			return err
		}
		for _, file := range files {
			real, err := filepath.EvalSymlinks(file.Path)
			if err != nil {
				return err
			}
			known[real] = true
		}
	}
	for _, file := range loaded {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return err
		}
		if !known[real] {
			return fmt.Errorf("%w: %s is loaded, and is not what the fingerprint has", errBits, file)
		}
	}
	return m.text("loaded libraries", fmt.Sprintf("%d, all in the fingerprint", len(loaded)))
}

// starterShape is what the self-test computes with; at tiny size all parts.
func (m *machine) starterShape() (model.Config, speed.Shape) {
	if m.Tiny {
		return device.StarterConfig(spec.Starter{Layers: 2, HiddenSize: 32, IntermediateSize: 64, Heads: 2, KVHeads: 1}),
			speed.Shape{Tokens: 16, MicroBatch: 2, MicroBatches: 2, Rows: 2, NewTokens: 4}
	}
	return device.StarterConfig(*spec.Default("starter").Policy.Starter), speed.Shape{Tokens: 128, MicroBatch: 16, MicroBatches: 2,
		Rows: 64, NewTokens: 32}
}

// selfTest computes an update and a generation twice, in both dtypes, with activations kept and
// computed again. A spec says which of the two, so they need not be the same; on a CPU they are, in
// float32.
func selfTest(ctx context.Context, m *machine) error {
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	c, shape := m.starterShape()
	var of []string
	for _, test := range []struct {
		dtype string
		keep  bool
	}{{"float32", false}, {"float32", true}, {"bfloat16", false}, {"bfloat16", true}} {
		name := test.dtype
		if test.keep {
			name += ", activations kept"
		}
		var got [2]string
		for i := range got {
			w, err := newWork(ctx, d, c, shape, test.dtype, test.keep)
			if err != nil {
				return err
			}
			got[i], err = w.told(ctx)
			w.free()
			if err != nil {
				return err
			}
		}
		if got[0] != got[1] {
			return fmt.Errorf("%w: an update and a generation in %s gave a state of %.40s, and repeated %.40s", errBits, name, got[0], got[1])
		}
		if err := m.text(name+", twice", "same bits: "+got[0][:16]); err != nil {
			return err
		}
		of = append(of, got[0])
	}
	return m.text("float32, kept and computed again", map[bool]string{true: "same bits", false: "other bits"}[of[0] == of[1]])
}

// tolerance is how far a log-prob in float32 may be from a golden's.
const tolerance = 2e-5

// goldens compares log-probs with those of folders that have them.
func goldens(ctx context.Context, m *machine) error {
	var folders []string
	for _, root := range m.Goldens {
		for _, pattern := range []string{"golden.json", "*/golden.json"} {
			found, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				return fmt.Errorf("look for goldens: %w", err)
			}
			folders = append(folders, found...)
		}
	}
	if len(folders) == 0 {
		return fmt.Errorf("no folder of %s has a golden.json: name one with --goldens", strings.Join(m.Goldens, ", "))
	}
	slices.Sort(folders)
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	var failed error
	for _, path := range slices.Compact(folders) {
		name := filepath.Base(filepath.Dir(path))
		worst, err := goldenOf(ctx, d, path)
		switch {
		case errors.Is(err, os.ErrNotExist): // adapters, or a golden of something else
			if err := m.text(name, "left out: it has no model"); err != nil {
				return err
			}
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		default:
			missed := !(worst <= tolerance)
			if missed {
				failed = errors.Join(failed, fmt.Errorf("%s: %w: a log-prob is %.3g from the golden", name, errNumbers, worst))
			}
			if err := m.found(Figure{Name: name + ", greatest difference", Value: worst, Goal: "at most 2e-5", Missed: missed}); err != nil {
				return err
			}
		}
	}
	return failed
}

// goldenOf is the greatest difference of a log-prob from a golden's.
func goldenOf(ctx context.Context, d *model.Device, path string) (float64, error) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), model.ConfigFile)); err != nil {
		return 0, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var golden struct {
		Forward struct {
			IDs      [][]int32   `json:"ids"`
			LogProbs [][]float64 `json:"logprobs"`
		} `json:"forward"`
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		return 0, fmt.Errorf("read the golden: %w", err)
	}
	folder, err := model.OpenFolder(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	got, _, err := model.LogProbs(ctx, d, folder.First(), golden.Forward.IDs)
	if err != nil {
		return 0, err
	}
	if len(got) != len(golden.Forward.LogProbs) {
		return 0, fmt.Errorf("%d rows were scored, and the golden has %d", len(got), len(golden.Forward.LogProbs))
	}
	worst := 0.0
	for i, row := range golden.Forward.LogProbs {
		if len(got[i]) < len(row) {
			return 0, fmt.Errorf("row %d has %d log-probs, and the golden's %d", i, len(got[i]), len(row))
		}
		for j, want := range row {
			if worst = math.Max(worst, math.Abs(want-float64(got[i][j]))); math.IsNaN(worst) {
				return worst, nil
			}
		}
	}
	return worst, nil
}

// smallRun is the spec of the run that is trained twice, and killed.
func (m *machine) smallRun() (preset string, iterations int, text []byte, err error) {
	preset, iterations = "smoke", 3
	if m.Tiny {
		preset, iterations = "chaos", 2
	}
	text, err = presets.With(preset, map[string]any{"iterations": iterations, "policy": m.exactPolicy()})
	if err == nil {
		_, err = spec.Decode(text, run.Known())
	}
	return preset, iterations, text, err
}

// sameBits trains a run twice, and compares the ends: states and manifests.
func sameBits(ctx context.Context, m *machine) error {
	preset, _, text, err := m.smallRun()
	if err != nil {
		return err
	}
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	engine, err := device.NewEngine(d)
	if err != nil {
		return err
	}
	var ends [2]string
	for i := range ends {
		s := store.NewMemory()
		trained, err := train.New(engine, s).Train(ctx, "same", text)
		if err != nil {
			return fmt.Errorf("training %d of %s: %w", i+1, preset, err)
		}
		head, err := store.Head(ctx, s, "same")
		if err != nil {
			return err
		}
		ends[i] = trained.State + " " + head.Ref.Digest
		if err := m.text(fmt.Sprintf("%s, training %d: state, manifest", preset, i+1), ends[i]); err != nil {
			return err
		}
	}
	if ends[0] != ends[1] {
		return fmt.Errorf("%w: two trainings of %s ended differently", errBits, preset)
	}
	return nil
}
