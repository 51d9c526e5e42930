package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

var removedAt = time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC)

// runIn writes a run of n committed iterations, the first of which follows parent if there is one, and gives its last manifest.
func runIn(t *testing.T, s store.Store, id, spec string, first, n int, parent *store.Ref, model string) *store.Ref {
	t.Helper()
	ctx := context.Background()
	ref, err := store.Commit(ctx, s, store.SpecKey(id), []byte(spec))
	require.NoError(t, err)
	base, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{{Name: "model.safetensors", Body: []byte(model)}})
	require.NoError(t, err)
	for i := first; i < first+n; i++ {
		m := &store.Manifest{
			Run: id, Iteration: i, Parent: parent, Spec: ref, Base: store.ModelRef{Name: "m", Dir: base.Dir, Digest: base.Digest, Files: base.Files},
			Fingerprint: "cpu", StateBefore: fmt.Sprint("s", i), StateAfter: fmt.Sprint("s", i+1),
		}
		m.Settings, m.SettingsDigest, err = store.NewSettings(map[string]any{})
		require.NoError(t, err)
		batch, err := store.PutArtifact(ctx, s, store.IterationDir(id, 0, i), "batch", "safetensors", fmt.Appendf(nil, "%s %d", id, i))
		require.NoError(t, err)
		m.Batch = &batch
		head, err := store.CommitManifest(ctx, s, m)
		require.NoError(t, err)
		parent = &head
	}
	return parent
}

func plan(t *testing.T, s store.Store, id string) Removal {
	t.Helper()
	r, err := PlanRemoval(t.Context(), s, id, nil, nil)
	require.NoError(t, err)
	return r
}

// held is all that a store has: bodies by key.
func held(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for o, err := range s.List(context.Background(), "") {
		require.NoError(t, err)
		b, _, err := store.ReadFixed(context.Background(), s, o.Key, 1<<20)
		require.NoError(t, err)
		out[o.Key] = string(b)
	}
	return out
}

// A teacher or a judge is removed with the last run that it scored or judged, as a base model with the last that began with it.
func TestRemoveWhatIsBesidePolicies(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	teacher, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{{Name: "model.safetensors", Body: []byte("teacher")}})
	require.NoError(t, err)
	judge, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{{Name: "model.safetensors", Body: []byte("judge")}})
	require.NoError(t, err)
	for _, id := range []string{"one", "two"} {
		head := runIn(t, s, id, "{}", 0, 1, nil, "base of "+id)
		m, err := store.ReadManifest(ctx, s, *head)
		require.NoError(t, err)
		require.NoError(t, s.Delete(ctx, head.Key))
		m.Teacher = &store.ModelRef{Name: "folder:t", Dir: teacher.Dir, Digest: teacher.Digest, Files: teacher.Files}
		m.Judge = &store.ModelRef{Name: "folder:j", Dir: judge.Dir, Digest: judge.Digest, Files: judge.Files}
		_, err = store.CommitManifest(ctx, s, m)
		require.NoError(t, err)
	}
	both, err := modelsOf(ctx, s, who{runs: map[string]bool{"one": true, "two": true}})
	require.NoError(t, err)
	require.Contains(t, both, teacher.Dir)
	require.Contains(t, both, judge.Dir)
	require.Len(t, both, 4)
	one, err := modelsOf(ctx, s, who{runs: map[string]bool{"one": true}})
	require.NoError(t, err)
	require.NotContains(t, one, teacher.Dir)
	require.NotContains(t, one, judge.Dir)
	require.Len(t, one, 1)

	// A trial that has not begun yet names its teacher and its judge in its spec.
	names := modelNames{dirs: map[string]bool{}}
	names.origin([]byte(`{"policy":{"from":"model:0123456789ab"},"teacher":{"from":"model:ba9876543210"},
		"rewards":[{"name":"judge","options":{"judge":"model:aaaaaaaaaaaa"}}]}`))
	require.Equal(t, map[string]bool{"models/0123456789ab": true, "models/ba9876543210": true, "models/aaaaaaaaaaaa": true}, names.dirs)
}

// A sweep with two trials, beside a run and a model that they share.
func sweepIn(t *testing.T) *store.Memory {
	s := store.NewMemory()
	define(t, s, "fig", nil, "1", "2", "not begun")
	define(t, s, "fig", nil, "1", "2")
	put(t, s, store.SweepDir("fig")+"/table.x.json", 9)
	put(t, s, store.SweepReportDir("fig")+"/index.html", 9)
	runIn(t, s, "fig/1", "{}", 0, 2, nil, "shared")
	runIn(t, s, "fig/2", "{}", 0, 1, nil, "alone")
	put(t, s, store.TelemetryDir("fig/2")+"/b0/000000.json", 9)
	runIn(t, s, "other", "{}", 0, 1, nil, "shared")
	return s
}

