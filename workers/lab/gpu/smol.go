package gpu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/lab/twins"
	"github.com/reprise-rl/reprise/workers/policy"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// twinned trains SmolLM2 by a preset twice, undisturbed and with a worker that is killed, for as long
// as the part's time lasts. What is not done then goes on at the next call: from the stack in Keep
// if it is there, or else anew beside what is recorded in Out.
func twinned(preset string) func(ctx context.Context, m *machine) error {
	return func(ctx context.Context, m *machine) error {
		t, err := m.newTwins(ctx, preset)
		if err != nil {
			return err
		}
		trained := t.train(ctx)
		return errors.Join(trained, t.report())
	}
}

// twinRuns are the two runs of a part.
type twinRuns struct {
	*machine
	part string
	// record is what is known, kept what a later call on the same stack needs.
	record Twins
	kept   keptRuns
}

// keptRuns is what is kept of the runs beside their stack.
type keptRuns struct {
	Spec        json.RawMessage `json:"spec"`
	Undisturbed twins.Run       `json:"undisturbed"`
	Killed      twins.Run       `json:"killed"`
}

// keptFile is the file of keptRuns, stackFolder the stack's folder, in the part's folder of Keep.
const (
	keptFile    = "runs.json"
	stackFolder = "stack"
)

// newTwins reads what is recorded and kept of a part.
func (m *machine) newTwins(ctx context.Context, preset string) (*twinRuns, error) {
	d, err := m.open()
	if err != nil {
		return nil, err
	}
	fingerprint := d.Fingerprint()
	d.Close() // the workers need it
	folder, err := m.model(ctx)
	if err != nil {
		return nil, err
	}
	iterations := twinIterations
	if m.Tiny {
		iterations = 3
	}
	text, err := m.twinSpec(preset, folder, iterations)
	if err != nil {
		return nil, err
	}
	t := &twinRuns{machine: m, part: preset}
	begun := Twins{Part: preset, Iterations: iterations, Spec: text, Device: fingerprint.ID(), Kind: fingerprint.DeviceKind}
	if t.record, err = readTwins(m.Out, begun); err != nil {
		return nil, err
	}
	t.kept = keptRuns{Spec: text, Undisturbed: twins.Run{ID: preset + "-undisturbed"}, Killed: twins.Run{ID: preset + "-killed"}}
	content, err := os.ReadFile(filepath.Join(t.folder(), keptFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read what is kept of %s: %w", preset, err)
	default:
		if err := json.Unmarshal(content, &t.kept); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(t.folder(), keptFile), err)
		}
		if !sameJSON(t.kept.Spec, text) {
			return nil, fmt.Errorf("%s was kept of another spec: remove it, or name another --keep", t.folder())
		}
	}
	t.kept.Killed.Faults = twinFaults(iterations, m.Tiny)
	return t, nil
}

// folder is the part's folder of what is kept.
func (t *twinRuns) folder() string { return filepath.Join(t.Keep, t.part) }

// twinIterations is how many iterations the runs have on a card, twinKills how often the worker of one
// of them is killed.
const twinIterations, twinKills = 200, 5

// twinFaults are the faults of the workers that die, each in another activity: in Generate, Update, Snapshot
// and Commit at equal distances, and in the Restore after the last of them. Snapshots are at the same
// distances, see twinSpec. An iteration may have no update, and then the next one has the fault.
func twinFaults(iterations int, tiny bool) [][]faults.Fault {
	if tiny {
		return [][]faults.Fault{within("Update", 1, iterations)}
	}
	gap := iterations / (twinKills + 1)
	return [][]faults.Fault{
		within("Generate", gap, 2*gap), within("Update", 2*gap, 3*gap), {{Kind: "Snapshot", Phase: "inside", Nth: 1}},
		within("Commit", 4*gap, 5*gap), {{Kind: "Restore", Phase: "inside", Nth: 1}},
	}
}

// within are the faults in an activity of the iterations from first to before end.
func within(activity string, first, end int) []faults.Fault {
	var out []faults.Fault
	for i := first; i < end; i++ {
		out = append(out, faults.Fault{Kind: fmt.Sprintf("%s#%d", activity, i), Phase: "inside", Nth: 1})
	}
	return out
}

// twinSpec is the spec of both runs: the preset at the paper's size, 8 groups of 16, with all weights
// in bfloat16.
func (m *machine) twinSpec(preset, folder string, iterations int) ([]byte, error) {
	groups, size, dtype := 8, 16, "bfloat16"
	warm := map[string]any{"learning_rate": 3e-5}
	update := map[string]any{"learning_rate": 5e-6, "micro_batch": 32}
	selection := map[string]any{}
	if m.Tiny {
		groups, size, dtype = 2, 4, "float32"
		warm["steps"], warm["rows"] = 2, 4
		// Random weights earn no reward: the bonus for entropy alone changes the state.
		update["learning_rate"], update["micro_batch"], update["entropy_coefficient"] = 1e-3, 4, 1e-2
		selection["drop_flat"] = false
	}
	text, err := presets.With(preset, map[string]any{
		"description": "reprise gpu: " + preset + " at the paper's size, all weights", "iterations": iterations,
		"policy":     map[string]any{"from": "folder:" + folder, "compute_dtype": dtype, "exact": m.Tiny, "warm_start": warm},
		"rollout":    map[string]any{"groups": groups, "group_size": size},
		"update":     update,
		"selection":  selection,
		"snapshot":   map[string]any{"every": max(1, iterations/(twinKills+1)), "retain": 1},
		"evaluation": map[string]any{"every": 0},
	})
	if err != nil {
		return nil, err
	}
	_, err = spec.Decode(text, run.Known())
	return text, err
}

