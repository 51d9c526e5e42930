package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all" // registers them
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// kit is what the steps of one run share: its resolved spec, its environment,
// and the configuration and tokenizer of its base model. It is read from the
// store once and never changes.
type kit struct {
	train     spec.Train
	env       envs.Environment
	protocol  envs.Protocol
	config    model.Config
	tokenizer *tokenizer.Tokenizer
	legal     []bool // ids of the model's vocabulary that the tokenizer has
}

// generateRows is the rows of one generation program, where a rollout has as
// many: fixed, so that a row's bits do not depend on the rollout's size.
const generateRows = 64

// scoreMargin rounds the widths of scored rows up, so that few programs serve.
const scoreMargin = 16

// shapes are the shapes of the programs of a turn. Score and Update run on the
// programs of turn 1: their width is that of the whole trajectory.
func (k *kit) shapes(turn int) model.Shapes {
	r := k.train.Rollout
	width := r.PromptTokens[len(r.PromptTokens)-1] + r.MaxNewTokens
	return model.Shapes{
		GenerateRows: min(generateRows, r.Groups*r.GroupSize),
		MicroBatch:   k.train.Update.MicroBatch,
		PromptTokens: r.PromptTokens[turn-1],
		MaxNewTokens: r.MaxNewTokens,
		Sequence:     (width + scoreMargin - 1) / scoreMargin * scoreMargin,
		ComputeDtype: k.train.Policy.ComputeDtype,
	}
}

// kits caches what was read, by the digests of spec and base model.
type kits struct {
	mu   sync.Mutex
	made map[string]*kit
}

// smallFiles are the model's files a kit needs: everything but the weights.
var smallFiles = []string{"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"}

// smallRefs are the refs of a model's small files.
func smallRefs(m store.ModelRef) map[string]store.Ref {
	small := map[string]store.Ref{}
	for _, name := range smallFiles {
		if ref, ok := m.Files[name]; ok {
			small[name] = ref
		}
	}
	return small
}

// read gives the kit of a run.
func (c *kits) read(ctx context.Context, s store.Store, run Run) (*kit, error) {
	key := run.Spec.Digest + run.Base.Digest
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.made[key]; ok {
		return k, nil
	}
	t, err := readSpec(ctx, s, run.Spec)
	if err != nil {
		return nil, err
	}
	base, err := readIndex(ctx, s, run.Base)
	if err != nil {
		return nil, err
	}
	files, err := modelFiles(ctx, s, smallRefs(base))
	if err != nil {
		return nil, fmt.Errorf("base model of run %s: %w", run.ID, err)
	}
	k, err := newKit(t, files)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run.ID, err)
	}
	if c.made == nil {
		c.made = map[string]*kit{}
	}
	c.made[key] = k
	return k, nil
}

// newKit puts a kit together from a resolved spec and a model's small files.
func newKit(t spec.Train, files map[string][]byte) (*kit, error) {
	k := &kit{train: t}
	var err error
	if k.env, err = envs.New(t.Environment.Name, t.Environment.Options); err != nil {
		return nil, fmt.Errorf("environment %s: %w", t.Environment.Name, err)
	}
	k.protocol = protocolOf(t)
	if k.config, err = model.ParseConfig(files["config.json"]); err != nil {
		return nil, fmt.Errorf("config.json: %w: %w", err, ErrModelInvalid)
	}
	if k.tokenizer, err = tokenizer.Load(files); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, ErrModelInvalid)
	}
	if k.legal, err = k.tokenizer.Legal(k.config.VocabSize); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, ErrModelInvalid)
	}
	return k, nil
}

// readSpec reads a run's resolved spec.
func readSpec(ctx context.Context, s store.Store, ref store.Ref) (spec.Train, error) {
	b, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return spec.Train{}, fmt.Errorf("resolved spec: %w", err)
	}
	var t spec.Train
	if err := json.Unmarshal(b, &t); err != nil {
		return spec.Train{}, fmt.Errorf("resolved spec %s: %w", ref.Key, err)
	}
	return t, nil
}

// readIndex reads a model's index: which files it has.
func readIndex(ctx context.Context, s store.Store, ref store.Ref) (store.ModelRef, error) {
	var m store.ModelRef
	b, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return m, fmt.Errorf("model index: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("model index %s: %w", ref.Key, err)
	}
	return m, nil
}

// rowAddress gives the streams of a row: of its group's initial state, of the
// chances in its episode, and of its samples.
type rowAddress struct{ instance, chance, sample draw.Address }

// addresses computes them from (run seed, purpose, branch, iteration, group,
// member); an evaluation's from (suite, instance, sample) alone.
func (k *kit) address(branch int, r Rollout, group, member int) rowAddress {
	a := draw.Address{Seed: k.train.Seed, Branch: int64(branch), Iteration: int64(r.Iteration), Group: int64(group)}
	purpose := func(p draw.Purpose) draw.Purpose { return p }
	if r.Evaluation != nil {
		a = draw.Address{Seed: r.Evaluation.Suite.Seed, Group: int64(group)}
		purpose = draw.Evaluation.With
	}
	with := func(p draw.Purpose, member int) draw.Address {
		b := a
		b.Purpose, b.Member = purpose(p), int64(member)
		return b
	}
	return rowAddress{
		instance: with(draw.Instance, 0),
		chance:   with(draw.Chance, member),
		sample:   with(draw.Sample, member),
	}
}

// size is the groups and members of a rollout.
func (k *kit) size(r Rollout) (groups, members int) {
	if e := r.Evaluation; e != nil {
		return e.Suite.Instances, e.Suite.Samples
	}
	return k.train.Rollout.Groups, k.train.Rollout.GroupSize
}

// dir is the folder of a rollout's artifacts.
func dir(run Run, branch int, r Rollout) string {
	if e := r.Evaluation; e != nil && e.Apart != "" {
		return store.RunDir(run.ID) + "/evaluations/" + store.EscapeSegment(e.Apart)
	} else if e != nil {
		return store.EvaluationDir(run.ID, branch, r.Iteration)
	}
	return store.IterationDir(run.ID, branch, r.Iteration)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// canonical is a value as canonical JSON.
func canonical(v any) (json.RawMessage, error) {
	b, err := canon.Marshal(v)
	return json.RawMessage(b), err
}

// digestOf is the digest of a value's canonical JSON.
func digestOf(v any) (string, error) {
	b, err := canon.Marshal(v)
	if err != nil {
		return "", err
	}
	return canon.Digest(b), nil
}
