package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// loraOf are a policy's adapters, zero if it has none.
func loraOf(p spec.Policy) (model.LoRA, error) {
	if p.LoRA == nil {
		return model.LoRA{}, nil
	}
	targets, err := model.ParseTargets(p.LoRA.Targets)
	out := model.LoRA{Rank: p.LoRA.Rank, Alpha: p.LoRA.Alpha, RSLoRA: p.LoRA.RSLoRA, Targets: targets, Base: baseName(p)}
	if err == nil {
		err = out.Check()
	}
	if err != nil {
		return model.LoRA{}, fmt.Errorf("policy.lora: %w: %w", err, store.ErrInvalid)
	}
	return out, nil
}

// AdaptersAt is the address that version 0's adapters of a run are drawn from, unless its base
// model's folder has them.
func (rc *Context) AdaptersAt() draw.Address {
	return draw.Address{Seed: rc.Train.Policy.LoRA.Seed, Purpose: draw.LoRA}
}

// baseName is the name of a policy's base model on the hub, for adapter_config.json; empty if
// it is not the hub's.
func baseName(p spec.Policy) string {
	if p.Base != "" {
		p.From = p.Base
	}
	if origin, err := p.Origin(); err == nil && origin.Kind == spec.OriginHub {
		return origin.Name
	}
	return ""
}

// SpecLoRA are adapters as a spec has them, without a seed.
func SpecLoRA(l model.LoRA) spec.LoRA {
	return spec.LoRA{Rank: l.Rank, Alpha: l.Alpha, RSLoRA: l.RSLoRA, Targets: l.Targets.Names()}
}

// Starting is a policy that starts from a stored model. If the model has adapters, the
// policy's are theirs; document is what a person wrote.
func Starting(ctx context.Context, s store.Store, p spec.Policy, base store.Ref, document []byte) (spec.Policy, error) {
	m, err := ReadIndex(ctx, s, base)
	if err != nil {
		return p, err
	}
	ref, ok := m.Files[model.AdapterConfigFile]
	switch {
	case !ok && p.Base != "":
		return p, fmt.Errorf("policy.base names a base model, but %s is a whole model and has no adapters: %w", p.From, activities.ErrModelInvalid)
	case !ok:
		return p, nil
	}
	b, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return p, fmt.Errorf("model file %s: %w", model.AdapterConfigFile, err)
	}
	l, err := model.ParseLoRA(b)
	if err != nil {
		return p, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	return p.Starting(SpecLoRA(l), cmp.Or(spec.HubBase(l.Base), p.From), document)
}

// TokenizerFiles are the small files of a tokenizer, which belong together.
var TokenizerFiles = []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json",
	"added_tokens.json"}

// PutAdapters stores adapters beside their base model, as one model: an index that has the
// base model's files where they are, and the adapters'. A tokenizer among the latter takes
// the place of the base model's.
func PutAdapters(ctx context.Context, s store.Store, base store.ModelRef, files []store.FolderFile) (store.Ref, error) {
	own, err := store.HashFolder(ctx, store.ModelPrefix, files)
	if err != nil {
		return store.Ref{}, err
	}
	all := maps.Clone(base.Files)
	if _, ok := own.Files[TokenizerFiles[0]]; ok {
		for _, name := range TokenizerFiles {
			delete(all, name)
		}
	}
	maps.DeleteFunc(all, func(name string, _ store.Ref) bool { return model.OfAdapters(name) })
	maps.Copy(all, own.Files)
	out := store.ModelRef{Digest: store.FolderDigest(all), Files: all}
	out.Dir = store.ModelPrefix + store.ShortDigest(out.Digest)
	for _, f := range store.InOrder(files) {
		ref := own.Files[f.Name]
		ref.Key = out.Dir + "/" + f.Name
		all[f.Name] = ref
		if err := store.PutFolderFile(ctx, s, ref, f); err != nil {
			return store.Ref{}, fmt.Errorf("put adapters %s: %w", out.Dir, err)
		}
	}
	return PutIndex(ctx, s, out)
}
