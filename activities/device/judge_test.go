package device

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// served are the judges that runs of tests begin with.
var served = map[string]foreign.Way{"judge": foreign.Always(standin.Call(standin.None))}

// toJudge is a run whose rewards ask a judge, and a round of two turns that is judged: two groups of four.
type toJudge struct {
	*walked
	wrote []string // by each row, in both turns
	ask   activities.JudgeInput
}

func newToJudge(t *testing.T, edits ...string) *toJudge {
	w := newWalked(t, append([]string{"rollout.format_penalty=0", "rollout.group_size=4"}, edits...)...)
	require.True(t, w.Plan.Judged)
	wrote := strings.Split("Right</answer>,Right</answer>,Left</answer>,Left</answer>,Left</answer>,Right</answer>,Right</answer>,Left</answer>", ",")
	first, _, _, _ := w.turn(nil, wrote...)
	second, _, _, _ := w.turn([]store.TurnRefs{first}, wrote...)
	return &toJudge{w, wrote, activities.JudgeInput{Run: w.Run, Turns: []store.TurnRefs{first, second}}}
}

// judged are the round's turns with verdicts.
func (w *toJudge) judged(verdicts store.Ref) []store.TurnRefs {
	turns := slices.Clone(w.ask.Turns)
	turns[1].Verdicts = &verdicts
	return turns
}

// selects is the selection from the round with verdicts.
func (w *toJudge) selects(h *host.Host, verdicts store.Ref) activities.SelectResult {
	w.t.Helper()
	out, err := h.Select(w.t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: w.judged(verdicts)})
	require.NoError(w.t, err)
	return out
}

