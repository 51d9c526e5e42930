package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// starterIdentity is everything the bits of a warm-started policy depend on.
type starterIdentity struct {
	Starter      *spec.Starter     `json:"starter,omitempty"`
	LoRA         *spec.LoRA        `json:"lora,omitempty"` // what is taught, instead of all weights
	Base         string            `json:"base,omitempty"` // digest of the index of the model that is trained
	WarmStart    spec.WarmStart    `json:"warm_start"`
	Environment  spec.Environment  `json:"environment"`
	Think        bool              `json:"think"`
	Subgoals     bool              `json:"subgoals,omitempty"`
	ContextTurns int               `json:"context_turns"`
	MaxNewTokens int               `json:"max_new_tokens"`
	PromptTokens []int             `json:"prompt_tokens"`
	MicroBatch   int               `json:"micro_batch"`
	ComputeDtype string            `json:"compute_dtype"`
	Protocol     string            `json:"protocol,omitempty"`
	Context      []spec.ContextCut `json:"context,omitempty"`
	Recompute    string            `json:"recompute,omitempty"`
	Fingerprint  string            `json:"fingerprint"`
}

// sharedStarter is what the store keeps under a starter's identity.
type sharedStarter struct {
	Index store.Ref `json:"index"`
}

const maxShared = 1 << 16 // bytes of a sharedStarter

// WarmStart makes version 0, a chunk of supervised updates a call. It trains on
// transcripts of random play in the right format, so that a starter knows the format and
// nothing about the task, and on as many demonstrations by the environments' solvers as
// the spec says. Everything is drawn from the warm start's own seed, so runs that ask for
// the same one share it; the last chunk stores a model.
func (d *Device) WarmStart(ctx context.Context, in activities.WarmStartInput) (_ activities.WarmStartResult, err error) {
	defer run.Edge(ctx, &err, "warm start of run %s", in.Run)
	t, err := run.ReadSpec(ctx, d.Store, in.Spec)
	if err != nil {
		return activities.WarmStartResult{}, err
	}
	if in.Steps < 1 && t.Policy.WarmStart.Steps > 0 {
		return activities.WarmStartResult{}, fmt.Errorf("a chunk of %d updates: %w", in.Steps, store.ErrInvalid)
	}
	if t.Policy.Starter == nil && in.Base == nil {
		return activities.WarmStartResult{}, fmt.Errorf("the spec names no starter and no model: %w", activities.ErrModelInvalid)
	}
	identity := starterIdentity{
		Starter: t.Policy.Starter, WarmStart: t.Policy.WarmStart, Environment: t.Environment, Think: t.Rollout.Think,
		Subgoals:     t.Rollout.Subgoals,
		ContextTurns: t.Rollout.ContextTurns, MaxNewTokens: t.Rollout.MaxNewTokens, PromptTokens: t.Rollout.PromptTokens,
		Protocol: t.Rollout.Protocol, Context: t.Rollout.Context,
		MicroBatch: t.Update.MicroBatch, ComputeDtype: t.Policy.ComputeDtype, Recompute: t.Update.Recompute,
		Fingerprint: d.Engine.Info().Fingerprint,
	}
	if in.Base != nil {
		identity.Base, identity.LoRA = in.Base.Digest, t.Policy.LoRA
	}
	id, err := run.DigestOf(identity)
	if err != nil {
		return activities.WarmStartResult{}, err
	}
	place := store.ModelPrefix + "starter-" + store.ShortDigest(id)
	steps := t.Policy.WarmStart.Steps
	if shared, err := d.findStarter(ctx, place, steps); shared.Shared || err != nil {
		return shared, err
	}
	w, files, done, err := d.beginStarter(ctx, in, t)
	if err != nil {
		return activities.WarmStartResult{}, err
	}
	defer done(&err)
	out, err := w.teach(ctx, d.Store, in)
	if err == nil && out.Steps < steps {
		out.Snapshot, err = w.putChunk(ctx, d.Store, place, out.Steps)
	} else if err == nil {
		out.Base, err = w.putStarter(ctx, d.Store, place, in, files)
	}
	if out.Base == nil && (err == nil || errors.Is(err, store.ErrNotFound)) {
		// A worker that was taken for dead, or another run's, may have finished the
		// starter meanwhile and removed the states between its chunks.
		if shared, err := d.findStarter(ctx, place, steps); shared.Shared || err != nil {
			return shared, err
		}
	}
	out.Telemetry = w.telemetry()
	return out, err
}

// findStarter looks a finished starter up under its identity. The result is not Shared
// where there is none.
func (d *Device) findStarter(ctx context.Context, place string, steps int) (out activities.WarmStartResult, err error) {
	b, _, err := store.ReadFixed(ctx, d.Store, place+"/model.json", maxShared)
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var shared sharedStarter
	if err := json.Unmarshal(b, &shared); err != nil {
		return out, fmt.Errorf("shared starter %s: %w", place, err)
	}
	// Whoever finished it may have been cut off before it removed what lay between.
	return activities.WarmStartResult{Base: &shared.Index, Shared: true, Steps: steps}, removeChunks(ctx, d.Store, place)
}

