package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Resolve checks a spec, imports its base model, fills in what the environment
// gives, and writes spec.json: from here on only that is read. Started again
// with the same id and spec it finds the run's committed iterations; with
// another spec it refuses and names the differences.
func (h *Host) Resolve(ctx context.Context, in activities.ResolveInput) (_ activities.ResolveResult, err error) {
	defer run.Edge(ctx, &err, "resolve the spec of run %s", in.Run)
	defer run.Heartbeat(ctx)()
	if err := store.RefuseRemoved(ctx, h.Store, in.Run); err != nil {
		return activities.ResolveResult{}, err
	}
	if in.Describe != nil {
		return h.describedAgain(ctx, in)
	}
	t, err := h.decoded(ctx, in.Spec)
	if err != nil {
		return activities.ResolveResult{}, err
	}
	head, err := run.FindHead(ctx, h.Store, in.Run, nil)
	if err != nil {
		return activities.ResolveResult{}, err
	}
	written, ref, err := h.written(ctx, in.Run, head)
	if err != nil {
		return activities.ResolveResult{}, err
	}
	if written != nil && head == nil {
		// Nothing is committed: a description that has changed since is taken as at the first start.
		if changed, err := describedOtherwise(*written, completedFrom(t, *written, in.Spec)); err != nil {
			return activities.ResolveResult{}, err
		} else if changed != "" {
			written = nil
		}
	}
	anew := written == nil && ref.Digest != ""
	if written != nil {
		// The values that the environment and the model's size gave are part of the written
		// spec; a person need not repeat them.
		t = completedFrom(t, *written, in.Spec)
		if d := spec.Diff(*written, t); len(d) > 0 {
			return activities.ResolveResult{}, h.differs(*written, t, d, ref, head)
		}
	}
	var base store.Ref
	var imported bool
	var from *activities.Head
	if head != nil {
		// Committed manifests name their base in the store, so the folder, the hub or the
		// run that it came from is not read again.
		base, imported = head.Base, true
	} else if t.From != nil {
		if from, t.Policy, err = h.from(ctx, in.Run, t, in.Spec); err != nil {
			return activities.ResolveResult{}, err
		}
		base, imported = from.Base, true
	} else if base, imported, err = ImportBase(ctx, h.Store, t.Policy); err != nil {
		return activities.ResolveResult{}, err
	}
	if written == nil && imported && (head == nil && from == nil || t.Policy.LoRA == nil) {
		if t.Policy, err = run.Starting(ctx, h.Store, t.Policy, base, in.Spec); err != nil {
			return activities.ResolveResult{}, err
		}
	}
	if written == nil {
		if t, err = h.completed(ctx, t, in.Spec, base, imported); err != nil {
			return activities.ResolveResult{}, err
		}
		b, err := t.JSON()
		if err != nil {
			return activities.ResolveResult{}, err
		}
		if head != nil {
			m, err := store.ReadManifest(ctx, h.Store, head.Manifest)
			if err != nil {
				return activities.ResolveResult{}, err
			}
			if digest := canon.Digest(b); digest != m.Spec.Digest {
				return activities.ResolveResult{}, fmt.Errorf("%w: %s is gone, and the iterations that are there were computed with another one (SHA-256 %s; the given one's is %s)",
					activities.ErrSpecDiffers, h.Store.Location(m.Spec.Key), m.Spec.Digest, digest)
			}
		}
		if anew {
			ref, err = store.PutArtifact(ctx, h.Store, store.RunDir(in.Run), "spec", "json", b)
		} else {
			ref, err = store.Commit(ctx, h.Store, store.SpecKey(in.Run), b)
		}
		if err != nil {
			return activities.ResolveResult{}, err
		}
	}
	if head == nil && t.From != nil {
		// Whoever removes the other run marks it first, and then looks for specs that name it: one of the two sees the other.
		if err := store.RefuseRemoved(ctx, h.Store, t.From.Run); err != nil {
			return activities.ResolveResult{}, fmt.Errorf("from: %w", err)
		}
	}
	out := activities.ResolveResult{Spec: ref, Plan: PlanOf(t), Location: h.Store.Location(store.RunDir(in.Run)),
		SearchAttributes: h.Attributes != nil && h.Attributes(ctx)}
	if out.Warnings, err = run.Unasked(t); err != nil {
		return activities.ResolveResult{}, err
	}
	if imported && head == nil {
		out.Base = &base
	}
	if head == nil && t.WarmStartByDefault(in.Spec) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("a warm start of %d updates is on by default: policy.warm_start.steps 0 leaves the policy as it is", t.Policy.WarmStart.Steps))
	}
	if out.Flags, err = h.flags(ctx, t, base, imported); err != nil {
		return activities.ResolveResult{}, err
	}
	out.Head, out.From = head, from
	if head != nil {
		if head.Batches, err = run.RecentBatches(ctx, h.Store, in.Run, &head.Manifest, t.Freshness.ReplayIterations); err != nil {
			return activities.ResolveResult{}, err
		}
	}
	return out, nil
}