// A judge of one's own is a reward in any environment. Its verdicts are recorded once: a step that is
// lost and runs again has them, and asks only about those that are missing.
func TestJudge(t *testing.T) {
	ctx := t.Context()
	w := newToJudge(t,
		`rewards=[{"name":"foreign","weight":0.5,"options":{"name":"judge","components":"correct 1, polite 2","episodes":3,"failed_share":0.5}}]`)
	ask := w.ask
	var calls atomic.Int64
	by := func(call foreign.Call) (*host.Host, store.Store) {
		over := store.NewOverlay(w.store)
		return &host.Host{Store: over, Environments: map[string]foreign.Way{"judge": foreign.Always(func(ctx context.Context, name string, input []byte) ([]byte, error) {
			calls.Add(1)
			return call(ctx, name, input)
		})}}, over
	}
	h, s := by(standin.Call(standin.None))
	got, err := h.Judge(ctx, ask)
	require.NoError(t, err)
	require.EqualValues(t, 3, calls.Load(), "8 episodes, 3 in a call")
	rows, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
	require.NoError(t, err)
	require.Len(t, rows, 8)
	out := w.selects(h, got.Table)
	trajectories, err := run.ReadTrajectories(ctx, s, out.Trajectories, out.Tables.Ref(activities.ComponentsTable))
	require.NoError(t, err)
	for i, r := range rows {
		require.Equal(t, run.VerdictRow{
			Row: int32(i), Group: int32(i / 4), Member: int32(i % 4), Asked: true, Judge: "judge", Episode: r.Episode, Model: "standin",
			Prompt: foreign.Begin("What was the reward?"), Components: []string{"correct", "polite"}, Verdict: "by the reward", Raw: r.Raw,
			Values: []float64{trajectories[i].Reward(), trajectories[i].Reward()},
		}, r)
		require.Equal(t, []float64{0, 0.5 * 3 * trajectories[i].Reward()}, trajectories[i].Added)
	}
	require.Nil(t, out.Tables.Ref(activities.BrokenTable))
	require.Equal(t, canon.Float(0), out.Metrics["verdicts/failed"])
	require.Equal(t, out.Metrics["reward/mean"], out.Metrics["verdicts/polite/mean"])
	require.Equal(t, 3*out.Metrics["reward/mean"], out.Metrics["reward/foreign/mean"])

	t.Run("what the judge sees", func(t *testing.T) {
		type question struct {
			Options    json.RawMessage
			Components []string
			Episodes   []foreign.Scored
		}
		var seen question
		h, _ := by(func(ctx context.Context, name string, input []byte) ([]byte, error) {
			var asked question
			if err := json.Unmarshal(input, &asked); err == nil && len(asked.Episodes) == 3 && asked.Episodes[1].ID == rows[1].Episode {
				seen = asked // one call alone: the others' second episodes are others
			}
			return standin.Call(standin.None)(ctx, name, input)
		})
		_, err := h.Judge(ctx, ask)
		require.NoError(t, err)
		require.JSONEq(t, `{}`, string(seen.Options))
		require.Equal(t, []string{"correct", "polite"}, seen.Components)
		e := seen.Episodes[0]
		require.Equal(t, walkName, e.Environment)
		require.NotEmpty(t, e.Instructions)
		require.Len(t, e.Turns, 2)
		require.Contains(t, e.Turns[0].Reply, "Right")
		require.Equal(t, []string{"Right"}, e.Turns[0].Actions)
		require.NotEqual(t, e.Turns[0].Observation, e.Turns[1].Observation)
		require.NotEmpty(t, e.Observation)
		require.Equal(t, trajectories[0].Rewards[0], e.Turns[0].Reward)
	})
	t.Run("the first verdicts count", func(t *testing.T) {
		calls.Store(0)
		again := &host.Host{Store: s, Environments: map[string]foreign.Way{"judge": foreign.Always(standin.Call(standin.Random))}}
		same, err := again.Judge(ctx, ask)
		require.NoError(t, err)
		require.Equal(t, got.Table, same.Table)
		again.Environments = nil
		same, err = again.Judge(ctx, ask)
		require.NoError(t, err, "no judge is needed any more")
		require.Equal(t, got.Table, same.Table)
		require.Equal(t, out.Trajectories, w.selects(again, same.Table).Trajectories)
		require.Zero(t, calls.Load())
	})
	t.Run("killed in the middle", func(t *testing.T) {
		calls.Store(0)
		random := standin.Call(standin.Random)
		var s store.Store
		stored := func() (keys []string) {
			for o, err := range s.List(ctx, store.RunsDir) {
				if err == nil && strings.Contains(o.Key, "verdicts.part.") {
					keys = append(keys, o.Key)
				}
			}
			return keys
		}
		var h *host.Host
		h, s = by(func(ctx context.Context, name string, input []byte) ([]byte, error) {
			if strings.Count(string(input), `"id":`) == 3 {
				return random(ctx, name, input)
			}
			for len(stored()) < 2 && ctx.Err() == nil { // the last call fails when the others are stored
				time.Sleep(time.Millisecond)
			}
			return nil, foreign.ErrAnswer
		})
		_, err := h.Judge(ctx, ask)
		require.ErrorIs(t, err, activities.ErrEnvironment)
		var parts []run.VerdictRow
		for _, key := range stored() {
			of, err := tables.Get[run.VerdictRow](ctx, s, refOf(t, s, key))
			require.NoError(t, err)
			parts = append(parts, of...)
		}
		require.Len(t, parts, 6)
		calls.Store(0)
		h.Environments = map[string]foreign.Way{"judge": foreign.Always(func(ctx context.Context, name string, input []byte) ([]byte, error) {
			calls.Add(1)
			return standin.Call(standin.None)(ctx, name, input)
		})}
		got, err := h.Judge(ctx, ask)
		require.NoError(t, err)
		require.EqualValues(t, 1, calls.Load(), "it asks about the rest")
		rows, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
		require.NoError(t, err)
		for _, p := range parts {
			require.Equal(t, p, rows[p.Row], "what was recorded stays")
		}
	})
	t.Run("failed verdicts", func(t *testing.T) {
		h, s := by(standin.Call(standin.Broken))
		got, err := h.Judge(ctx, ask)
		require.NoError(t, err)
		rows, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
		require.NoError(t, err)
		out := w.selects(h, got.Table)
		left, err := tables.Get[run.BrokenRow](ctx, s, *out.Tables.Ref(activities.BrokenTable))
		require.NoError(t, err)
		require.Len(t, left, 3, "the second of each call")
		for _, b := range left {
			require.EqualValues(t, run.TurnOfVerdict, b.Turn)
			require.Contains(t, b.Message, "not JSON")
			require.Empty(t, rows[b.Row].Values)
		}
		require.Equal(t, canon.Float(3./8), out.Metrics["verdicts/failed"])
		require.Equal(t, canon.Float(3./8), out.Metrics["broken/left_out"])
		require.EqualValues(t, 5, out.Metrics["rollout/trajectories"])
		kept, err := run.ReadTrajectories(ctx, s, out.Trajectories, out.Tables.Ref(activities.ComponentsTable))
		require.NoError(t, err)
		var mean float64
		for _, b := range left {
			require.False(t, kept[b.Row].Selected)
			require.Zero(t, kept[b.Row].Turns())
		}
		for _, r := range kept {
			mean += r.Return() / 5
		}
		require.InDelta(t, mean, float64(out.Metrics["reward/weighted_mean"]), 1e-12)
	})
	for fault, want := range map[string]error{standin.Episode: foreign.ErrOther, standin.Lie: foreign.ErrAnswer} {
		h, _ := by(standin.Call(fault))
		_, err := h.Judge(ctx, ask)
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, err, activities.ErrEnvironment)
	}
	h, _ = by(func(context.Context, string, []byte) ([]byte, error) { return nil, foreign.ErrBroken })
	_, err = h.Judge(ctx, ask)
	require.ErrorContains(t, err, "no verdict about 8 of 8 episodes, and its option failed_share is 0.5")
	require.ErrorIs(t, err, activities.ErrEnvironment)
	h.Environments = nil
	_, err = h.Judge(ctx, ask)
	require.ErrorIs(t, err, activities.ErrNotServed)
	_, err = h.Resolve(ctx, activities.ResolveInput{Run: "other", Spec: tinySpec(t, `rewards=[{"name":"foreign","options":{"name":"judge"}}]`)})
	require.ErrorIs(t, err, activities.ErrNotServed)
	require.ErrorContains(t, err, "--env-process judge=COMMAND")
}

