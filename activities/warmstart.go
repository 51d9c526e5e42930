package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/starter"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// WarmStart makes a starter policy, a chunk of supervised updates a call: on
// transcripts of random play in the right format, so that it can speak and knows
// nothing of the task. Everything is drawn from the starter's own seed, so runs
// that ask for the same starter share one; the last chunk stores it as a model.
func (d *Device) WarmStart(ctx context.Context, in WarmStartInput) (WarmStartResult, error) {
	out, err := d.warmStart(ctx, in)
	return out, edge(ctx, "warm start of run "+in.Run, err)
}

// starterIdentity is everything the bits of a starter depend on.
type starterIdentity struct {
	Starter      spec.Starter    `json:"starter"`
	Environment  string          `json:"environment"`
	Options      json.RawMessage `json:"options"`
	Think        bool            `json:"think"`
	MaxNewTokens int             `json:"max_new_tokens"`
	PromptTokens []int           `json:"prompt_tokens"`
	MicroBatch   int             `json:"micro_batch"`
	ComputeDtype string          `json:"compute_dtype"`
	Fingerprint  string          `json:"fingerprint"`
}

// sharedStarter is what the store keeps under a starter's identity.
type sharedStarter struct {
	Index store.Ref `json:"index"`
}

const maxShared = 1 << 16 // bytes of a sharedStarter

func (d *Device) warmStart(ctx context.Context, in WarmStartInput) (WarmStartResult, error) {
	t, err := readSpec(ctx, d.Store, in.Spec)
	if err != nil {
		return WarmStartResult{}, err
	}
	s := t.Policy.Starter
	if s == nil {
		return WarmStartResult{}, fmt.Errorf("the spec names no starter: %w", ErrModelInvalid)
	}
	id, err := digestOf(starterIdentity{
		Starter: *s, Environment: t.Environment.Name, Options: t.Environment.Options, Think: t.Rollout.Think,
		MaxNewTokens: t.Rollout.MaxNewTokens, PromptTokens: t.Rollout.PromptTokens, MicroBatch: t.Update.MicroBatch,
		ComputeDtype: t.Policy.ComputeDtype, Fingerprint: d.Engine.Info().Fingerprint,
	})
	if err != nil {
		return WarmStartResult{}, err
	}
	place := store.ModelPrefix + "starter-" + store.ShortDigest(id)
	if shared, err := d.findStarter(ctx, place); err != nil || shared != nil {
		return WarmStartResult{Base: shared, Shared: true, Steps: s.WarmStartSteps}, err
	}
	w, done, err := d.beginStarter(ctx, in.Run, t)
	if err != nil {
		return WarmStartResult{}, err
	}
	defer done()
	out, err := w.teach(ctx, d.Store, in)
	if err != nil {
		return WarmStartResult{}, err
	}
	if out.Steps < s.WarmStartSteps {
		out.Snapshot, err = w.putChunk(ctx, d.Store, place, out.Steps)
	} else {
		out.Base, err = w.putStarter(ctx, d.Store, place)
	}
	out.Telemetry = w.telemetry()
	return out, err
}

// findStarter looks a finished starter up under its identity.
func (d *Device) findStarter(ctx context.Context, place string) (*store.Ref, error) {
	b, _, err := store.ReadFixed(ctx, d.Store, place+"/model.json", maxShared)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var shared sharedStarter
	if err := json.Unmarshal(b, &shared); err != nil {
		return nil, fmt.Errorf("shared starter %s: %w", place, err)
	}
	return &shared.Index, nil
}

// beginStarter is begin for a run that has no base model yet.
func (d *Device) beginStarter(ctx context.Context, run string, t spec.Train) (*work, func(), error) {
	stop := heartbeat(ctx)
	release, waited, err := d.Engine.acquire(ctx, run)
	if err != nil {
		stop()
		return nil, nil, err
	}
	files := starter.Files()
	config := StarterConfig(*t.Policy.Starter)
	files[model.ConfigFile] = config.JSON()
	k, err := newKit(t, files)
	if err != nil {
		release()
		stop()
		return nil, nil, err
	}
	w := &work{kit: k, engine: d.Engine, start: time.Now()}
	w.took.WaitSeconds = waited.Seconds()
	return w, func() { release(); stop() }, nil
}

// StarterConfig is the starter's architecture: Qwen2 with a tied head. Its
// matrices begin wider than Qwen2's 0.02, as suits a width of 128.
func StarterConfig(s spec.Starter) model.Config {
	end, pad := starter.EndID, starter.PadID
	return model.Config{
		VocabSize: starter.VocabSize, HiddenSize: s.HiddenSize, IntermediateSize: s.IntermediateSize,
		Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HiddenSize / s.Heads,
		MaxPositions: 4096, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05, EOS: &end, Pad: &pad,
	}
}