// beginStarter is begin for a run that has no version 0 yet. files are the small files of the
// model that is trained.
func (d *Device) beginStarter(ctx context.Context, in activities.WarmStartInput,
	t spec.Train) (w *work, files map[string][]byte, done func(*error), err error) {
	if in.Base == nil {
		t.Policy.LoRA = nil // the starter is the base model: all its weights are taught
	}
	w, done, err = d.beginWith(ctx, warmStartRun(in), func() (*run.Context, error) {
		var err error
		if files, err = d.warmStartFiles(ctx, in, t); err != nil {
			return nil, err
		}
		base, err := run.NewBaseModel(files)
		if err != nil {
			return nil, err
		}
		return run.NewContext(t, base)
	})
	return w, files, done, err
}

// warmStartFiles are the small files of the model that a warm start trains.
func (d *Device) warmStartFiles(ctx context.Context, in activities.WarmStartInput, t spec.Train) (map[string][]byte, error) {
	if in.Base == nil {
		files := starter.Vocabulary(t.Policy.Starter.Tokenizer).Files()
		files[model.ConfigFile] = StarterConfig(*t.Policy.Starter).JSON()
		return files, nil
	}
	base, err := run.ReadIndex(ctx, d.Store, *in.Base)
	if err != nil {
		return nil, err
	}
	files, err := run.ModelFiles(ctx, d.Store, run.SmallRefs(base))
	if err != nil {
		return nil, fmt.Errorf("model that is taught: %w", err)
	}
	return files, nil
}

// StarterConfig is the starter's architecture: Qwen2 with a tied head. Its
// matrices begin wider than Qwen2's 0.02, as suits a width of 128.
func StarterConfig(s spec.Starter) model.Config {
	v := starter.Vocabulary(s.Tokenizer)
	return model.Config{
		VocabSize: v.Size(), HiddenSize: s.HiddenSize, IntermediateSize: s.IntermediateSize,
		Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HiddenSize / s.Heads,
		MaxPositions: 4096, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05,
		EOS: model.ID(v.EndID()), Pad: model.ID(v.PadID()),
	}
}

// warmStartRun is the run of a warm start, which has no version 0 yet. Its base model is the
// model that is taught; a starter has none.
func warmStartRun(in activities.WarmStartInput) activities.Run {
	out := activities.Run{ID: in.Run, Spec: in.Spec}
	if in.Base != nil {
		out.Base = *in.Base
	}
	return out
}

// teach applies the chunk's supervised updates, or as many as are left.
func (w *work) teach(ctx context.Context, s store.Store, in activities.WarmStartInput) (activities.WarmStartResult, error) {
	run := warmStartRun(in)
	if in.Base == nil {
		// Starters have no index yet: programs are kept under their architecture.
		run.Base.Digest = "starter " + string(w.Config.JSON())
	}
	p, err := w.engine.programsFor(w.Context, run, w.Shapes(w.Training, 1))
	if err != nil {
		return activities.WarmStartResult{}, err
	}
	begin := time.Now()
	if err := p.Compile(ctx, nil); err != nil {
		return activities.WarmStartResult{}, fmt.Errorf("compile: %w", err)
	}
	w.measured.CompileSeconds += time.Since(begin).Seconds()
	out := activities.WarmStartResult{}
	if in.From != nil {
		out.Steps = in.From.Version
	}
	if err := w.selfTest(ctx, run, false); err != nil {
		return out, err
	}
	if err := w.loadChunk(ctx, s, p, in); err != nil {
		return out, err
	}
	ws := w.Train.Policy.WarmStart
	for end := min(ws.Steps, out.Steps+in.Steps); out.Steps < end; out.Steps++ {
		examples, err := w.transcripts(out.Steps)
		if err != nil {
			return out, fmt.Errorf("transcripts of step %d: %w", out.Steps, err)
		}
		next, m, err := p.Learner.SupervisedUpdate(ctx, w.engine.state, w.transcriptBatches(examples), model.Settings{
			Optimizer:   model.Optimizer{LearningRate: float32(ws.LearningRate), Beta1: 0.9, Beta2: 0.999, AdamEpsilon: 1e-8, MaxGradNorm: 1},
			Temperature: 1,
		})
		if err != nil {
			w.engine.abandon(err)
			return out, fmt.Errorf("supervised update %d: %w", out.Steps, err)
		}
		w.engine.hold(next, nil)
		w.measured.Tokens += m.Tokens
		out.Loss = canon.Float(m.PolicyLoss)
	}
	return out, w.engine.computeFingerprint()
}