// A judge by turn pays the turns; the rest is as with a judge of episodes.
func TestJudgeByTurn(t *testing.T) {
	ctx := t.Context()
	w := newToJudge(t,
		`rewards=[{"name":"foreign","weight":0.5,"options":{"name":"judge","level":"turn","components":"right 1, told 2, made_up 0","episodes":3}}]`)
	ask := w.ask
	s := store.NewOverlay(w.store)
	by := func(call foreign.Call) *host.Host {
		return &host.Host{Store: s, Environments: map[string]foreign.Way{"judge": foreign.Always(call)}}
	}
	_, err := by(func(ctx context.Context, name string, input []byte) ([]byte, error) {
		return standin.Call(standin.None)(ctx, name, []byte(strings.Replace(string(input), `"level":"turn",`, "", 1)))
	}).Judge(ctx, ask)
	require.ErrorIs(t, err, activities.ErrEnvironment)
	require.ErrorContains(t, err, "allowed: an array of 2, a number for each turn of the episode")

	h := by(standin.Call(standin.None))
	got, err := h.Judge(ctx, ask)
	require.NoError(t, err)
	again, err := by(standin.Call(standin.Random)).Judge(ctx, ask)
	require.NoError(t, err)
	require.Equal(t, got.Table, again.Table, "the first verdicts count")
	out := w.selects(h, got.Table)
	rows, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
	require.NoError(t, err)
	trajectories, err := run.ReadTrajectories(ctx, s, out.Trajectories, out.Tables.Ref(activities.ComponentsTable))
	require.NoError(t, err)
	var paid float64
	for i, r := range trajectories {
		require.Len(t, r.Rewards, 2)
		require.Equal(t, []string{"right", "told", "made_up"}, rows[i].Components)
		require.Equal(t, slices.Repeat(r.Rewards, 3), rows[i].Values)
		require.Equal(t, []float64{1.5 * r.Rewards[0], 1.5 * r.Rewards[1]}, r.Added)
		require.Equal(t, 3*(r.Rewards[0]+r.Rewards[1]), r.Parts[0].Sum)
		if r.Rewards[0] != 0 {
			paid++
		}
	}
	require.NotZero(t, paid, "a first turn is paid")
	require.Equal(t, canon.Float(0), out.Metrics["verdicts/failed"])
	require.InDelta(t, float64(out.Metrics["reward/mean"])/2, float64(out.Metrics["verdicts/made_up/mean"]), 1e-12, "a mean over turns")
	require.Equal(t, 3*out.Metrics["reward/mean"], out.Metrics["reward/foreign/mean"])
}

// refOf is a reference to what is stored under a key.
func refOf(t *testing.T, s store.Store, key string) store.Ref {
	t.Helper()
	_, ref, err := store.ReadFixed(t.Context(), s, key, store.MaxBody)
	require.NoError(t, err)
	return ref
}
