package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// chain commits manifests, each the child of the one before.
type chain struct {
	t     *testing.T
	store store.Store
	last  *store.Manifest
	head  *store.Ref
}

// put stores an artifact of its own.
func (c *chain) put(what string) store.Ref {
	ref, err := store.PutArtifact(c.t.Context(), c.store, "runs/r", "part", "bin", []byte(what))
	require.NoError(c.t, err)
	return ref
}

// commit adds an iteration; with changes the manifest before it is sealed.
func (c *chain) commit(run string, branch int, change func(*store.Manifest)) store.Ref {
	c.t.Helper()
	spare := c.put("spare")
	m := &store.Manifest{
		Run: run, Branch: branch, Parent: c.head, Spec: c.put("spec of " + run), Base: store.ModelRef{Dir: "models/a", Digest: spare.Digest, Files: map[string]store.Ref{"model": spare}},
		Fingerprint: "f00d", StateBefore: "s0",
	}
	if c.last != nil {
		m.Iteration, m.StateBefore = c.last.Iteration+1, c.last.StateAfter
	}
	m.StateAfter = fmt.Sprintf("s%d of %s, b%d", m.Iteration+1, run, branch)
	var settings spec.Settings
	settings.Update.LearningRate = float64(m.Iteration) + float64(branch)/8
	var err error
	m.Settings, m.SettingsDigest, err = store.NewSettings(settings)
	require.NoError(c.t, err)
	if change != nil {
		change(m)
	}
	ref, err := store.CommitManifest(c.t.Context(), c.store, m)
	require.NoError(c.t, err)
	c.last, c.head = m, &ref
	return ref
}

// batch gives a manifest a batch of its own.
func (c *chain) batch(m *store.Manifest) {
	ref := c.put(fmt.Sprintf("batch %d of branch %d of %s", m.Iteration, m.Branch, m.Run))
	m.Batch = &ref
}