// transcripts returns the transcripts of one step: each environment has its share of the
// rows.
func (w *work) transcripts(step int) ([]starter.Transcript, error) {
	ws, s := w.Train.Policy.WarmStart, w.Training
	var out []starter.Transcript
	for i, n := range s.Shares(step, ws.Rows) {
		if n == 0 {
			continue
		}
		at := draw.Address{Seed: ws.Seed, Purpose: draw.WarmStart, Iteration: int64(step), Branch: int64(i)}
		shown := s.Shown(s.Parts[i].Environment)
		shown.Demonstrations = ws.Demonstrations
		if ws.Claims {
			shown.Objects = rewards.Objects(s.Parts[i].Environment.Name())
		}
		more, err := starter.Transcripts(w.Tokenizer, s.Parts[i].Environment, s.Protocol, shown, n, at)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// loadChunk makes the engine hold the state that the chunk continues from.
func (w *work) loadChunk(ctx context.Context, s store.Store, p *model.Programs, in activities.WarmStartInput) error {
	if in.From != nil && w.engine.state != nil && w.engine.fingerprint == in.From.State {
		return nil
	}
	from, err := w.chunkSource(ctx, s, in)
	if err != nil {
		return err
	}
	w.engine.drop()
	state, err := p.Load(from)
	if err != nil {
		return fmt.Errorf("load what is taught: %w", err)
	}
	w.engine.hold(state, nil)
	return nil
}

// chunkSource is the state that the chunk continues from.
func (w *work) chunkSource(ctx context.Context, s store.Store, in activities.WarmStartInput) (model.Source, error) {
	switch {
	case in.From != nil:
		state, err := w.openState(ctx, s, warmStartRun(in), in.From.Files)
		if err != nil {
			return model.Source{}, fmt.Errorf("warm start after %d steps: %w", in.From.Version, err)
		}
		return state.policy()
	case in.Base != nil:
		return w.version0(ctx, s, warmStartRun(in))
	}
	seed := w.Train.Policy.Starter.Seed
	return model.Drawn(w.Config, draw.Address{Seed: seed, Purpose: draw.Weights}), nil
}

// transcriptBatches lays transcripts out in micro-batches.
func (w *work) transcriptBatches(examples []starter.Transcript) []batch.MicroBatch {
	var rows []episode.Stretch
	for _, e := range examples {
		rows = append(rows, episode.Stretch{Ids: e.IDs, Sampled: e.Loss})
	}
	return w.MicroBatches(rows)
}

// putChunk stores the state between two chunks.
func (w *work) putChunk(ctx context.Context, s store.Store, place string, steps int) (*store.SnapshotRef, error) {
	files, err := w.engine.state.Files(model.SnapshotFile)
	if err != nil {
		return nil, err
	}
	folder, err := store.PutFolder(ctx, s, fmt.Sprintf("%s/steps/%06d.", place, steps), run.Streamed(files))
	if err != nil {
		return nil, err
	}
	return &store.SnapshotRef{Version: steps, Dir: folder.Dir, Files: folder.Files, State: w.engine.fingerprint}, nil
}

// putStarter stores the finished starter as a model and notes it under its
// identity, for other runs.
func (w *work) putStarter(ctx context.Context, s store.Store, place string, in activities.WarmStartInput,
	imported map[string][]byte) (*store.Ref, error) {
	files, err := w.engine.state.Files(model.SnapshotFile)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f model.File) bool { return !model.OfPolicy(f.Name) })
	index, err := w.putTrained(ctx, s, in, run.Streamed(files), imported)
	if err != nil {
		return nil, err
	}
	b, err := canon.Marshal(sharedStarter{Index: index})
	if err != nil {
		return nil, err
	}
	if _, err := store.Commit(ctx, s, place+"/model.json", b); err != nil {
		return nil, err
	}
	return &index, removeChunks(ctx, s, place)
}

// putTrained stores what a warm start has trained: adapters beside their base model, or a whole
// model with the small files of the one that it was.
func (w *work) putTrained(ctx context.Context, s store.Store, in activities.WarmStartInput, files []store.FolderFile,
	imported map[string][]byte) (store.Ref, error) {
	if w.Config.Adapted() {
		base, err := run.ReadIndex(ctx, s, *in.Base)
		if err != nil {
			return store.Ref{}, err
		}
		return run.PutAdapters(ctx, s, base, files)
	}
	for _, name := range run.SmallFiles {
		if body, ok := imported[name]; ok && name != model.ConfigFile {
			files = append(files, store.FolderFile{Name: name, Body: body})
		}
	}
	return run.PutModel(ctx, s, files)
}

// removeChunks removes the states between the chunks of a finished starter: a worker that
// still looks for one finds the starter.
func removeChunks(ctx context.Context, s store.Store, place string) error {
	for o, err := range s.List(ctx, place+"/steps/") {
		if err != nil {
			return err
		}
		if err := s.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}
