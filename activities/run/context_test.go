package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// tinyFiles are the small files of a model with a starter's tokenizer.
func tinyFiles(v starter.Vocabulary, hidden int) map[string][]byte {
	files := v.Files()
	files[model.ConfigFile] = model.Config{
		VocabSize: v.Size(), HiddenSize: hidden, IntermediateSize: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: hidden / 2, MaxPositions: 4096,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05, EOS: model.ID(v.EndID()), Pad: model.ID(v.PadID()),
	}.JSON()
	return files
}

// decoded is a spec with the widths that its environment needs with a starter's tokenizer.
func decoded(t testing.TB, document string) spec.Train {
	t.Helper()
	methodstest.NeedsOf(t, document)
	train, err := spec.Decode([]byte(document), Known())
	require.NoError(t, err)
	train, err = WithWidths(train, nil)
	require.NoError(t, err)
	return train
}

// newRun is the context of a run of a document, with a tiny model.
func newRun(t testing.TB, document string) *Context {
	t.Helper()
	base, err := NewBaseModel(tinyFiles(starter.First, 16))
	require.NoError(t, err)
	rc, err := NewContext(decoded(t, document), base)
	require.NoError(t, err)
	return rc
}

// putRun stores a spec and a base model.
func putRun(t testing.TB, s store.Store, train spec.Train, files map[string][]byte) activities.Run {
	t.Helper()
	b, err := train.JSON()
	require.NoError(t, err)
	ref, err := store.PutArtifact(t.Context(), s, "runs/r", "spec", "json", b)
	require.NoError(t, err)
	base, err := PutModel(t.Context(), s, FolderFiles(files))
	require.NoError(t, err)
	return activities.Run{ID: "r", Spec: ref, Base: base}
}

// A context is kept by its spec and its base model: another one of either is another context, and the id of the run
// makes no difference. Runs of one base model share it.
func TestContextsAreKeptByTheirInputs(t *testing.T) {
	s := store.NewMemory()
	var c Contexts
	seeds := []string{`{"seed": 1, "environment": {"name": "bandit"}}`, `{"seed": 2, "environment": {"name": "bandit"}}`}
	bases := []map[string][]byte{tinyFiles(starter.First, 16), tinyFiles(starter.Second, 16), tinyFiles(starter.First, 32)}
	read := func(seed, base int, id string) *Context {
		run := putRun(t, s, decoded(t, seeds[seed]), bases[base])
		run.ID = id
		rc, err := c.Read(t.Context(), s, run)
		require.NoError(t, err)
		require.EqualValues(t, seed+1, rc.Train.Seed)
		require.Equal(t, []int{starter.First.Size(), starter.Second.Size(), starter.First.Size()}[base], rc.Config.VocabSize)
		require.Equal(t, []int{16, 16, 32}[base], rc.Config.HiddenSize)
		require.Equal(t, rc.Config.VocabSize, rc.Tokenizer.VocabSize())
		require.Len(t, rc.Legal, rc.Config.VocabSize)
		return rc
	}
	seen := map[*Context]bool{}
	for base := range bases {
		for seed := range seeds {
			rc := read(seed, base, "one")
			require.False(t, seen[rc], "seed %d, base %d", seed, base)
			seen[rc] = true
			require.Same(t, rc, read(seed, base, "another"), "it is kept")
			require.Equal(t, len(seen), c.Len())
		}
		require.Same(t, read(0, base, "one").BaseModel, read(1, base, "one").BaseModel)
	}
	require.Len(t, c.models.values, 3)
	var other Contexts
	rc, err := other.Read(t.Context(), s, putRun(t, s, decoded(t, seeds[0]), bases[0]))
	require.NoError(t, err)
	require.NotSame(t, read(0, 0, "one"), rc)
}

