package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// Each condition under which a manifest may name another as its parent, one at a
// time: the pair just inside it and the pair just outside.
func TestFollows(t *testing.T) {
	spec := store.Ref{Key: "runs/a/spec.json", Digest: strings.Repeat("1", 64), Size: 10}
	digest, size, key := spec, spec, spec
	digest.Digest, size.Size, key.Key = strings.Repeat("2", 64), 11, "runs/b/spec.json"
	parent := store.Manifest{Run: "a", Branch: 2, Iteration: 6, Spec: spec, StateBefore: "6", StateAfter: "7",
		Base: store.ModelRef{Name: "starter", Dir: "models/1", Digest: strings.Repeat("3", 64), State: "0"}}
	child := parent
	child.Iteration, child.StateBefore, child.StateAfter = 7, "7", "8"
	turns := []store.TurnRefs{{Generate: digest, Step: size}}
	made := func(m *store.Manifest) { m.NextRollout = &store.NextRollout{Turns: turns} }
	learns := func(m *store.Manifest) {
		m.Turns, m.RolledOutBy = []store.TurnRefs{{Generate: digest, Step: size, Verdicts: &key}}, &store.VersionRef{Version: 6, State: "6"}
	}
	for name, c := range map[string]struct {
		child, parent func(*store.Manifest)
		fails         string
	}{
		"the iteration before":           {},
		"a later branch":                 {child: func(m *store.Manifest) { m.Branch = 3 }},
		"another run, with its own spec": {child: func(m *store.Manifest) { m.Run, m.Branch, m.Spec = "b", 0, digest }},
		"the base model by another name": {child: func(m *store.Manifest) { m.Base.Name, m.Base.Dir = "hf:a/b", "models/2" }},
		"the same iteration":             {parent: func(m *store.Manifest) { m.Iteration = 7 }, fails: "its parent is iteration 7"},
		"two iterations before":          {parent: func(m *store.Manifest) { m.Iteration = 5 }, fails: "its parent is iteration 5"},
		"the iteration after":            {parent: func(m *store.Manifest) { m.Iteration = 8 }, fails: "its parent is iteration 8"},
		"another state":                  {child: func(m *store.Manifest) { m.StateBefore = "6" }, fails: "it began with state 6, its parent left 7"},
		"an earlier branch":              {child: func(m *store.Manifest) { m.Branch = 1 }, fails: "its parent is of the later branch 2"},
		"another spec":                   {child: func(m *store.Manifest) { m.Spec = digest }, fails: "its spec is " + digest.Digest + ", its parent's " + spec.Digest},
		"a spec of another size":         {child: func(m *store.Manifest) { m.Spec = size }, fails: "its spec is "},
		"a spec in another place":        {child: func(m *store.Manifest) { m.Spec = key }, fails: "its spec is "},
		"another spec in a later branch": {child: func(m *store.Manifest) { m.Branch, m.Spec = 3, digest }, fails: "its spec is "},
		"a branch that says so": {child: func(m *store.Manifest) {
			m.Branch, m.Spec, m.Opened = 3, digest, json.RawMessage(`{"spec":"`+spec.Digest+`"}`)
		}},
		"a branch that says so of another spec": {child: func(m *store.Manifest) {
			m.Branch, m.Spec, m.Opened = 3, digest, json.RawMessage(`{"spec":"`+digest.Digest+`"}`)
		}, fails: "its spec is "},
		"an iteration of the branch that says so": {child: func(m *store.Manifest) {
			m.Spec, m.Opened = digest, json.RawMessage(`{"spec":"`+spec.Digest+`"}`)
		}, fails: "its spec is "},
		"a branch that says it in no words": {child: func(m *store.Manifest) {
			m.Branch, m.Spec, m.Opened = 3, digest, json.RawMessage(`{"spec":7}`)
		}, fails: "its spec is "},
		"another base model":              {child: func(m *store.Manifest) { m.Base.Digest = digest.Digest }, fails: "its base model is " + digest.Digest},
		"another run's base model":        {child: func(m *store.Manifest) { m.Run, m.Base.Digest = "b", digest.Digest }, fails: "its base model is "},
		"another run's state":             {child: func(m *store.Manifest) { m.Run, m.StateBefore = "b", "6" }, fails: "it began with state 6"},
		"the parent's rollout":            {child: learns, parent: made},
		"a branch with its own rollout":   {child: func(m *store.Manifest) { m.Branch = 3 }, parent: made},
		"not the parent's rollout":        {parent: made, fails: "it does not learn from the rollout that its parent made for it"},
		"no rollout of the parent":        {child: learns, fails: "version 6 has rolled out, and its parent has no rollout for it"},
		"a branch with another's rollout": {child: func(m *store.Manifest) { learns(m); m.Branch = 3 }, parent: made, fails: "its parent has no rollout for it"},
		"a rollout of another state":      {child: func(m *store.Manifest) { learns(m); m.RolledOutBy.State = "7" }, parent: made, fails: "state 7 has rolled out"},
		"other turns":                     {child: func(m *store.Manifest) { learns(m); m.Turns[0].Step = spec }, parent: made, fails: "its turns are not those"},
		"another run's iteration":         {child: func(m *store.Manifest) { m.Run, m.Iteration = "b", 8 }, fails: "its parent is iteration 6"},
	} {
		t.Run(name, func(t *testing.T) {
			child, parent := child, parent
			if c.child != nil {
				c.child(&child)
			}
			if c.parent != nil {
				c.parent(&parent)
			}
			err := store.Follows(&child, &parent)
			if c.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, store.ErrBroken)
			require.ErrorContains(t, err, c.fails)
			require.ErrorContains(t, err, fmt.Sprintf("iteration %d of branch %d", child.Iteration, child.Branch))
		})
	}

	// Everything that does not fit is reported at once.
	child.Iteration, child.StateBefore, child.Branch, child.Spec, child.Base.Digest = 9, "6", 1, digest, digest.Digest
	err := store.Follows(&child, &parent)
	for _, says := range []string{"its parent is iteration", "it began with state", "of the later branch", "its spec is", "its base model is"} {
		require.ErrorContains(t, err, says)
	}
}

