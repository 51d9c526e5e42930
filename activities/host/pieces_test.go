package host

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Resolve writes down how the steps of a large run are cut, and nothing of it for a small
// one. Started again, a run keeps what was written; a person need not repeat it.
func TestResolveWritesPieces(t *testing.T) {
	resolve := func(h *Host, hidden int, limits string) (activities.ResolveResult, error) {
		return h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: fmt.Appendf(nil,
			`{"environment": {"name": "bandit"}, "policy": {"starter": {"hidden_size": %d}}, "limits": {"activity_seconds": 5%s}}`, hidden, limits)})
	}
	for hidden, want := range map[int][2]int{64: {0, 0}, 1024: {64, 32}} {
		h := &Host{Store: store.NewMemory()}
		out, err := resolve(h, hidden, "")
		require.NoError(t, err)
		written, err := run.ReadSpec(t.Context(), h.Store, out.Spec)
		require.NoError(t, err)
		require.Equal(t, want, [2]int{written.Limits.GenerateRows, written.Limits.ScoreRows})
		again, err := resolve(h, hidden, "")
		require.NoError(t, err)
		require.Equal(t, out, again)
		_, err = resolve(h, hidden, `, "score_rows": 16`)
		require.ErrorIs(t, err, activities.ErrSpecDiffers)
		require.ErrorContains(t, err, "limits.score_rows")
	}
}

// Rows that were chosen for the device's memory stay when the run is started again, and a
// person need not repeat them; others than those are another spec.
func TestResolveKeepsFittedRows(t *testing.T) {
	h := &Host{Store: store.NewMemory()}
	resolve := func(update string) (activities.ResolveResult, error) {
		return h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: fmt.Appendf(nil,
			`{"environment": {"name": "bandit"}, "policy": {"starter": {"layers": 8, "hidden_size": 512, "intermediate_size": 4096, "heads": 32, "kv_heads": 32}},
			"rollout": {"turns": 1, "prompt_tokens": [1024]}, "limits": {"device_gb": 3}, "update": {%s}}`, update)})
	}
	out, err := resolve("")
	require.NoError(t, err)
	written, err := run.ReadSpec(t.Context(), h.Store, out.Spec)
	require.NoError(t, err)
	require.Less(t, written.Update.MicroBatch, 16)
	require.Less(t, written.Rollout.Pass(), 64)
	require.Equal(t, spec.RecomputeAlways, written.Update.Recompute)
	again, err := resolve("")
	require.NoError(t, err)
	require.Equal(t, out, again)
	again, err = resolve(fmt.Sprintf(`"micro_batch": %d`, written.Update.MicroBatch))
	require.NoError(t, err)
	require.Equal(t, out, again)
	again, err = resolve(`"recompute": "auto"`)
	require.NoError(t, err)
	require.Equal(t, out, again)
	_, err = resolve(`"micro_batch": 16`)
	require.ErrorIs(t, err, activities.ErrSpecDiffers)
	_, err = resolve(`"recompute": "never"`)
	require.ErrorIs(t, err, activities.ErrSpecDiffers)
}
