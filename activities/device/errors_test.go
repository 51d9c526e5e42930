package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// atEdge is an error as an activity returns it.
func atEdge(ctx context.Context, err error) (out error) {
	defer run.Edge(ctx, &out, "try it")
	return err
}

// asActivity is what Temporal's history keeps of an error.
func asActivity(t *testing.T, err error) *temporal.ApplicationError {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	fail := func(ctx context.Context) error { return atEdge(ctx, err) }
	env.RegisterActivity(fail)
	_, got := env.ExecuteActivity(fail)
	var app *temporal.ApplicationError
	require.ErrorAs(t, got, &app)
	return app
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind string
		end  bool // no retry can repair it
	}{
		{spec.Problems{{Path: "seed", Found: "-1", Allowed: "more"}}, activities.KindSpecInvalid, true},
		{activities.ErrSpecDiffers, activities.KindSpecDiffers, true},
		{activities.ErrModelInvalid, activities.KindModelInvalid, true},
		{errors.Join(activities.ErrModelInvalid, store.ErrNotFound), activities.KindModelInvalid, true},
		{&store.Divergence{Key: "k"}, activities.KindDivergence, true},
		{&store.Altered{Key: "k"}, "AgainArtifactAltered", false},
		{&store.Error{Op: "read", Where: "k", Kind: store.ErrNotFound}, "AgainArtifactMissing", false},
		{&store.Error{Op: "put", Where: "k", Kind: store.ErrRefused}, "AgainStoreRefused", false},
		{activities.ErrStateDiffers, activities.KindStateDiffers, true},
		{activities.ErrProgramsDiffer, activities.KindProgramsDiffer, true},
		{activities.ErrNotResident, activities.KindNotResident, true},
		{activities.ErrDraining, activities.KindDraining, true},
		{activities.ErrNotFound, activities.KindNotFound, true},
		{store.ErrInvalid, "AgainInvalid", false},
		{store.ErrBroken, "AgainInvalid", false},
		{store.ErrTooLarge, activities.KindInvalid, true},
		{model.ErrInput, activities.KindInvalid, true},
		{model.ErrTensors, activities.KindInvalid, true},
		{&store.Error{Op: "put", Where: "k", Kind: store.ErrUnavailable}, "StoreUnavailable", false},
		{&store.Error{Op: "put", Where: "k", Kind: store.ErrConflict}, "StoreUnavailable", false},
		{&store.Error{Op: "put", Where: "k", Kind: store.ErrDenied}, "AgainStoreAccessDenied", false},
		{&store.Error{Op: "put", Where: "k", Kind: store.ErrNoBucket}, "AgainStoreNoBucket", false},
		{model.ErrClosed, "Retryable", false},
		{errors.New("out of memory"), "Retryable", false},
	} {
		wrapped := fmt.Errorf("deeper: %w", c.err)
		got := asActivity(t, wrapped)
		require.Equal(t, c.kind, got.Type(), "%v", c.err)
		require.Equal(t, c.end, got.NonRetryable(), "%v", c.err)
		require.Equal(t, c.end, slices.Contains(activities.NonRetryable, c.kind), "the table of the workflows agrees: %v", c.err)
		require.Contains(t, got.Message(), "try it: deeper: ")
		require.Contains(t, got.Message(), c.err.Error())
		direct := atEdge(t.Context(), wrapped)
		require.Equal(t, wrapped, errors.Unwrap(direct), "called directly the error is itself")
	}
	require.NoError(t, atEdge(t.Context(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, atEdge(ctx, context.Canceled), "the server knows why")
}

// down is a store that does not answer.
type down struct{ store.Store }

func (down) gone(key string) error {
	return &store.Error{Op: "reach", Where: key, Kind: store.ErrUnavailable}
}

func (d down) Put(_ context.Context, key string, _ []byte, _ store.PutOptions) error {
	return d.gone(key)
}

func (d down) PutFrom(_ context.Context, key string, _ io.Reader, _ int64, _ store.PutOptions) error {
	return d.gone(key)
}

func (d down) Open(_ context.Context, key string, _ int64) (io.ReadCloser, store.Object, error) {
	return nil, store.Object{}, d.gone(key)
}

func (d down) Stat(_ context.Context, key string) (store.Object, error) {
	return store.Object{}, d.gone(key)
}

// A store that is down is waited for, whatever the step.
func TestStoreDown(t *testing.T) {
	r := begun(t, "down", tinySpec(t))
	in := r.iterate(t)
	s := down{r.store}
	h, d := &host.Host{Store: s}, &Device{Store: s, Engine: r.Device.Engine}
	v := r.version()
	for name, step := range map[string]func() error{
		"resolve": func() error {
			_, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "other", Spec: tinySpec(t)})
			return err
		},
		"load":   func() error { _, err := h.Find(t.Context(), activities.FindInput{Run: "down"}); return err },
		"step":   func() error { _, err := h.Step(t.Context(), activities.StepInput{Run: r.Run}); return err },
		"select": func() error { _, err := h.Select(t.Context(), activities.SelectInput{Run: r.Run}); return err },
		"credit": func() error { _, err := h.Credit(t.Context(), activities.CreditInput{Run: r.Run}); return err },
		"commit": func() error { _, err := h.Commit(t.Context(), in); return err },
		"warm start": func() error {
			_, err := d.WarmStart(t.Context(), activities.WarmStartInput{Run: "down", Spec: r.Run.Spec})
			return err
		},
		"restore": func() error { _, err := d.Restore(t.Context(), activities.RestoreInput{Version: v}); return err },
		"generate": func() error {
			_, err := d.Generate(t.Context(), activities.GenerateInput{Policy: v, Turn: 1})
			return err
		},
		"score": func() error { _, err := d.Score(t.Context(), activities.ScoreInput{Policy: v}); return err },
		"update": func() error {
			_, err := d.Update(t.Context(), activities.UpdateInput{Policy: v, Batch: *in.Batch})
			return err
		},
		"snapshot": func() error { _, err := d.Snapshot(t.Context(), activities.SnapshotInput{Policy: v}); return err },
	} {
		err := step()
		require.ErrorIs(t, err, store.ErrUnavailable, name)
		require.Empty(t, run.KindOf(err), name)
	}
}

