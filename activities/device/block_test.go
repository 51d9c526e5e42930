package device

import (
	"encoding/json"
	"fmt"
	"slices"
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
	t.Parallel()
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
	t.Parallel()
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

	closed := free.SessionOpened("another")
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

// rolledBeside does an iteration whose next rollout is made before the update, or by the session after
// everything else.
func (r *testRun) rolledBeside(t *testing.T, late bool) {
	t.Helper()
	steps := map[string]func(any) (any, error){}
	for _, b := range append(r.Host.Steps(), r.Device.Steps()...) {
		steps[b.Name] = func(in any) (any, error) { return b.Call(t.Context(), in) }
	}
	of := r.iteration()
	start := of.start(r.Device.Engine.Info())
	it := iteration.New(start, of.state(start.Head))
	var updated, sampled bool // by what was published
	for !it.Done() {
		calls, err := it.Ready()
		require.NoError(t, err)
		if own := slices.DeleteFunc(slices.Clone(calls), func(c iteration.Call) bool { return c.Beside }); late && len(own) > 0 {
			calls = own
		}
		c := calls[0]
		if in, ok := c.Input.(activities.CommitInput); ok {
			require.Equal(t, late && in.NextRollout != nil, sampled)
			r.commit(t, in)
			return
		}
		result := c.NewResult()
		if do, ok := steps[c.Name]; ok {
			result, err = do(c.Input)
			require.NoError(t, err, c.Key)
		}
		updated = updated || c.Name == "Update"
		if c.Name == "Block" && updated {
			require.NotNil(t, r.Device.Engine.sampler)
			sampled = true
		}
		it.Apply(c, result)
	}
}

// The next iteration's rollout has the same bytes whether it is made before the update or after it, by
// what was published of the version before. That is freed when the session does something else.
func TestBlocksAfterTheUpdate(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]func(*testing.T, ...string) json.RawMessage{"whole": tinySpec, "adapted": adapted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := func(late bool, more ...string) *testRun {
				r := resolved(t, "beside", document(t, append([]string{
					`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "rollout.pass_rows=2", "rollout.block_rows=4", "evaluation.every=0",
					"rollout.lag=1", `update.mismatch={"regime":"decoupled"}`, "iterations=3", "update.learning_rate=0.03",
				}, more...)...))
				r.moveTo(t, enginesOf(t, 1)[1])
				for range 3 {
					r.rolledBeside(t, late)
				}
				require.Nil(t, r.Device.Engine.sampler)
				return r
			}
			want := runs(false, "rollout.workers=2")
			got := runs(true, "rollout.workers=2")
			require.Equal(t, want.head, got.head)
			require.Equal(t, want.objects(t), got.objects(t))
			alone := runs(false)
			require.Equal(t, alone.commits[2].StateAfter, got.commits[2].StateAfter)
			require.Equal(t, alone.commits[2].Turns, got.commits[2].Turns)
		})
	}
}

// A turn's table is that of all its blocks, in their order.
func TestJoinIsRefused(t *testing.T) {
	t.Parallel()
	r := resolved(t, "joined", tinySpec(t, "rollout.group_size=4", "rollout.pass_rows=2", "rollout.block_rows=4", "rollout.workers=2", "evaluation.every=0"))
	r.moveTo(t, enginesOf(t, 1)[1])
	published, err := r.Device.Publish(t.Context(), activities.PublishInput{Policy: r.version()})
	require.NoError(t, err)
	in := activities.BlockInput{
		Policy: r.version(), Published: published.Published, Programs: activities.DigestOfPrograms(r.programs), Settings: r.Settings, Turn: 1,
	}
	generate := in.Generate()
	for in.Block = range 2 {
		out, err := r.Device.Block(t.Context(), in)
		require.NoError(t, err)
		generate.Blocks = append(generate.Blocks, out.Table)
	}
	want, err := r.Device.Generate(t.Context(), generate)
	require.NoError(t, err)
	blocks := generate.Blocks
	whole := activities.JoinInput{Run: r.Run, Turn: 1, Rows: 8, Blocks: blocks}
	got, err := r.Host.Join(t.Context(), whole)
	require.NoError(t, err)
	require.Equal(t, want.Table, got.Table)
	for _, change := range []func(*activities.JoinInput){
		func(in *activities.JoinInput) { in.Blocks = blocks[:1] },
		func(in *activities.JoinInput) { in.Blocks = []store.Ref{blocks[1], blocks[0]} },
		func(in *activities.JoinInput) { in.Rows = 7 },
	} {
		in := whole
		change(&in)
		_, err := r.Host.Join(t.Context(), in)
		require.ErrorIs(t, err, store.ErrInvalid)
	}
}