// decoded is a document's spec with what the environments' files and descriptions are now.
func (h *Host) decoded(ctx context.Context, document json.RawMessage) (spec.Train, error) {
	t, err := spec.Decode(document, run.Known())
	if err != nil {
		return t, err
	}
	if t, err = h.withPins(ctx, t); err != nil {
		return t, err
	}
	t = t.Described(document, run.Known())
	return t, h.judgeServed(ctx, t)
}

// withPins is a spec whose environments have the digests of the files they read, and whose foreign
// environments have their descriptions: a file or a version that changes is another environment.
// Templates of prompts are taken in whole.
func (h *Host) withPins(ctx context.Context, t spec.Train) (spec.Train, error) {
	pin := func(name string, options json.RawMessage) (json.RawMessage, error) {
		env, err := envs.New(name, options)
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", name, err)
		}
		switch e := env.(type) {
		case envs.Pinned:
			options, err = e.Pin()
		case *foreign.Environment:
			options, err = h.described(ctx, t, e, options)
		}
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", name, err)
		}
		return options, nil
	}
	var err error
	if t, err = run.WithPinnedTools(t, func(tool envs.Tool) (json.RawMessage, error) { return h.describedTool(ctx, tool) }); err != nil {
		return t, err
	}
	if t.Rollout.Protocol, err = wording(t.Rollout.Protocol); err != nil {
		return t, err
	}
	t.Evaluation.Suites = slices.Clone(t.Evaluation.Suites)
	for i, s := range t.Evaluation.Suites {
		if t.Evaluation.Suites[i].Protocol, err = wording(s.Protocol); err != nil {
			return t, fmt.Errorf("suite %s: %w", s.Name, err)
		}
	}
	return withOptions(t, pin)
}

// withOptions is a spec in which change has replaced the options of all environments.
func withOptions(t spec.Train, change func(name string, options json.RawMessage) (json.RawMessage, error)) (spec.Train, error) {
	var err error
	if t.Environment, err = t.Environment.WithOptions(change); err != nil {
		return t, err
	}
	t.Evaluation.Suites = slices.Clone(t.Evaluation.Suites)
	for i, s := range t.Evaluation.Suites {
		if t.Evaluation.Suites[i].Environment, err = s.Environment.WithOptions(change); err != nil {
			return t, fmt.Errorf("suite %s: %w", s.Name, err)
		}
	}
	return t, nil
}

// wording is a wording of prompts that needs no file.
func wording(name string) (string, error) {
	text, problems := envs.ReadWording(name)
	if err := strict.Problems(problems).Err(); err != nil {
		return "", fmt.Errorf("templates of prompts: %w", err)
	}
	return text, nil
}

