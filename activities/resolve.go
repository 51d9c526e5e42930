package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Host is the activities that need no device.
type Host struct {
	Store store.Store
	// Attributes asks the server whether it knows the Reprise* search
	// attributes; nil means it does not.
	Attributes func(context.Context) bool

	kits kits
}

// Known is what a spec is checked against: the registered environments and
// their options.
func Known() spec.Known {
	return spec.Known{Environments: envs.Names(), Options: func(name string, options json.RawMessage) []spec.Problem {
		_, err := envs.New(name, options)
		var bad *envs.OptionsError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &bad):
			var out []spec.Problem
			for _, p := range bad.Problems {
				out = append(out, spec.Problem{Path: p.Path, Found: p.Found, Allowed: p.Want})
			}
			return out
		default:
			return []spec.Problem{{Found: string(options), Allowed: err.Error()}}
		}
	}}
}

// Resolve checks a spec, imports its base model, fills in what the environment
// gives, and writes spec.json: from here on only that is read. Started again
// with the same id and spec it finds the run's committed iterations; with
// another spec it refuses and names the differences.
func (h *Host) Resolve(ctx context.Context, in ResolveInput) (ResolveResult, error) {
	out, err := h.resolve(ctx, in)
	return out, edge(ctx, "resolve the spec of run "+in.Run, err)
}

func (h *Host) resolve(ctx context.Context, in ResolveInput) (ResolveResult, error) {
	defer heartbeat(ctx)()
	t, err := spec.Decode(in.Spec, Known())
	if err != nil {
		return ResolveResult{}, err
	}
	if t.Environment.Options, err = pinned(t.Environment); err != nil {
		return ResolveResult{}, err
	}
	written, ref, err := h.writtenSpec(ctx, in.Run)
	if err != nil {
		return ResolveResult{}, err
	}
	if written != nil {
		// What the environment gave is part of the written spec; a person need
		// not repeat it.
		if t.Rollout.PromptTokens == nil {
			t.Rollout.PromptTokens = written.Rollout.PromptTokens
		}
		if d := spec.Diff(*written, t); len(d) > 0 {
			return ResolveResult{}, fmt.Errorf("%w: stored and given differ in\n%s\nstart it under another workflow id, or with the stored spec (%s)",
				ErrSpecDiffers, d, h.Store.Location(ref.Key))
		}
	}
	base, imported, err := importBase(ctx, h.Store, t.Policy)
	if err != nil {
		return ResolveResult{}, err
	}
	if written == nil {
		if t.Rollout.PromptTokens == nil {
			if t.Rollout.PromptTokens, err = h.promptTokens(ctx, t, base, imported); err != nil {
				return ResolveResult{}, err
			}
		}
		b, err := t.JSON()
		if err != nil {
			return ResolveResult{}, err
		}
		if ref, err = store.Commit(ctx, h.Store, store.SpecKey(in.Run), b); err != nil {
			return ResolveResult{}, err
		}
	}
	out := ResolveResult{Spec: ref, Plan: planOf(t), Location: h.Store.Location(store.RunDir(in.Run)), SearchAttributes: h.Attributes != nil && h.Attributes(ctx)}
	if imported {
		out.Base = &base
	}
	if out.Head, err = h.head(ctx, in.Run, nil); err != nil {
		return ResolveResult{}, err
	}
	return out, nil
}

// pinned are an environment's options with the digests of the files it reads: a
// file that changes is another environment.
func pinned(e spec.Environment) (json.RawMessage, error) {
	env, err := envs.New(e.Name, e.Options)
	if err != nil {
		return nil, fmt.Errorf("environment %s: %w", e.Name, err)
	}
	p, ok := env.(envs.Pinned)
	if !ok {
		return e.Options, nil
	}
	options, err := p.Pin()
	if err != nil {
		return nil, fmt.Errorf("environment %s: %w", e.Name, err)
	}
	return options, nil
}

// writtenSpec reads a run's spec.json, nil where there is none.
func (h *Host) writtenSpec(ctx context.Context, run string) (*spec.Train, store.Ref, error) {
	b, ref, err := store.ReadFixed(ctx, h.Store, store.SpecKey(run), spec.MaxBytes)
	if errors.Is(err, store.ErrNotFound) {
		return nil, ref, nil
	}
	if err != nil {
		return nil, ref, err
	}
	var t spec.Train
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, ref, fmt.Errorf("%s: %w", h.Store.Location(ref.Key), err)
	}
	return &t, ref, nil
}

// promptTokens are the widths of the context at each turn's start.
func (h *Host) promptTokens(ctx context.Context, t spec.Train, base store.Ref, imported bool) ([]int, error) {
	if !imported {
		return PromptTokens(t, nil)
	}
	m, err := readIndex(ctx, h.Store, base)
	if err != nil {
		return nil, err
	}
	files, err := modelFiles(ctx, h.Store, smallRefs(m))
	if err != nil {
		return nil, err
	}
	return PromptTokens(t, files)
}

// planOf is what the workflow needs to decide.
func planOf(t spec.Train) Plan {
	p := Plan{
		Iterations: t.Iterations, Turns: t.Rollout.Turns, Rows: t.Rollout.Trajectories(), Environment: t.Environment.Name,
		Snapshot: t.Snapshot, Evaluation: t.Evaluation, ActivitySeconds: t.Limits.ActivitySeconds,
		Settings: spec.SettingsOf(t),
	}
	if t.Policy.Starter != nil {
		p.WarmStartSteps = t.Policy.Starter.WarmStartSteps
	}
	return p
}

// Load reads what is written of a run: its plan, and where asked a committed
// policy version.
func (h *Host) Load(ctx context.Context, in LoadInput) (LoadResult, error) {
	out, err := h.load(ctx, in)
	return out, edge(ctx, "load run "+in.Run, err)
}

func (h *Host) load(ctx context.Context, in LoadInput) (LoadResult, error) {
	defer heartbeat(ctx)() // the chain may be long
	if in.Spec != nil {
		t, err := readSpec(ctx, h.Store, *in.Spec)
		if err != nil {
			return LoadResult{}, err
		}
		return LoadResult{Plan: planOf(t)}, nil
	}
	if _, err := h.Store.Stat(ctx, store.SpecKey(in.Run)); errors.Is(err, store.ErrNotFound) {
		return LoadResult{}, fmt.Errorf("no run %q in %s: %w", in.Run, h.Store.Location(store.RunsDir), ErrNotFound)
	} else if err != nil {
		return LoadResult{}, err
	}
	head, err := h.head(ctx, in.Run, in.Version)
	if err != nil {
		return LoadResult{}, err
	}
	if head == nil {
		return LoadResult{}, fmt.Errorf("run %q has no committed iteration yet: %w", in.Run, ErrNotFound)
	}
	// What the version was computed with is the spec that its manifest names.
	m, err := store.ReadManifest(ctx, h.Store, head.Manifest)
	if err != nil {
		return LoadResult{}, err
	}
	followed, err := readSpec(ctx, h.Store, m.Spec)
	if err != nil {
		return LoadResult{}, err
	}
	return LoadResult{
		Plan: planOf(followed), Run: Run{ID: in.Run, Spec: m.Spec, Base: head.Base}, Branch: head.Branch,
		Version: head.Iteration + 1, State: head.State, Fingerprint: head.Fingerprint, Head: head,
	}, nil
}