func TestRemove(t *testing.T) {
	s := sweepIn(t)
	before := held(t, s)
	r := plan(t, s, "fig")
	require.Empty(t, r.Refused)
	require.Equal(t, "sweep", r.What)
	require.Len(t, r.Models, 1, "the model that the other run does not have")
	require.Equal(t, Size{Objects: 2 + 2 + 5 + 4, Bytes: r.Bytes}, r.Left())
	require.Equal(t, before, held(t, s), "a plan writes nothing")

	gone := 0
	require.NoError(t, Remove(t.Context(), s, r, removedAt, nil, func(n int) { gone = n }))
	require.Equal(t, r.Objects, gone)
	after := held(t, s)
	for key, body := range after {
		if strings.HasSuffix(key, "/removed.json") {
			require.NotContains(t, before, key)
			continue
		}
		require.Equal(t, before[key], body)
		require.False(t, strings.HasPrefix(key, "sweeps/fig/") || strings.HasPrefix(key, "runs/fig"), key)
	}
	for key := range before {
		if strings.HasPrefix(key, "models/") || strings.HasPrefix(key, "runs/other/") {
			require.Contains(t, after, key, "shared, and another's")
		}
	}
	for id, dir := range map[string]string{"fig": store.SweepDir("fig"), "fig/1": store.RunDir("fig/1"), "fig/2": store.RunDir("fig/2")} {
		m, err := store.ReadRemoved(t.Context(), s, dir)
		require.NoError(t, err)
		require.Equal(t, id, m.ID)
		require.Equal(t, removedAt, m.At)
		require.ErrorIs(t, store.RefuseRemoved(t.Context(), s, id), store.ErrRemoved)
	}
	m, err := store.ReadRemoved(t.Context(), s, store.RunDir("fig/1"))
	require.NoError(t, err)
	require.Equal(t, "fig", m.Sweep)
	require.Len(t, m.Heads, 1)
	require.Equal(t, []any{0, 1, "s2", 5}, []any{m.Heads[0].Branch, m.Heads[0].Iteration, m.Heads[0].State, m.Objects})
	_, err = store.ReadRemoved(t.Context(), s, store.RunDir("fig/not begun"))
	require.NoError(t, err)

	again := plan(t, s, "fig")
	require.Equal(t, Size{}, again.Left())
	require.Equal(t, removedAt, again.Begun.At)
	// What a slow worker has written since goes by another rm.
	put(t, s, store.IterationDir("fig/1", 0, 9)+"/scores.x", 4)
	late := plan(t, s, "fig/1")
	require.Equal(t, Size{Objects: 1, Bytes: 4}, late.Left())
	require.NoError(t, Remove(t.Context(), s, late, removedAt.Add(time.Hour), nil, func(int) {}))
	require.Equal(t, after, held(t, s))
}

// failing fails at its k-th call, and then at all: its process was killed.
type failing struct {
	store.Store
	mu   sync.Mutex
	left int
}

var errKilled = errors.New("killed")

func (f *failing) call() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left < 0 {
		return errKilled
	}
	return nil
}

func (f *failing) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	if err := f.call(); err != nil {
		return err
	}
	return f.Store.Put(ctx, key, body, opts)
}

func (f *failing) Delete(ctx context.Context, key string) error {
	if err := f.call(); err != nil {
		return err
	}
	return f.Store.Delete(ctx, key)
}

func (f *failing) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if err := f.call(); err != nil {
		return nil, store.Object{}, err
	}
	return f.Store.Open(ctx, key, offset)
}

func (f *failing) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if err := f.call(); err != nil {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, err) }
	}
	return f.Store.List(ctx, prefix)
}