// completedFrom takes over what completed gave to a written spec, which a person need not
// repeat.
func completedFrom(t, written spec.Train, document []byte) spec.Train {
	if t.Rollout.PromptTokens == nil {
		t.Rollout.PromptTokens = written.Rollout.PromptTokens
	}
	if micro := written.Update.MicroBatch; t.Update.MicroBatch%micro == 0 && !spec.Writes(document, spec.MicroBatch) {
		t.Update.MicroBatch = micro
	}
	if !t.Update.Sized() {
		t.Update.Recompute = written.Update.Recompute
	}
	if t.Policy.Starter == nil {
		if !spec.Writes(document, spec.SnapshotEvery) {
			t.Snapshot.Every = written.Snapshot.Every
		}
		if !spec.Writes(document, spec.Widths) {
			t.Update.Widths = written.Update.Widths
		}
		if !spec.Writes(document, spec.Shards) {
			t.Update.Shards = written.Update.Shards
		}
	}
	t.Rollout.PassRows = cmp.Or(t.Rollout.PassRows, written.Rollout.PassRows)
	t.Rollout.ChunkTokens = cmp.Or(t.Rollout.ChunkTokens, written.Rollout.ChunkTokens)
	t.Limits.GenerateRows = cmp.Or(t.Limits.GenerateRows, written.Limits.GenerateRows)
	t.Limits.ScoreRows = cmp.Or(t.Limits.ScoreRows, written.Limits.ScoreRows)
	t.Limits.SnapshotMiB = cmp.Or(t.Limits.SnapshotMiB, written.Limits.SnapshotMiB)
	t.Policy = startingAs(t.Policy, written.Policy, document)
	t = takenFrom(t, written)
	t = t.WithDefaultsOf(written, document)
	t.Evaluation.Suites = slices.Clone(t.Evaluation.Suites)
	for i := range t.Evaluation.Suites {
		s := &t.Evaluation.Suites[i]
		for _, w := range written.Evaluation.Suites {
			if s.PromptTokens == nil && s.Name == w.Name {
				s.PromptTokens = w.PromptTokens
			}
		}
	}
	return t
}

// startingAs takes over the adapters that a resolved policy starts with. They came with its
// model, which has a base model then.
func startingAs(p, resolved spec.Policy, document []byte) spec.Policy {
	if resolved.Base == "" || resolved.LoRA == nil {
		return p
	}
	if same, err := p.Starting(*resolved.LoRA, resolved.Base, document); err == nil {
		return same
	}
	return p // differs, as the comparison will say
}

// completed fills in what a spec leaves to the environment and the model: the widths of
// the contexts, the digests of the models beside the policy, and the sizes of what a device does at once. document is what a person
// wrote.
func (h *Host) completed(ctx context.Context, t spec.Train, document []byte, base store.Ref, imported bool) (spec.Train, error) {
	var files map[string][]byte // nil for a starter
	if imported {
		m, err := run.ReadIndex(ctx, h.Store, base)
		if err != nil {
			return t, err
		}
		if files, err = run.ModelFiles(ctx, h.Store, run.SmallRefs(m)); err != nil {
			return t, err
		}
	}
	t, err := run.WithWidths(t, files)
	if err != nil {
		return t, err
	}
	if t, err = h.frozen(ctx, t, files); err != nil {
		return t, err
	}
	shape, err := h.shape(ctx, t, base, imported)
	if err != nil {
		return t, err
	}
	return t.WithSizes(shape, document), nil
}