// A replay buffer draws from the newest batches of the run itself, along its branches. An iteration without a batch is
// passed over.
func TestRecentBatches(t *testing.T) {
	s := store.NewMemory()
	c := &chain{t: t, store: s}
	batches := map[string]store.Ref{}
	commit := func(run string, branch int, with bool) store.Ref {
		return c.commit(run, branch, func(m *store.Manifest) {
			if with {
				c.batch(m)
				batches[fmt.Sprintf("%s/b%d/%d", run, m.Branch, m.Iteration)] = *m.Batch
			}
		})
	}
	commit("a", 0, true)
	commit("a", 0, true)
	commit("r", 0, true) // forked from the other run
	fork := commit("r", 0, true)
	last := *c.last
	commit("r", 0, true) // a branch that was left
	c.head, c.last = &fork, &last
	commit("r", 1, false)
	head := commit("r", 1, true)
	require.Len(t, batches, 6)
	want := []store.Ref{batches["r/b1/5"], batches["r/b0/3"], batches["r/b0/2"]}
	for most := range 5 {
		got, err := RecentBatches(t.Context(), s, "r", &head, most)
		require.NoError(t, err)
		require.Equal(t, want[:min(most, 3)], append([]store.Ref{}, got...), "at most %d", most)
	}
	got, err := RecentBatches(t.Context(), s, "r", nil, 3)
	require.NoError(t, err)
	require.Nil(t, got)
	gone := head
	gone.Key = "runs/r/b9/iterations/000009/manifest.json"
	_, err = RecentBatches(t.Context(), s, "r", &gone, 3)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// The head of a run is its newest branch's newest iteration, or a version on that branch's way back.
func TestFindHead(t *testing.T) {
	methodstest.Needs(t, "pivots") // whose table it carries
	s := store.NewMemory()
	c := &chain{t: t, store: s}
	head, err := FindHead(t.Context(), s, "r", nil)
	require.NoError(t, err)
	require.Nil(t, head, "nothing is committed")

	snapshot := func(m *store.Manifest) {
		m.Snapshot = &store.SnapshotRef{Version: m.Version(), Dir: "runs/r", State: m.StateAfter, Files: map[string]store.Ref{"model": c.put(m.StateAfter)}}
	}
	evaluated := func(m *store.Manifest, version int, suites ...string) {
		for _, name := range suites {
			m.Evaluations = append(m.Evaluations, store.EvaluationRef{Version: version, Suite: name, Turns: []store.TurnRefs{{Generate: c.put("g"), Step: c.put("s")}}})
		}
	}
	passes := func(m *store.Manifest, n int) {
		for i := range n {
			m.Passes = append(m.Passes, store.Pass{Batch: c.put("pass"), State: fmt.Sprint("pass ", i)})
		}
		m.Passes[n-1].State = m.StateAfter
	}
	part := func(name string) map[string]store.Ref {
		return map[string]store.Ref{"states": c.put("states " + name), "texts": c.put("texts " + name), "pivots": c.put("pivots " + name), "reference": c.put("reference " + name)}
	}
	// Another run, which the run continues: its evaluations are not the run's.
	c.commit("a", 0, func(m *store.Manifest) { snapshot(m); evaluated(m, 1, "theirs") })
	c.commit("r", 0, func(m *store.Manifest) { passes(m, 3); evaluated(m, 2, "first", "second"); m.Artifacts = part("1") })
	fork := c.commit("r", 0, func(m *store.Manifest) { snapshot(m); evaluated(m, 3, "first", "second") })
	last := *c.last
	c.commit("r", 0, nil)
	left := c.commit("r", 0, nil) // a branch that was left is longer
	c.head, c.last = &fork, &last
	c.commit("r", 1, func(m *store.Manifest) { passes(m, 2); evaluated(m, 4, "first", "second"); m.Artifacts = part("3") })
	detected := func(m *store.Manifest) {
		var err error
		m.Detected, err = Canonical(activities.Detected{})
		require.NoError(t, err)
		passes(m, 4)
		m.Metrics = activities.Metrics{"a": 1}
		m.Programs = map[string]string{"score": "p"}
		rolled := store.RolloutRef{Branch: 1, Iteration: m.Iteration, Updates: 2, Rows: []int{1, 2}}
		m.Rollout = &rolled
		ref := c.put("trajectories")
		m.Trajectories = &ref
	}
	end := c.commit("r", 1, detected)

	head, err = FindHead(t.Context(), s, "r", nil)
	require.NoError(t, err)
	require.Equal(t, end, head.Manifest)
	require.Equal(t, []int{1, 4, 3, 1 + 3}, []int{head.Branch, head.Iteration, head.Snapshot, head.Passes}, "the passes since the snapshot, beside an iteration's own")
	require.Equal(t, "s5 of r, b1", head.State)
	require.Equal(t, 4.125, head.Settings.Update.LearningRate)
	require.Equal(t, []any{4, "first", 2, "first"}, []any{head.Last.Version, head.Last.Suite, head.First.Version, head.First.Suite})
	require.Nil(t, head.Last.Turns)
	require.NotNil(t, head.Detected)
	require.Equal(t, activities.Metrics{"a": 1}, head.Metrics)
	require.Equal(t, map[string]string{"score": "p"}, head.Programs)
	require.Equal(t, "f00d", head.Fingerprint)
	require.Equal(t, 1, head.Rolled.Update)
	require.Nil(t, head.Tables, "the newest manifest has none")

	version := func(n int) *int { return &n }
	head, err = FindHead(t.Context(), s, "r", version(4))
	require.NoError(t, err)
	require.Equal(t, []int{1, 3, 3, 1}, []int{head.Branch, head.Iteration, head.Snapshot, head.Passes})
	require.Equal(t, []int{4, 2}, []int{head.Last.Version, head.First.Version})
	require.Equal(t, "first", head.Last.Suite)
	require.Equal(t, activities.Tables(part("3")), head.Tables)
	require.Nil(t, head.Detected)
	require.Nil(t, head.Rolled)
	head, err = FindHead(t.Context(), s, "r", version(3))
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 3, 0}, []int{head.Branch, head.Iteration, head.Snapshot, head.Passes})
	require.Equal(t, fork, head.Manifest)
	head, err = FindHead(t.Context(), s, "r", version(2))
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1, 2}, []int{head.Branch, head.Iteration, head.Snapshot, head.Passes})
	head, err = FindHead(t.Context(), s, "r", version(1))
	require.NoError(t, err)
	require.Equal(t, "s1 of a, b0", head.State)
	require.Nil(t, head.Last, "another run's evaluations")
	_, err = FindHead(t.Context(), s, "r", version(6))
	require.ErrorIs(t, err, activities.ErrNotFound)
	require.ErrorContains(t, err, "version 6 of run r is not committed; the newest is 5")

	// On the way of another end.
	head, err = FindHeadOf(t.Context(), s, "r", nil, &left)
	require.NoError(t, err)
	require.Equal(t, []int{0, 4}, []int{head.Branch, head.Iteration})
	require.Equal(t, []int{3, 2}, []int{head.Last.Version, head.First.Version})
	head, err = FindHeadOf(t.Context(), s, "r", version(4), &left)
	require.NoError(t, err)
	require.Equal(t, "s4 of r, b0", head.State)
}