// A removal that is killed at any call and repeated, once or at each call again, ends with the bytes of one that is not; and
// before the first object is gone, the id is used up.
func TestRemoveKilledAnywhere(t *testing.T) {
	base := sweepIn(t)
	undisturbed := store.NewOverlay(base)
	require.NoError(t, Remove(t.Context(), undisturbed, plan(t, undisturbed, "fig"), removedAt, nil, func(int) {}))
	want := held(t, undisturbed)
	all := held(t, base)
	killed := 0
	for k := 0; ; k++ {
		s := store.NewOverlay(base)
		err := Remove(t.Context(), &failing{Store: s, left: k}, plan(t, s, "fig"), removedAt, nil, func(int) {})
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errKilled)
		killed++
		have := held(t, s)
		for key := range all {
			if _, there := have[key]; !there {
				for _, id := range []string{"fig", "fig/1", "fig/2"} {
					require.ErrorIs(t, store.RefuseRemoved(t.Context(), s, id), store.ErrRemoved, "%s is gone after %d calls", key, k)
				}
			}
		}
		later := removedAt.Add(time.Hour)
		if len(have) == len(all) && have["sweeps/fig/removed.json"] == "" {
			later = removedAt // it had not begun: the second one is the first
		}
		require.NoError(t, Remove(t.Context(), s, plan(t, s, "fig"), later, nil, func(int) {}))
		require.Equal(t, want, held(t, s), "killed after %d calls", k)
	}
	require.Greater(t, killed, 20)

	s := store.NewOverlay(base)
	for k := 1; ; k++ {
		err := Remove(t.Context(), &failing{Store: s, left: k}, plan(t, s, "fig"), removedAt, nil, func(int) {})
		if err == nil {
			break
		}
	}
	require.Equal(t, want, held(t, s), "killed again and again")
}

// uploading is a bucket with multipart uploads that never ended.
type uploading struct {
	store.Store
	uploads []store.Upload
}

func (u *uploading) Uploads(_ context.Context, prefix string) iter.Seq2[store.Upload, error] {
	return func(yield func(store.Upload, error) bool) {
		for _, one := range slices.Clone(u.uploads) {
			if strings.HasPrefix(one.Key, prefix) && !yield(one, nil) {
				return
			}
		}
	}
}

func (u *uploading) AbortUpload(_ context.Context, gone store.Upload) error {
	u.uploads = slices.DeleteFunc(u.uploads, func(one store.Upload) bool { return one == gone })
	return nil
}

// What was being sent goes too, also when nothing else is left; another run's stays.
func TestRemoveAbortsUploads(t *testing.T) {
	s := &uploading{Store: store.NewMemory(), uploads: []store.Upload{{Key: "runs/r/b0/snapshots/1", ID: "1"}, {Key: "runs/r2/b0/snapshots/1", ID: "2"}}}
	runIn(t, s, "r", "{}", 0, 1, nil, "m")
	r := plan(t, s, "r")
	require.Equal(t, 1, r.Uploads)
	require.NoError(t, Remove(t.Context(), s, r, removedAt, nil, func(int) {}))
	require.Equal(t, []store.Upload{{Key: "runs/r2/b0/snapshots/1", ID: "2"}}, s.uploads)
	s.uploads = append(s.uploads, store.Upload{Key: "runs/r/b0/snapshots/2", ID: "3"})
	r = plan(t, s, "r")
	require.Equal(t, []int{0, 1}, []int{r.Left().Objects, r.Uploads})
	require.NoError(t, Remove(t.Context(), s, r, removedAt, nil, func(int) {}))
	require.Len(t, s.uploads, 1)
}