// PlanOf is what the workflow needs to decide.
func PlanOf(t spec.Train) activities.Plan {
	p := activities.Plan{
		Iterations: t.Iterations, Turns: t.Rollout.Turns, Rows: t.Rollout.Slots(), Environment: t.Environment.String(),
		Snapshot: t.Snapshot, EvaluateEvery: t.Evaluation.Every, ActivitySeconds: t.Limits.ActivitySeconds, StepFailures: t.Limits.Failures(),
		Freshness: t.Freshness, Diagnostics: t.Diagnostics, Report: t.Report.AtEnd, Collapse: t.Collapse, Settings: spec.SettingsOf(t),
		Schedule: t.Schedule, WarmStartSteps: t.Policy.WarmStart.Steps,
		Prepare: t.Policy.Starter != nil || t.Policy.WarmStart.Steps > 0, Foreign: t.Environment.Foreign(),
		Judged: t.Judged(), Questions: t.Questions(), Tools: run.CallsTools(t.Environment), Agent: t.Environment.ByAgent(),
		Search: t.Rollout.Search, Expansions: t.Rollout.TreesOf().Expansions,
		StopTokens: t.Stop.SampledTokens, StopSuccess: t.Stop.Success, Lag: t.Rollout.Lag, ScoredBySampler: t.ScoredBySampler(),
	}
	if t.Rollout.Workers > 1 {
		p.Workers, p.BlockRows, p.Beside = t.Rollout.Workers, t.Rollout.BlockRows, t.Rollout.Lag > 0
	}
	if t.Teacher != nil {
		p.Teacher, p.Shown = t.Teacher.Model, t.Teacher.Context
	}
	if t.From != nil {
		p.First, p.Prepare = t.From.Iteration+1, false // version 0 was made by the other run
	}
	for _, s := range t.Evaluation.Suites {
		p.Suites = append(p.Suites, activities.PlanSuite{Name: s.Name, Turns: s.Turns, Rows: s.Rows(), Foreign: s.Environment.Foreign(),
			Tools: run.CallsTools(s.Environment), Agent: s.Environment.ByAgent()})
	}
	return p
}

// Load reads the plan of a run that has been resolved.
func (h *Host) Load(ctx context.Context, in activities.LoadInput) (_ activities.LoadResult, err error) {
	defer run.Edge(ctx, &err, "load run %s", in.Run)
	t, err := run.ReadSpec(ctx, h.Store, in.Spec)
	if err != nil {
		return activities.LoadResult{}, err
	}
	return activities.LoadResult{Plan: PlanOf(t)}, nil
}

// Find finds a committed policy version of a run, with the run's plan; nil is the
// newest.
func (h *Host) Find(ctx context.Context, in activities.FindInput) (_ activities.LoadResult, err error) {
	defer run.Edge(ctx, &err, "find a version of run %s", in.Run)
	return h.find(ctx, in.Run, in.Version, in.Head)
}

func (h *Host) find(ctx context.Context, runID string, version *int, from *store.Ref) (activities.LoadResult, error) {
	defer run.Heartbeat(ctx)() // the chain may be long
	if err := store.RefuseRemoved(ctx, h.Store, runID); err != nil {
		return activities.LoadResult{}, err
	}
	if _, err := h.Store.Stat(ctx, store.SpecKey(runID)); errors.Is(err, store.ErrNotFound) {
		return activities.LoadResult{}, fmt.Errorf("no run %q in %s: %w", runID, h.Store.Location(store.RunsDir), activities.ErrNotFound)
	} else if err != nil {
		return activities.LoadResult{}, err
	}
	head, err := run.FindHeadOf(ctx, h.Store, runID, version, from)
	if err != nil {
		return activities.LoadResult{}, err
	}
	if head == nil {
		return activities.LoadResult{}, fmt.Errorf("run %q has no committed iteration yet: %w", runID, activities.ErrNotFound)
	}
	// The version was computed with the spec that its manifest names.
	m, err := store.ReadManifest(ctx, h.Store, head.Manifest)
	if err != nil {
		return activities.LoadResult{}, err
	}
	t, err := run.ReadSpec(ctx, h.Store, m.Spec)
	if err != nil {
		return activities.LoadResult{}, err
	}
	if head.Batches, err = run.RecentBatches(ctx, h.Store, runID, &head.Manifest, t.Freshness.ReplayIterations); err != nil {
		return activities.LoadResult{}, err
	}
	return activities.LoadResult{
		Plan: PlanOf(t), Run: activities.Run{ID: runID, Spec: m.Spec, Base: head.Base}, Branch: head.Branch,
		Version: head.Iteration + 1, State: head.State, Fingerprint: head.Fingerprint, Head: head,
	}, nil
}
