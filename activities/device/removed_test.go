package device

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/store"
)

// removing is a bucket in which a person removes a run just before an object whose key begins with before is written.
type removing struct {
	store.Store
	before, run string
}

func (r *removing) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	if strings.HasPrefix(key, r.before) {
		if _, err := store.MarkRemoved(ctx, r.Store, store.RunDir(r.run), store.Removed{Kind: "run", ID: r.run, At: time.Now()}); err != nil {
			return err
		}
	}
	return r.Store.Put(ctx, key, body, opts)
}

// Nothing begins under an id that was removed, and nothing begins with what a removed run had: at once, without a retry, and
// also if the removal comes between the look and the write.
func TestRemovedIsRefused(t *testing.T) {
	t.Parallel()
	source := begun(t, "source", tinySpec(t))
	source.iterate(t)
	h := source.Host
	fork := tinySpec(t, `from={"run":"source","iteration":0}`)
	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrRemoved)
		require.Equal(t, activities.KindRemoved, run.KindOf(err))
		require.ErrorContains(t, err, "was removed on ")
	}

	late := func(before string) *host.Host { return &host.Host{Store: &removing{source.store, before, "source"}} }
	_, err := late(store.SpecKey("fork")).Resolve(t.Context(), activities.ResolveInput{Run: "fork", Spec: fork})
	refused(err)
	require.ErrorContains(t, err, "from: ")
	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "later", Spec: fork})
	refused(err)
	_, err = source.store.Stat(t.Context(), store.SpecKey("later"))
	require.ErrorIs(t, err, store.ErrNotFound, "nothing is written")
	_, err = h.Resolve(t.Context(), activities.ResolveInput{Run: "source", Spec: tinySpec(t)})
	refused(err)
	_, err = h.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "source", Input: json.RawMessage(`{"policy":"source"}`)})
	refused(err)
	_, err = h.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "e", Input: json.RawMessage(`{"policy":"source"}`)})
	refused(err)
	_, err = (&sweeps.Sweeps{Store: source.store}).ResolveSweep(t.Context(), activities.ResolveSweepInput{ID: "source", Input: json.RawMessage(`{}`)})
	refused(err)

	require.NoError(t, source.store.Delete(t.Context(), store.RemovedKey(store.RunDir("source"))))
	_, err = late(store.ApartDir("e")+"/"+store.MeasuredName).ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "e", Input: json.RawMessage(`{"policy":"source"}`)})
	refused(err)
}