// A worker refuses the spec of a program that links a method which this one does not have.
func TestContextOfAMethodThatIsNotLinked(t *testing.T) {
	s := store.NewMemory()
	var c Contexts
	train := decoded(t, `{"environment": {"name": "bandit"}}`)
	train.Credit.Algorithm = "theirs"
	_, err := c.Read(t.Context(), s, putRun(t, s, train, tinyFiles(starter.First, 16)))
	require.ErrorIs(t, err, spec.ErrNotLinked)
	require.ErrorContains(t, err, `run r: credit.algorithm "theirs" is not linked into this program, which has: `)
	require.Empty(t, KindOf(err), "it is tried again: another worker may have it")
}

// A context or a model that is used is kept, and the one that was used longest ago goes.
func TestContextsAreBounded(t *testing.T) {
	s := store.NewMemory()
	var c Contexts
	train := decoded(t, `{"environment": {"name": "bandit"}}`)
	read := func(seed uint64, files map[string][]byte) *Context {
		train.Seed = seed
		rc, err := c.Read(t.Context(), s, putRun(t, s, train, files))
		require.NoError(t, err)
		return rc
	}
	files := tinyFiles(starter.First, 16)
	first, second := read(0, files), read(1, files)
	for seed := uint64(2); seed < MaxContexts; seed++ {
		read(seed, files)
	}
	require.Equal(t, 256, c.Len())
	require.Same(t, first, read(0, files))
	read(256, files)
	require.Equal(t, 256, c.Len())
	require.Same(t, first, read(0, files), "it was used")
	require.NotSame(t, second, read(1, files), "it was not")
	for n := range 9 {
		read(0, tinyFiles(starter.First, 32+4*n))
	}
	require.Len(t, c.models.values, 8)
}

// countingStore counts the openings of an artifact, and may wait at them or fail.
type countingStore struct {
	*store.Memory
	opened atomic.Int64
	wait   chan struct{}
	fail   error
}

func (c *countingStore) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	c.opened.Add(1)
	if c.wait != nil {
		select {
		case <-c.wait:
		case <-ctx.Done():
			return nil, store.Object{}, ctx.Err()
		}
	}
	if c.fail != nil {
		return nil, store.Object{}, c.fail
	}
	return c.Memory.Open(ctx, key, offset)
}

// Calls that miss the same context read it once, and a failure is not kept.
func TestContextsReadOnce(t *testing.T) {
	s := &countingStore{Memory: store.NewMemory()}
	run := putRun(t, s, decoded(t, `{"environment": {"name": "bandit"}}`), tinyFiles(starter.First, 16))
	s.fail = fmt.Errorf("no route: %w", store.ErrUnavailable)
	var c Contexts
	_, err := c.Read(t.Context(), s, run)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Zero(t, c.Len())
	s.fail = nil
	s.opened.Store(0)
	_, err = c.Read(t.Context(), s, run)
	require.NoError(t, err)
	files := s.opened.Load()
	_, err = c.Read(t.Context(), s, run)
	require.NoError(t, err)
	require.Equal(t, files, s.opened.Load())

	c = Contexts{}
	s.opened.Store(0)
	s.wait = make(chan struct{})
	var wg sync.WaitGroup
	got := make([]*Context, 8)
	errs := make([]error, 8)
	for i := range got {
		wg.Go(func() { got[i], errs[i] = c.Read(t.Context(), s, run) })
	}
	require.Eventually(t, func() bool { return s.opened.Load() == 1 }, 5*time.Second, time.Millisecond)
	close(s.wait)
	wg.Wait()
	for i := range got {
		require.NoError(t, errs[i])
		require.Same(t, got[0], got[i])
	}
	require.Equal(t, files, s.opened.Load())
}

// A call whose reader was ended reads by itself; one that is ended itself says so.
func TestContextsOutliveTheirReader(t *testing.T) {
	s := &countingStore{Memory: store.NewMemory()}
	run := putRun(t, s, decoded(t, `{"environment": {"name": "bandit"}}`), tinyFiles(starter.First, 16))
	s.wait = make(chan struct{})
	var c Contexts
	ended, end := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Read(ended, s, run)
		first <- err
	}()
	require.Eventually(t, func() bool { return s.opened.Load() == 1 }, 5*time.Second, time.Millisecond)
	go func() {
		_, err := c.Read(t.Context(), s, run)
		second <- err
	}()
	end()
	require.ErrorIs(t, <-first, context.Canceled)
	close(s.wait)
	require.NoError(t, <-second)
	require.Equal(t, 1, c.Len())
}

