package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// dealt does an iteration whose blocks the workers take in turns: the first is the run's own, the
// others help. It counts the blocks of each.
func (r *testRun) dealt(t *testing.T, workers ...*Engine) (activities.CommitInput, []int) {
	t.Helper()
	counts := make([]int, len(workers))
	next := 0
	it := iteration.New(r.iteration().start(r.Device.Engine.Info()), iteration.Begin(r.Settings, nil))
	in, err := it.ToCommit(func(c iteration.Call) (any, error) {
		if block, ok := c.Input.(activities.BlockInput); ok {
			k := next % len(workers)
			counts[k]++
			next++
			if k == 0 {
				got, err := r.Device.Block(t.Context(), block)
				return &got, err
			}
			got, err := (&Device{Store: r.store, Engine: workers[k]}).help(t.Context(), block)
			return &got, err
		}
		for _, b := range append(r.Host.Steps(), r.Device.Steps()...) {
			if b.Name == c.Name {
				return b.Call(t.Context(), c.Input)
			}
		}
		return nil, fmt.Errorf("nothing does %s", c.Name)
	})
	require.NoError(t, err)
	r.commit(t, in)
	return in, counts
}

// A run whose blocks several workers sample has the bytes of one that samples all rows by itself. The
// helper loads the base model below the adapters by itself.
func TestBlocksOnWorkers(t *testing.T) {
	engines := enginesOf(t, 1, 2)
	runs := func(workers int, more ...string) *testRun {
		r := resolved(t, "dealt", adapted(t, append([]string{
			`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "rollout.pass_rows=2", "rollout.block_rows=4", "evaluation.every=0",
		}, more...)...))
		r.moveTo(t, engines[1])
		for range 2 {
			_, counts := r.dealt(t, []*Engine{engines[1], engines[2]}[:workers]...)
			if len(more) > 0 {
				require.Equal(t, 4/workers, counts[0], "of two turns of two blocks")
			}
		}
		return r
	}
	want := runs(1)
	alone := runs(1, "rollout.workers=2")
	helped := runs(2, "rollout.workers=2")
	require.Equal(t, alone.head, helped.head)
	require.Equal(t, alone.objects(t), helped.objects(t), "all bytes, also those of the blocks")
	require.Equal(t, want.commits[1].StateAfter, helped.commits[1].StateAfter)
	for i, in := range helped.commits {
		require.Equal(t, want.commits[i].Turns, in.Turns, "the turns' tables")
		require.Equal(t, want.commits[i].Metrics, in.Metrics)
	}
	more := 0
	there := want.objects(t)
	for key := range helped.objects(t) {
		if _, ok := there[key]; !ok && !strings.HasSuffix(key, "spec.json") {
			require.True(t, strings.Contains(key, "/sampler.") || strings.Contains(key, ".block-"), key)
			more++
		}
	}
	require.Equal(t, 2*(2+4), more, "what was published, and the tables of four blocks, in each iteration")
	require.NotNil(t, engines[2].sampler, "it stays for the next block")
	engines[2].forget()
	require.Nil(t, engines[2].sampler)
}

// A worker helps only while it is free, and only with what was published for the run's programs.
// What it holds of the version itself it samples by.
func TestHelpIsRefused(t *testing.T) {
	engines := enginesOf(t, 1, 2)
	r := resolved(t, "refused", tinySpec(t, "rollout.group_size=4", "rollout.pass_rows=2", "rollout.block_rows=4", "rollout.workers=2", "evaluation.every=0"))
	r.moveTo(t, engines[1])
	published, err := r.Device.Publish(t.Context(), activities.PublishInput{Policy: r.version()})
	require.NoError(t, err)
	in := activities.BlockInput{
		Policy: r.version(), Published: published.Published, Programs: activities.DigestOfPrograms(r.programs), Settings: r.Settings, Turn: 1, Block: 1,
	}
	want, err := r.Device.Block(t.Context(), in)
	require.NoError(t, err)
	free := engines[2]
	helper := &Device{Store: r.store, Engine: free}
	refuses := func(of error, change func(*activities.BlockInput)) {
		t.Helper()
		in := in
		change(&in)
		_, err := helper.help(t.Context(), in)
		require.ErrorIs(t, err, of)
	}
	same := func(*activities.BlockInput) {}

	closed := free.SessionOpened()
	refuses(activities.ErrNotFree, same)
	closed()
	release, _, err := free.acquire(t.Context(), activities.Run{ID: "somebody else"})
	require.NoError(t, err)
	refuses(activities.ErrNotFree, same)
	release()
	refuses(activities.ErrProgramsDiffer, func(in *activities.BlockInput) { in.Programs = "others" })
	refuses(activities.ErrStateDiffers, func(in *activities.BlockInput) { in.Published.Sampler = "another" })
	refuses(activities.ErrStateDiffers, func(in *activities.BlockInput) { in.Published.Frozen = "another" })
	refuses(store.ErrInvalid, func(in *activities.BlockInput) { in.Block = 2 })
	got, err := helper.help(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, want.Table, got.Table)
	require.Positive(t, got.Telemetry.Tokens)

	_, err = helper.Block(t.Context(), in)
	require.ErrorIs(t, err, activities.ErrNotResident, "what was published is no version")
	own := r.Device.Engine
	_, err = r.Device.help(t.Context(), in)
	require.NoError(t, err)
	require.Nil(t, own.sampler, "the version itself is there")
	require.Equal(t, r.state, own.fingerprint)
}