// An artifact that was changed ends the run, by name: no step reads past it.
func TestAlteredArtifacts(t *testing.T) {
	r := begun(t, "altered", tinySpec(t, "evaluation.every=0"))
	in := r.iterate(t)
	turns := in.Turns[0]
	rollout := activities.Rollout{Iteration: 0}
	selects := func() error {
		_, err := r.Host.Select(t.Context(), activities.SelectInput{Run: r.Run, Rollout: rollout, Settings: in.Settings, Turns: in.Turns})
		return err
	}
	credit := func() error {
		_, err := r.Host.Credit(t.Context(), activities.CreditInput{Run: r.Run, Settings: in.Settings, Trajectories: in.Trajectories, Scores: in.Scores})
		return err
	}
	for name, c := range map[string]struct {
		ref  store.Ref
		step func() error
	}{
		"generate table": {turns.Generate, func() error {
			_, err := r.Host.Step(t.Context(), activities.StepInput{Run: r.Run, Rollout: rollout, Turn: 1, Generate: turns.Generate})
			return err
		}},
		"step table":   {turns.Step, selects},
		"trajectories": {in.Trajectories, credit},
		"scores":       {*in.Scores, credit},
		"batch": {*in.Batch, func() error {
			r.forget(t) // an update that was made is answered from memory
			r.restore(t, activities.RestoreInput{Version: activities.Version{Run: r.Run}})
			_, err := r.Device.Update(t.Context(), activities.UpdateInput{Policy: activities.Version{Run: r.Run, State: in.StateBefore}, Batch: *in.Batch, Settings: in.Settings})
			return err
		}},
		"manifest": {*r.head, func() error { _, err := run.FindHead(t.Context(), r.Host.Store, "altered", nil); return err }},
		"spec": {r.Run.Spec, func() error {
			_, err := r.Host.Load(t.Context(), activities.LoadInput{Spec: r.Run.Spec})
			return err
		}},
		"base model's index": {r.Run.Base, func() error { _, err := r.Host.Commit(t.Context(), in); return err }},
	} {
		alter(t, r.store, c.ref.Key)
		err := c.step()
		alter(t, r.store, c.ref.Key)
		require.Error(t, err, name)
		require.Contains(t, []string{activities.KindArtifactAltered, activities.KindInvalid}, run.KindOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.ref.Key, name)
		require.NoError(t, c.step(), name)

		body, err := store.GetArtifact(t.Context(), r.store, c.ref)
		require.NoError(t, err)
		if name == "manifest" {
			continue // without it there is another head, and that is fine here
		}
		require.NoError(t, r.store.Delete(t.Context(), c.ref.Key))
		err = c.step()
		require.Equal(t, activities.KindArtifactMissing, run.KindOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.ref.Key, name)
		require.NoError(t, r.store.Put(t.Context(), c.ref.Key, body, store.PutOptions{}))
	}
}
