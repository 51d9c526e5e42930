package workers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/iteration"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// TestMain is also the program of an environment's process.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		if err := standin.Serve(os.Stdin, os.Stdout, os.Args[2], os.Args[3]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A process of an environment shows more than the widest text of its description. Before the first commit the run takes
// a corrected description, and is then the run that began with it. After a commit a branch takes one: updates of the
// iterations before it are applied again as they were made, and both branches verify and replay.
func TestDescribedAnew(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx := t.Context()
	told := filepath.Join(t.TempDir(), "told")
	pool, err := stdio.Open(stdio.Config{Command: []string{os.Args[0], "serve", standin.Told, told}})
	require.NoError(t, err)
	defer pool.Close()
	document := []byte(strings.NewReplacer(
		`"snapshot": {"every": 1}, "evaluation": {"every": 2, "instances": 16}`,
		`"snapshot": {"every": 9}, "evaluation": {"every": 0}, "freshness": {"replay_iterations": 2}`,
		`"rewards": [{"name": "foreign", "weight": 0.5, "options": {"name": "guess", "episodes": 1}}],`, "",
	).Replace(string(guessSpec(0.05, spec.Drop, 40))))
	with := func(s store.Store) *train.Runner {
		r := train.New(engine, s)
		r.Host.Environments = map[string]foreign.Way{"guess": foreign.Always(pool.Call)}
		return r
	}
	s := store.NewMemory()
	r := with(s)
	describe := func(of store.Ref, base *store.Ref, take bool) activities.ResolveResult {
		t.Helper()
		asked := &activities.Describe{Spec: of, Base: base, Take: take}
		got, err := r.Host.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: document, Describe: asked})
		require.NoError(t, err)
		return got
	}
	describes := func(texts ...string) {
		t.Helper()
		require.NoError(t, os.WriteFile(told, []byte(strings.Join(texts, "\n")), 0o600))
	}

	_, err = r.Train(ctx, "guess", document)
	require.ErrorIs(t, err, activities.ErrEnvironmentBroke)
	require.ErrorContains(t, err, "add it to widest")
	_, first, err := run.WrittenSpec(ctx, s, "guess")
	require.NoError(t, err)
	require.Empty(t, describe(first, nil, true).Changed, "nothing has changed yet")
	const wide = "Higher. Try another number."
	describes(wide)
	require.Equal(t, first, describe(first, nil, false).Spec, "only asked")
	wider := describe(first, nil, true)
	require.Contains(t, wider.Changed, wide)
	require.Equal(t, wider, describe(first, nil, true), "asked again after a lost reply")
	require.NotEqual(t, first, wider.Spec)
	_, err = r.Train(ctx, "guess", document)
	require.NoError(t, err)
	zero, _, err := store.ReadManifestAt(ctx, s, "guess", 0, 0)
	require.NoError(t, err)
	require.Equal(t, wider.Spec, zero.Spec)
	require.Zero(t, zero.Metrics["broken/mean"])

	others, err := with(store.NewMemory()).Host.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: document})
	require.NoError(t, err)
	require.Equal(t, wider.Spec.Digest, others.Spec.Digest, "it is the run that begins with this description")

	describes(wide, "Lower. Try another number, please, as long as there are any left.")
	_, err = r.Host.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: document})
	require.ErrorIs(t, err, activities.ErrSpecDiffers, "it has committed")
	require.ErrorContains(t, err, "start another run `from` iteration 1")
	found, err := r.Host.Find(ctx, activities.FindInput{Run: "guess", Version: new(1)})
	require.NoError(t, err)
	head := found.Head
	require.Len(t, head.Batches, 1)
	widest := describe(wider.Spec, &head.Base, true)
	require.NotEqual(t, wider.Spec, widest.Spec)
	branch(t, r, opened, widest, head, wider.Spec.Digest)
	again, err := r.Host.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: document})
	require.NoError(t, err, "started again, it goes on in its newest branch")
	require.Equal(t, widest.Spec, again.Spec)
	require.Equal(t, 1, again.Head.Branch)
	require.Len(t, again.Head.Batches, 1, "those of the narrower description have other shapes")

	report, err := store.Verify(ctx, s, "guess", nil)
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	for number := range 2 {
		got, err := ReplayIteration(ctx, s, opened, "guess", number, func(string) {})
		require.NoError(t, err)
		require.True(t, got.Same(), "%v", got.Differences)
		require.Equal(t, number, got.Branch, "iteration 1 is that of the branch")
	}
}

// branch commits iteration 1 in a branch with another description, after a committed iteration, as the workflow does.
func branch(t *testing.T, r *train.Runner, opened *model.Device, described activities.ResolveResult, head *activities.Head,
	before string) {
	t.Helper()
	ctx := t.Context()
	runs := activities.Run{ID: "guess", Spec: described.Spec, Base: head.Base}
	engine, err := device.NewEngine(opened) // it holds nothing
	require.NoError(t, err)
	h := r.Host
	r = train.New(engine, h.Store)
	r.Host.Environments = h.Environments
	restored, err := r.Device.Restore(ctx, activities.RestoreInput{
		Version: activities.Version{Run: runs, Branch: 1, Version: 1, State: head.State}, Head: &head.Manifest,
	})
	require.NoError(t, err)
	require.Equal(t, 1, restored.Telemetry.Recomputed, "the update of iteration 0, with the programs that made it")
	carried := head.Carried()
	carried.Batches = nil
	it := iteration.New(iteration.Start{
		Run: runs, Plan: described.Plan, Branch: 1, Number: 1, Policy: head.State, Head: carried, Previous: head.Metrics,
		Before: *head.Detected, Opened: &activities.Opened{Branch: 0, Iteration: 1, Spec: before, Detected: *head.Detected},
		Programs: restored.Programs, Frozen: restored.Frozen, Due: iteration.DueAt(described.Plan, 1, 1, 2),
	}, iteration.BeginAfter(carried, described.Plan.Settings))
	in, err := r.ToCommit(ctx, it, nil)
	require.NoError(t, err)
	require.NotEqual(t, head.Programs, in.Programs, "its contexts are wider")
	_, err = r.Host.Commit(ctx, in)
	require.NoError(t, err)
}