// Whoever names a run keeps it, and its error says who.
func TestRemoveRefuses(t *testing.T) {
	s := store.NewMemory()
	grand := runIn(t, s, "grand", "{}", 0, 3, nil, "m")
	parent := runIn(t, s, "parent", `{"from":{"run":"grand","iteration":2}}`, 3, 1, grand, "m")
	// It was forked at an iteration of grand's, and names its fork.
	runIn(t, s, "child", `{"from":{"run":"parent","iteration":2}}`, 3, 1, grand, "m")
	lost := runIn(t, s, "lost", `{"from":{"run":"parent","iteration":3}}`, 4, 1, parent, "m")
	require.NoError(t, s.Delete(t.Context(), store.SpecKey("lost")))
	_, err := store.PutArtifact(t.Context(), s, store.ApartDir("eval"), store.MeasuredName, "json", []byte(`{"run":"lost","state":"s","version":5}`))
	require.NoError(t, err)
	define(t, s, "fig", map[string]string{"1": `{"from":{"run":"parent","iteration":3}}`}, "1")
	runIn(t, s, "fig/1", "{}", 0, 1, nil, "m")
	runIn(t, s, "free", `{"from":{"run":"lost","iteration":4}}`, 5, 1, lost, "m")

	for id, want := range map[string][]string{
		"grand": {`run "child" was forked from it (reprise rm child)`, `run "parent" was forked from it (reprise rm parent)`},
		"parent": {`run "child" was forked from it (reprise rm child)`, `run "lost" was forked from it (reprise rm lost)`,
			`trials of sweep "fig" are forked from it (reprise rm fig, which removes its trials too)`},
		"lost":  {`evaluation "eval" measures it (reprise rm eval)`, `run "free" was forked from it (reprise rm free)`},
		"fig/1": {`it is a trial of sweep "fig" (reprise rm fig, which removes its trials too)`},
		"fig":   nil, "eval": nil, "child": nil, "free": nil,
	} {
		r := plan(t, s, id)
		require.Equal(t, want, r.Refused, id)
		require.Empty(t, r.Models, "all have one model")
		if want != nil {
			require.ErrorIs(t, Remove(t.Context(), s, r, removedAt, nil, nil), ErrRefused)
		}
	}
	_, err = PlanRemoval(t.Context(), s, "nobody", nil, nil)
	require.ErrorIs(t, err, store.ErrNotFound)

	// A fork of a trial keeps the sweep.
	runIn(t, s, "late", `{"from":{"run":"fig/1","iteration":0}}`, 1, 1, headOf(t, s, "fig/1"), "m")
	require.Equal(t, []string{`trial "fig/1": run "late" was forked from it (reprise rm late)`}, plan(t, s, "fig").Refused)

	open := func(_ context.Context, ids []string) ([]string, error) {
		require.Equal(t, []string{"fig/1", "fig"}, ids)
		return ids[:1], nil
	}
	r, err := PlanRemoval(t.Context(), s, "fig", open, nil)
	require.NoError(t, err)
	require.Equal(t, `workflow "fig/1" is open: temporal workflow cancel -w fig/1`, r.Refused[0])
}

// headOf is the newest manifest of a run.
func headOf(t *testing.T, s store.Store, run string) *store.Ref {
	head, err := store.Head(t.Context(), s, run)
	require.NoError(t, err)
	return &head.Ref
}

// racing is a bucket in which a fork is started while its run is being marked.
type racing struct {
	store.Store
	fork func()
}

func (r *racing) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	if strings.HasSuffix(key, "/removed.json") {
		r.fork()
	}
	return r.Store.Put(ctx, key, body, opts)
}

// What comes between the plan and the marker is seen after it: nothing is deleted, and the id is as before.
func TestRemoveLosesRace(t *testing.T) {
	s := store.NewMemory()
	runIn(t, s, "r", "{}", 0, 2, nil, "m")
	r := plan(t, s, "r")
	before := held(t, s)
	forking := &racing{s, func() {
		require.NoError(t, s.Put(t.Context(), store.SpecKey("fork"), []byte(`{"from":{"run":"r"}}`), store.PutOptions{}))
	}}
	err := Remove(t.Context(), forking, r, removedAt, nil, nil)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, `run "fork" was forked from it`)
	after := held(t, s)
	delete(after, store.SpecKey("fork"))
	require.Equal(t, before, after)

	require.NoError(t, s.Delete(t.Context(), store.SpecKey("fork")))
	calls := 0
	opens := func(_ context.Context, ids []string) ([]string, error) {
		calls++
		return ids[:calls-1], nil // open at the second look
	}
	r, err = PlanRemoval(t.Context(), s, "r", opens, nil)
	require.NoError(t, err)
	err = Remove(t.Context(), s, r, removedAt, opens, nil)
	require.ErrorContains(t, err, `workflow "r" is open`)
	require.NoError(t, store.RefuseRemoved(t.Context(), s, "r"))
}

// The definitions of a sweep go last, and no step deletes a marker.
func TestOrder(t *testing.T) {
	steps := order([]part{{dir: "runs/s%2F1", what: OfRun}, {dir: "sweeps/s", what: OfSweep}})
	require.Equal(t, []step{{dir: "runs/s%2F1"}, {dir: "sweeps/s", later: "definition."}, {dir: "sweeps/s"}}, steps)
	taken := func(st step) (out []string) {
		for _, key := range []string{"removed.json", "definition.x.json", "table.x.json", "report/removed.json"} {
			if st.takes(st.dir + "/" + key) {
				out = append(out, key)
			}
		}
		return out
	}
	require.Equal(t, []string{"table.x.json", "report/removed.json"}, taken(steps[1]))
	require.Equal(t, []string{"definition.x.json", "table.x.json", "report/removed.json"}, taken(steps[2]))
	require.False(t, slices.ContainsFunc(steps, func(st step) bool { return st.takes(st.dir + "/removed.json") }))
}