// teach applies supervised updates from the chunk's beginning until the warm
// start is done or MaxSeconds are over.
func (w *work) teach(ctx context.Context, s store.Store, in WarmStartInput) (WarmStartResult, error) {
	run := Run{ID: in.Run, Spec: in.Spec}
	p, err := w.engine.programsFor(w.kit, run, 1)
	if err != nil {
		return WarmStartResult{}, err
	}
	begin := time.Now()
	if err := p.Compile(ctx, nil); err != nil {
		return WarmStartResult{}, fmt.Errorf("compile: %w", err)
	}
	w.took.CompileSeconds = time.Since(begin).Seconds()
	out := WarmStartResult{}
	if in.From != nil {
		out.Steps = in.From.Version
	}
	if err := w.loadChunk(ctx, s, p, in.From); err != nil {
		return out, err
	}
	st := *w.train.Policy.Starter
	deadline := time.Now().Add(time.Duration(in.MaxSeconds) * time.Second)
	for first := true; out.Steps < st.WarmStartSteps && (first || time.Now().Before(deadline)); first = false {
		at := draw.Address{Seed: st.Seed, Purpose: draw.WarmStart, Iteration: int64(out.Steps)}
		examples, err := starter.Transcripts(w.tokenizer, w.env, w.protocol, starter.Lesson{Turns: w.train.Rollout.Turns}, st.WarmStartRows, at)
		if err != nil {
			return out, fmt.Errorf("transcripts of step %d: %w", out.Steps, err)
		}
		next, m, err := p.SupervisedUpdate(ctx, w.engine.state, w.lessons(examples), model.Settings{
			LearningRate: float32(st.WarmStartRate), Beta1: 0.9, Beta2: 0.999, AdamEpsilon: 1e-8, MaxGradNorm: 1, Temperature: 1,
		})
		if err != nil {
			return out, fmt.Errorf("supervised update %d: %w", out.Steps, err)
		}
		w.engine.hold(next, "")
		w.took.Tokens += m.Tokens
		out.Loss = canon.Float(m.PolicyLoss)
		out.Steps++
	}
	w.engine.print, err = w.engine.state.Fingerprint()
	return out, err
}

// loadChunk makes the engine hold the state the chunk goes on from.
func (w *work) loadChunk(ctx context.Context, s store.Store, p *model.Programs, from *store.SnapshotRef) error {
	if from != nil && w.engine.state != nil && w.engine.print == from.State {
		return nil
	}
	var snapshot model.Snapshot
	if from == nil {
		seed := w.train.Policy.Starter.Seed
		snapshot = model.NewSnapshot(model.NewParams(w.config, draw.Address{Seed: seed, Purpose: draw.Weights}))
	} else {
		files, err := modelFiles(ctx, s, from.Files)
		if err != nil {
			return err
		}
		if snapshot, err = model.ReadSnapshot(files); err != nil {
			return fmt.Errorf("warm start after %d steps: %w", from.Version, err)
		}
	}
	state, err := p.Upload(snapshot)
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	w.engine.hold(state, "")
	return nil
}

// lessons lays transcripts out in micro-batches.
func (w *work) lessons(examples []starter.Transcript) []model.MicroBatch {
	b, width := w.train.Update.MicroBatch, w.shapes(1).Sequence
	var out []model.MicroBatch
	for at := 0; at < len(examples); at += b {
		m := emptyMicroBatch(b, width)
		for i, e := range examples[at:min(at+b, len(examples))] {
			n := copy(m.IDs[i], e.IDs)
			m.Lengths[i], m.RowWeights[i] = int32(n), 1
			for t := range n {
				if e.Loss[t] {
					m.LossMask[i][t] = 1
				}
			}
		}
		out = append(out, m)
	}
	return out
}

// putChunk stores the state between two chunks.
func (w *work) putChunk(ctx context.Context, s store.Store, place string, steps int) (*store.SnapshotRef, error) {
	snapshot, err := w.engine.state.Download()
	if err != nil {
		return nil, err
	}
	files, err := snapshot.Files()
	if err != nil {
		return nil, err
	}
	folder, err := store.PutFolder(ctx, s, fmt.Sprintf("%s/steps/%06d.", place, steps), folderFiles(files))
	if err != nil {
		return nil, err
	}
	return &store.SnapshotRef{Version: steps, Dir: folder.Dir, Files: folder.Files, State: w.engine.print}, nil
}

// putStarter stores the finished starter as a model and notes it under its
// identity, for other runs.
func (w *work) putStarter(ctx context.Context, s store.Store, place string) (*store.Ref, error) {
	snapshot, err := w.engine.state.Download()
	if err != nil {
		return nil, err
	}
	files, err := snapshot.Files()
	if err != nil {
		return nil, err
	}
	delete(files, model.OptimizerFile)
	for name, body := range starter.Files() {
		files[name] = body
	}
	index, err := putModel(ctx, s, spec.FromStarter, folderFiles(files))
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
	// The states between the chunks have served: whoever still wants one finds
	// the finished starter first.
	for o, err := range s.List(ctx, place+"/steps/") {
		if err != nil {
			return nil, err
		}
		if err := s.Delete(ctx, o.Key); err != nil {
			return nil, err
		}
	}
	return &index, nil
}

// folderFiles are files in the order of their names.
func folderFiles(files map[string][]byte) []store.FolderFile {
	var out []store.FolderFile
	for _, name := range sortedKeys(files) {
		out = append(out, store.FolderFile{Name: name, Body: files[name]})
	}
	return out
}