// What cannot be read says of what it is.
func TestContextsThatCannotBeRead(t *testing.T) {
	s := store.NewMemory()
	run := putRun(t, s, decoded(t, `{"environment": {"name": "bandit"}}`), tinyFiles(starter.First, 16))
	text, err := store.PutArtifact(t.Context(), s, "runs/r", "spec", "json", []byte("[]"))
	require.NoError(t, err)
	var c Contexts
	for says, change := range map[string]func(*activities.Run){
		"resolved spec: ":           func(r *activities.Run) { r.Spec.Key, r.Spec.Digest = "runs/r/nothing", text.Digest },
		"resolved spec " + text.Key: func(r *activities.Run) { r.Spec = text },
		"model index: ":             func(r *activities.Run) { r.Base.Key, r.Base.Digest = "models/nothing", text.Digest },
		"model index " + text.Key:   func(r *activities.Run) { r.Base = text },
	} {
		bad := run
		change(&bad)
		_, err := c.Read(t.Context(), s, bad)
		require.ErrorContains(t, err, says)
	}
	for says, change := range map[string]func(map[string][]byte){
		"config.json: ": func(f map[string][]byte) { f[model.ConfigFile] = []byte("{}") },
		"tokenizer: ":   func(f map[string][]byte) { delete(f, "tokenizer.json") },
	} {
		files := tinyFiles(starter.First, 16)
		change(files)
		_, err := c.Read(t.Context(), s, putRun(t, s, decoded(t, `{"environment": {"name": "bandit"}}`), files))
		require.ErrorIs(t, err, activities.ErrModelInvalid)
		require.ErrorContains(t, err, "base model of run r: "+says)
	}
	_, err = NewBaseModel(func() map[string][]byte {
		files := tinyFiles(starter.Second, 16)
		files[model.ConfigFile] = tinyFiles(starter.First, 16)[model.ConfigFile]
		return files
	}())
	require.ErrorIs(t, err, activities.ErrModelInvalid, "more ids than the model has")
}

// A run's own adapters and variables are in its context alone; the base model that runs share stays as it is.
func TestNewContext(t *testing.T) {
	base, err := NewBaseModel(tinyFiles(starter.First, 16))
	require.NoError(t, err)
	train := decoded(t, `{"environment": {"name": "bandit"}, "rewards": [{"name": "length"}, {"name": "first_attempt"}],
		"evaluation": {"suites": [{"name": "one", "suite": "in-distribution"}, {"name": "two", "suite": "in-distribution", "instances": 4}]}}`)
	rc, err := NewContext(train, base)
	require.NoError(t, err)
	require.Same(t, base, rc.BaseModel)
	require.Equal(t, []string{"length", "first_attempt"}, []string{rc.Modules[0].Name, rc.Modules[1].Name})
	require.Len(t, rc.Suites, 2)
	require.Equal(t, []string{"one", "two"}, []string{rc.Suites[0].Suite.Name, rc.Suites[1].Suite.Name})
	require.Nil(t, rc.Training.Suite)

	lora := train
	lora.Policy.LoRA = &spec.LoRA{Rank: 4, Alpha: 8, Targets: []string{"q_proj", "v_proj"}, Seed: 9}
	adapted, err := NewContext(lora, base)
	require.NoError(t, err)
	require.NotSame(t, base, adapted.BaseModel)
	require.Equal(t, []string{"q_proj", "v_proj"}, adapted.Config.LoRA.Targets.Names())
	require.Equal(t, []int{4, 0}, []int{adapted.Config.LoRA.Rank, base.Config.LoRA.Rank})
	require.Same(t, base.Tokenizer, adapted.Tokenizer)
	require.Equal(t, draw.Address{Seed: 9, Purpose: draw.LoRA}, adapted.AdaptersAt())

	variables := train
	variables.Policy.ChatTemplateKwargs = []byte(`{"x":1}`)
	other, err := NewContext(variables, base)
	require.NoError(t, err)
	require.NotSame(t, base.Tokenizer, other.Tokenizer)
	require.NotSame(t, base, other.BaseModel)
	require.Zero(t, other.Config.LoRA.Rank)

	for says, change := range map[string]func(*spec.Train){
		"policy.chat_template_kwargs: ": func(t *spec.Train) { t.Policy.ChatTemplateKwargs = []byte(`[]`) },
		"policy.lora: ":                 func(t *spec.Train) { t.Policy.LoRA = &spec.LoRA{Rank: 4, Alpha: 8, Targets: []string{"no_proj"}} },
		"environment nowhere: ":         func(t *spec.Train) { t.Environment = spec.Environment{Name: "nowhere"} },
		"reward luck: ":                 func(t *spec.Train) { t.Rewards = []spec.Reward{{Name: "luck"}} },
		"reward length: ":               func(t *spec.Train) { t.Rewards = []spec.Reward{{Name: "length", Options: []byte(`{"of":"x"}`)}} },
		"suite two: environment ": func(t *spec.Train) {
			t.Evaluation.Suites = append([]spec.Suite{}, t.Evaluation.Suites...)
			t.Evaluation.Suites[1].Environment = spec.Environment{Name: "nowhere"}
		},
	} {
		bad := train
		change(&bad)
		_, err := NewContext(bad, base)
		require.ErrorContains(t, err, says)
	}
}