// model is the folder of the model that is trained: the one that is given, or at tiny size random weights in
// Llama's shape with the starter's tokenizer.
func (m *machine) model(ctx context.Context) (string, error) {
	if len(m.Model) == 1 {
		return m.Model[0], nil
	}
	if !m.Tiny {
		return "", errNoModel
	}
	c, _ := m.starterShape()
	c.Family = model.Llama
	folder := filepath.Join(m.Keep, "random")
	return folder, policy.RandomOf(ctx, folder, c, 1, nil)
}

// margin is what is left of a part's time for what comes after the training.
func margin(limit time.Duration) time.Duration { return min(20*time.Second, limit/4) }

// train trains until both runs have ended or the part's time is over, and keeps what it has.
func (t *twinRuns) train(ctx context.Context) error {
	if t.record.done() {
		return nil
	}
	training := ctx
	if t.Limit > 0 {
		var cancel context.CancelFunc
		training, cancel = context.WithTimeout(ctx, t.Limit-margin(t.Limit))
		defer cancel()
	}
	servers := dev.Options{Dir: filepath.Join(t.folder(), stackFolder), Stdout: os.Stderr}
	return stack.WithServers(ctx, servers, func(on stack.Servers) error {
		programs, err := filepath.Abs(filepath.Join(t.Keep, "programs"))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(programs, 0o700); err != nil { // as a cache of programs must be
			return fmt.Errorf("make the folder of programs: %w", err)
		}
		processes := &crew.Crew{Dir: on.Dir(), Worker: t.Worker, Programs: programs}
		defer processes.End()
		undisturbed := half{&t.kept.Undisturbed, &t.record.Undisturbed, &t.record.UndisturbedSeconds}
		if len(t.record.Undisturbed) < t.record.Iterations {
			if err := t.one(ctx, training, on, processes, undisturbed); err != nil || training.Err() != nil {
				return err
			}
		}
		err = t.one(ctx, training, on, processes, half{&t.kept.Killed, &t.record.Killed, &t.record.KilledSeconds})
		t.record.Kills = t.kept.Killed.Kills()
		return errors.Join(err, t.record.write(t.Out))
	})
}

// half is one of the two runs, and what is recorded of it.
type half struct {
	run     *twins.Run
	curve   *[]twins.Committed
	seconds *float64
}

// one trains one of the runs while training lasts, and records its curve. That the time is over is no
// error.
func (t *twinRuns) one(ctx, training context.Context, on stack.Servers, processes *crew.Crew, of half) error {
	begin := time.Now()
	err := of.run.Train(training, on, processes, t.record.Spec, t.save, nil, os.Stderr)
	processes.End()
	*of.seconds += time.Since(begin).Seconds()
	if training.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	found, read := twins.Curve(ctx, on.Bucket, of.run.ID)
	if errors.Is(read, store.ErrNotFound) {
		read = nil // nothing is committed yet
	}
	if read == nil {
		*of.curve, read = merged(of.run.ID, *of.curve, found)
	}
	return errors.Join(err, read, t.record.write(t.Out))
}

// save keeps what a later call needs to continue on the same stack.
func (t *twinRuns) save() error {
	content, err := json.MarshalIndent(t.kept, "", " ")
	if err != nil {
		return fmt.Errorf("keep %s: %w", t.part, err)
	}
	return writeFile(t.folder(), keptFile, content)
}

// report tells what is known of both runs. The error says that a state differs.
func (t *twinRuns) report() error {
	r := t.record
	same, compared := r.same()
	errs := []error{
		t.text("iterations, undisturbed and killed", fmt.Sprintf("%d and %d of %d", len(r.Undisturbed), len(r.Killed), r.Iterations)),
		t.text("state fingerprints that are equal", fmt.Sprintf("%d of %d", same, compared)),
	}
	for i, k := range r.Kills {
		errs = append(errs, t.text(fmt.Sprintf("kill %d of %d", i+1, len(t.kept.Killed.Faults)),
			fmt.Sprintf("in %s of iteration %d; witness: %s", k.Activity, k.Iteration, cmp.Or(k.Witness, "when the run has ended"))))
	}
	errs = append(errs,
		t.text("success, undisturbed", curveText(r.Undisturbed)),
		t.number("time, undisturbed", r.UndisturbedSeconds, "s"),
		t.number("time, killed", r.KilledSeconds, "s"),
	)
	if !r.done() {
		errs = append(errs, t.text("not done", "call again with the same --out and --keep, and it goes on"))
	}
	if same < compared {
		return errors.Join(append(errs, fmt.Errorf("%w: after iteration %d the undisturbed run has the state %s, and the killed one %s",
			errBits, same, r.Undisturbed[same].State, r.Killed[same].State))...)
	}
	return errors.Join(errs...)
}

// curveText is a curve in at most ten numbers, the mean success of as many iterations each.
func curveText(of []twins.Committed) string {
	if len(of) == 0 {
		return "nothing yet"
	}
	each := (len(of) + 9) / 10
	var out []string
	for chunk := range slices.Chunk(of, each) {
		sum := 0.0
		for _, c := range chunk {
			sum += c.Success
		}
		out = append(out, fmt.Sprintf("%.3f", sum/float64(len(chunk))))
	}
	return fmt.Sprintf("%s (%d iterations each)", strings.Join(out, " "), each)
}