// A chain that changes its spec is refused where chains are read, and found by verify.
func TestChainsKeepTheirSpec(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	chain := makeRun(t, s, "run", 3)
	other, err := store.PutArtifact(ctx, s, "runs/run", "spec", "json", []byte(`{"run":"other"}`))
	require.NoError(t, err)
	bad := after(chain)
	bad.Spec = other
	ref, err := store.CommitManifest(ctx, s, &bad)
	require.NoError(t, err)
	_, err = store.LoadChain(ctx, s, ref)
	require.ErrorIs(t, err, store.ErrBroken)
	require.ErrorContains(t, err, "its spec is "+other.Digest)
	report, err := store.Verify(ctx, s, "run", nil)
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Equal(t, store.ProblemBroken, report.Problems[0].Kind)
	require.Equal(t, bad.Key(), report.Problems[0].Key)
}

// after is a manifest that follows a chain's last one and names nothing that an
// update made.
func after(chain store.Chain) store.Manifest {
	last := chain[len(chain)-1]
	m := *last.Manifest
	m.Iteration++
	m.Parent, m.StateBefore, m.StateAfter = &last.Ref, last.Manifest.StateAfter, "state-after"
	m.Turns, m.Trajectories, m.Scores, m.Batch, m.Snapshot, m.Evaluations, m.Artifacts = nil, nil, nil, nil, nil, nil, nil
	return m
}

// A key has one digest and one size, whichever manifests name it, in whatever part.
func TestVerifyOneDigestPerKey(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	chain := makeRun(t, s, "run", 6) // iteration 5 has a snapshot and an evaluation
	good, err := store.Verify(ctx, s, "run", nil)
	require.NoError(t, err)
	require.True(t, good.OK(), "%v", good.Problems)
	another := strings.Repeat("0123456789abcdef", 4)
	last := chain[5].Manifest
	verify := func(t *testing.T, m store.Manifest) []store.Problem {
		t.Helper()
		_, err := store.CommitManifest(ctx, s, &m)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Delete(ctx, m.Key())) }()
		report, err := store.Verify(ctx, s, "run", nil)
		require.NoError(t, err)
		return report.Problems
	}
	named := 0
	for _, use := range last.Refs() {
		if use.Role == "parent" {
			continue
		}
		named++
		t.Run(use.Role, func(t *testing.T) {
			m := after(chain)
			m.Artifacts = map[string]store.Ref{"again": use.Ref}
			require.Empty(t, verify(t, m), "the same once more is fine")
			for what, ref := range map[string]store.Ref{
				"digest": {Key: use.Key, Digest: another, Size: use.Size},
				"size":   {Key: use.Key, Digest: use.Digest, Size: use.Size + 1},
			} {
				m.Artifacts = map[string]store.Ref{"again": ref}
				problems := verify(t, m)
				require.Len(t, problems, 1, what)
				require.Equal(t, store.ProblemBroken, problems[0].Kind, what)
				require.Equal(t, use.Key, problems[0].Key, what)
				for _, says := range []string{use.Digest, ref.Digest, `artifacts["again"] of ` + m.Key()} {
					require.Contains(t, problems[0].Detail, says, what)
				}
			}
			// Within one manifest too.
			m.Artifacts = map[string]store.Ref{"again": use.Ref, "and again": {Key: use.Key, Digest: another, Size: use.Size}}
			problems := verify(t, m)
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Detail, another)
		})
	}
	require.GreaterOrEqual(t, named, 8, "a snapshot, an evaluation, a batch and more")

	// Artifacts that another run is rebuilt from count as the run's own.
	spec, err := store.Commit(ctx, s, store.SpecKey("child"), []byte(`{"run":"child"}`))
	require.NoError(t, err)
	m := after(chain[:5])
	m.Run, m.Spec = "child", spec
	m.Artifacts = map[string]store.Ref{"theirs": {Key: chain[4].Manifest.Batch.Key, Digest: another, Size: chain[4].Manifest.Batch.Size}}
	_, err = store.CommitManifest(ctx, s, &m)
	require.NoError(t, err)
	report, err := store.Verify(ctx, s, "child", nil)
	require.NoError(t, err)
	kinds := map[string]string{}
	for _, p := range report.Problems {
		kinds[p.Kind] = p.Key
	}
	require.Equal(t, chain[4].Manifest.Batch.Key, kinds[store.ProblemBroken])
	require.Contains(t, fmt.Sprint(report.Problems), chain[4].Manifest.Batch.Digest)
}