// The sizes of a model that follow from its configuration: each of its own field.
func TestShapeOf(t *testing.T) {
	c := model.Config{Layers: 2, HiddenSize: 3, IntermediateSize: 4, Heads: 5, KVHeads: 6, HeadDim: 7, VocabSize: 8, TieEmbeddings: true}
	want := cost.Network{Layers: 2, HiddenSize: 3, IntermediateSize: 4, Heads: 5, KVHeads: 6, HeadDim: 7, VocabSize: 8, Tied: true}
	require.Equal(t, want, ShapeOf(c))
	want.Tied = false
	for family, of := range map[model.Family][2]bool{model.Qwen2: {false, false}, model.Qwen3: {true, true}, model.Llama: {true, false}} {
		c.Family, c.TieEmbeddings = family, false
		want.Unbiased, want.HeadNorms = of[0], of[1]
		require.Equal(t, want, ShapeOf(c), "%v", family)
	}
}

// A run's spec.json is read if it is there.
func TestWrittenSpec(t *testing.T) {
	s := store.NewMemory()
	train, ref, err := WrittenSpec(t.Context(), s, "r")
	require.NoError(t, err)
	require.Nil(t, train)
	require.Equal(t, store.Ref{}, ref)
	want := decoded(t, `{"seed": 7, "environment": {"name": "bandit"}}`)
	b, err := want.JSON()
	require.NoError(t, err)
	written, err := store.Commit(t.Context(), s, store.SpecKey("r"), b)
	require.NoError(t, err)
	train, ref, err = WrittenSpec(t.Context(), s, "r")
	require.NoError(t, err)
	require.Equal(t, written, ref)
	require.EqualValues(t, 7, train.Seed)
	train, _, err = WrittenSpec(t.Context(), s, "r2")
	require.NoError(t, err)
	require.Nil(t, train)
	_, err = store.Commit(t.Context(), s, store.SpecKey("bad"), []byte("[]"))
	require.NoError(t, err)
	_, _, err = WrittenSpec(t.Context(), s, "bad")
	require.ErrorContains(t, err, s.Location(store.SpecKey("bad")))
	failing := &countingStore{Memory: s, fail: errors.New("no route")}
	_, _, err = WrittenSpec(t.Context(), failing, "r")
	require.ErrorContains(t, err, "no route", "a store that fails has not said that there is none")
}
