package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// guessSpec plays the stand-in's game, which also judges the episodes; share is environment.broken_share, steps are those of the
// warm start.
func guessSpec(share float64, onBroken string, steps int) []byte {
	return fmt.Appendf(nil, `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": %d, "rows": 9, "learning_rate": 0.01}},
	"environment": {"name": "foreign", "options": {"name": "guess"}, "broken_share": %v, "on_broken": %q},
	"rewards": [{"name": "foreign", "weight": 0.5, "options": {"name": "guess", "episodes": 1}}],
	"rollout": {"groups": 4, "group_size": 4, "turns": 2, "max_new_tokens": 8, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 2, "instances": 16}
}`, steps, share, onBroken)
}

// A run in a foreign environment is as exact as another: what the environment answered is recorded
// once, and everything later reads the recording. Episodes in which it breaks are never learned
// from.
func TestForeignEnvironment(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx := t.Context()
	models := map[string][]byte{} // what the first run's warm start left, so that others need none
	stored := func() *store.Memory {
		s := store.NewMemory()
		for key, b := range models {
			require.NoError(t, s.Put(ctx, key, b, store.PutOptions{}))
		}
		return s
	}
	trained := func(fault string, share float64, onBroken string, steps int) (*train.Runner, *store.Memory, store.Chain) {
		s := stored()
		r := train.New(engine, s)
		r.Host.Environments = map[string]foreign.Way{"guess": foreign.Always(standin.Call(fault))}
		_, err := r.Train(ctx, "guess", guessSpec(share, onBroken, steps))
		require.NoError(t, err)
		head, err := store.Head(ctx, s, "guess")
		require.NoError(t, err)
		chain, err := store.LoadChain(ctx, s, head.Ref)
		require.NoError(t, err)
		return r, s, chain
	}
	r, s, chain := trained(standin.Busy, 0.05, spec.Drop, 40)
	for o, err := range s.List(ctx, store.ModelPrefix) {
		require.NoError(t, err)
		models[o.Key], _, err = store.ReadFixed(ctx, s, o.Key, store.MaxBody)
		require.NoError(t, err)
	}
	m := chain[0].Manifest
	require.Zero(t, m.Metrics["broken/mean"])
	require.Positive(t, float64(m.Metrics["train/foreign/num_actions"]), "the policy can speak")
	require.Equal(t, m.Metrics["reward/mean"], m.Metrics["reward/foreign/mean"], "the judge pays the reward once more")
	require.NotContains(t, m.Artifacts, activities.BrokenTable.Name)
	require.NotContains(t, chain[1].Manifest.Evaluations[0].Metrics, "reference/random_success", "nobody plays at random in it")

	t.Run("replay without a server", func(t *testing.T) {
		got, err := ReplayIteration(ctx, s, opened, "guess", 1, func(string) {})
		require.NoError(t, err)
		require.True(t, got.Same(), "%v", got.Differences)
	})
	t.Run("ask again", func(t *testing.T) { askAgain(t, r, s, chain[1].Manifest) })
	t.Run("verify and gc", func(t *testing.T) {
		garbage, err := store.FindGarbage(ctx, s, "guess", store.GarbageOptions{Grace: -1, Ended: true})
		require.NoError(t, err)
		for _, o := range garbage.Objects {
			require.NotContains(t, o.Key, ".answers.")
		}
		report, err := store.Verify(ctx, s, "guess", nil)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		last := len(m.Turns) - 1
		for role, ref := range map[string]*store.Ref{"[0].opening": m.Turns[0].Opening, "[0].answers": m.Turns[0].Answers, fmt.Sprintf("[%d].verdicts", last): m.Turns[last].Verdicts} {
			body, _, err := store.ReadFixed(ctx, s, ref.Key, store.MaxBody)
			require.NoError(t, err)
			require.NoError(t, s.Delete(ctx, ref.Key))
			report, err = store.Verify(ctx, s, "guess", nil)
			require.NoError(t, err)
			require.Len(t, report.Problems, 1)
			require.Equal(t, "turns"+role, report.Problems[0].Role)
			require.NoError(t, s.Put(ctx, ref.Key, body, store.PutOptions{}))
		}
	})
	t.Run("drift", func(t *testing.T) { drifts(t, r, s, chain[1].Manifest) })
	t.Run("redraw", func(t *testing.T) {
		again, others, flaky := trained(standin.Flaky, 1, spec.Redraw, 40)
		redrawnIs(t, s, others, chain[0].Manifest, flaky[0].Manifest)
		got, err := ReplayIteration(ctx, others, opened, "guess", 1, func(string) {})
		require.NoError(t, err)
		require.True(t, got.Same(), "%v", got.Differences)
		found, err := again.Host.Find(ctx, activities.FindInput{Run: "guess"})
		require.NoError(t, err)
		h := &host.Host{Store: others, Environments: map[string]foreign.Way{"guess": foreign.Always(standin.Call(standin.Flaky))}}
		drifts, _, err := h.Drifts(ctx, found.Run, flaky[1].Manifest)
		require.NoError(t, err)
		require.Empty(t, drifts, "each is asked about under the chance that it was drawn with")
	})
	t.Run("mended", func(t *testing.T) {
		s := stored()
		r := train.New(engine, s)
		r.Host.Environments = map[string]foreign.Way{"guess": foreign.Always(standin.Call(standin.Broken))}
		_, err := r.Train(ctx, "guess", guessSpec(0.05, spec.Drop, 40))
		require.ErrorIs(t, err, activities.ErrEnvironmentBroke)
		require.ErrorContains(t, err, "environment.broken_share is 0.05")
		r.Host.Environments = map[string]foreign.Way{"guess": foreign.Always(standin.Call(standin.None))}
		_, err = r.Train(ctx, "guess", guessSpec(0.05, spec.Drop, 40))
		require.NoError(t, err)
		head, err := store.Head(ctx, s, "guess")
		require.NoError(t, err)
		require.Equal(t, chain[1].Ref.Digest, head.Ref.Digest, "nothing of the broken turn was stored")
	})
	t.Run("broken", func(t *testing.T) {
		_, s, chain := trained(standin.Broken, 1, spec.Drop, 1)
		all := 0
		for _, link := range chain {
			m := link.Manifest
			rows, err := tables.Get[episode.TrajectoryRow](ctx, s, *m.Trajectories)
			require.NoError(t, err)
			require.Len(t, rows, 16, "the row stays, as padding")
			var dropped []run.BrokenRow
			if ref, ok := m.Artifacts[activities.BrokenTable.Name]; ok {
				dropped, err = tables.Get[run.BrokenRow](ctx, s, ref)
				require.NoError(t, err)
			}
			all += len(dropped)
			for _, b := range dropped {
				require.Zero(t, rows[b.Row].Turns())
				require.False(t, rows[b.Row].Selected)
				require.Contains(t, b.Message, "division by zero")
			}
			require.EqualValues(t, 16-len(dropped), m.Metrics["rollout/trajectories"])
			require.InDelta(t, float64(len(dropped))/16, float64(m.Metrics["broken/left_out"]), 1e-12)
		}
		require.Positive(t, all, "some group has the number that breaks")
	})
}

// redrawnIs compares a rollout in an environment that broke for some chances with one in which it
// never breaks: the game does not depend on chance, so the episodes that were drawn again are the
// same.
func redrawnIs(t *testing.T, whole, broken store.Store, want, m *store.Manifest) {
	ctx := t.Context()
	rows, err := tables.Get[episode.TrajectoryRow](ctx, whole, *want.Trajectories)
	require.NoError(t, err)
	got, err := tables.Get[episode.TrajectoryRow](ctx, broken, *m.Trajectories)
	require.NoError(t, err)
	require.Len(t, got, len(rows))
	dropped := 0
	for i, r := range got {
		if r.Dropped {
			dropped++
			continue
		}
		require.Equal(t, rows[i].IDs, r.IDs)
		require.Equal(t, rows[i].Rewards, r.Rewards)
	}
	require.Less(t, dropped, 3, "few break three times")
	for name, ref := range map[string]*store.Ref{"at the beginning": m.Turns[0].Opening, "after an action": m.Turns[0].Answers} {
		answers, err := tables.Get[run.AnswerRow](ctx, broken, *ref)
		require.NoError(t, err)
		again := 0
		for _, a := range answers {
			times, err := a.Redraws()
			require.NoError(t, err)
			require.LessOrEqual(t, times, 2)
			if times > 0 {
				again++
			}
			require.True(t, a.Broken == "" || times == 2)
		}
		require.Positive(t, again, name)
	}
	require.Positive(t, float64(m.Metrics["broken/redrawn"]))
	require.NotContains(t, want.Metrics, "broken/redrawn")
}

// drifts asks about a whole iteration again: what is answered otherwise is named with its turn and
// episode.
func drifts(t *testing.T, r *train.Runner, s store.Store, m *store.Manifest) {
	ctx := t.Context()
	found, err := r.Host.Find(ctx, activities.FindInput{Run: "guess"})
	require.NoError(t, err)
	h := &host.Host{Store: s, Environments: map[string]foreign.Way{"guess": foreign.Always(standin.Call(standin.None))}}
	same, compared, err := h.Drifts(ctx, found.Run, m)
	require.NoError(t, err)
	require.Empty(t, same)
	require.Greater(t, compared, 2*16, "the beginnings of the rollout and of the evaluation, and turns")

	h.Environments["guess"] = foreign.Always(standin.Call(standin.Random))
	found2, again, err := h.Drifts(ctx, found.Run, m)
	require.NoError(t, err)
	require.NotEmpty(t, found2)
	require.LessOrEqual(t, again, compared, "what follows a drift is not asked about")
	for _, d := range found2 {
		require.Positive(t, d.Turn, "all episodes begin the same")
		require.NotEqual(t, d.Recorded, d.Now)
		require.Contains(t, d.String(), fmt.Sprintf("turn %d, group %d, member %d: %s: recorded ", d.Turn, d.Group, d.Member, d.What))
	}
	h.Environments["guess"] = foreign.Always(standin.Call(standin.Broken))
	found2, _, err = h.Drifts(ctx, found.Run, m)
	require.NoError(t, err)
	require.Equal(t, "broken", found2[0].What)
	require.Zero(t, found2[0].Turn)
	require.Contains(t, found2[0].Now, "division by zero")
	h.Environments = nil
	_, _, err = h.Drifts(ctx, found.Run, m)
	require.ErrorIs(t, err, activities.ErrNotServed)
}

// askAgain asks about a recorded turn, whose answers are there or not.
func askAgain(t *testing.T, r *train.Runner, s store.Store, m *store.Manifest) {
	ctx := t.Context()
	found, err := r.Host.Find(ctx, activities.FindInput{Run: "guess"})
	require.NoError(t, err)
	turn, second := m.Turns[0], m.Turns[1]
	in := activities.AskInput{
		Run: found.Run, Rollout: activities.Rollout{Iteration: m.Iteration}, Turn: 2, Turns: m.Turns[:1], Opening: turn.Opening, Generate: &second.Generate,
	}
	asked := 0
	only := func(call foreign.Call) map[string]foreign.Way {
		return map[string]foreign.Way{"guess": foreign.Always(call)}
	}
	count := func(call foreign.Call) map[string]foreign.Way {
		return only(func(ctx context.Context, name string, input []byte) ([]byte, error) {
			asked++
			return call(ctx, name, input)
		})
	}
	// The first answers count: a step that is lost and runs again gives them, and does not ask.
	r.Host.Environments = count(standin.Call(standin.Deaf))
	got, err := r.Host.Ask(ctx, in)
	require.NoError(t, err)
	require.Equal(t, *second.Answers, got.Table)
	require.Zero(t, asked)
	// Where they are gone the environment answers the same, or is refused.
	over := store.NewOverlay(s)
	require.NoError(t, over.Delete(ctx, second.Answers.Key))
	h := &host.Host{Store: over}
	for fault, want := range map[string]error{
		standin.Lie: foreign.ErrChain, standin.Episode: foreign.ErrOther, standin.Upgrade: foreign.ErrVersion, standin.Deaf: foreign.ErrDrift,
	} {
		h.Environments = count(standin.Call(fault))
		_, err := h.Ask(ctx, in)
		require.ErrorIs(t, err, want, fault)
		require.ErrorIs(t, err, activities.ErrEnvironment, fault)
	}
	late := 0
	h.Environments = only(func(context.Context, string, []byte) ([]byte, error) {
		late++
		return nil, foreign.ErrTimeout
	})
	_, err = h.Ask(ctx, in)
	require.ErrorIs(t, err, activities.ErrEnvironment)
	require.ErrorContains(t, err, "asked 3 times: ")
	require.Equal(t, 3, late)
	h.Environments = nil
	_, err = h.Ask(ctx, in)
	require.ErrorIs(t, err, activities.ErrNotServed)
	require.NotErrorIs(t, err, activities.ErrEnvironment, "another worker may serve it")
	h.Environments = count(standin.Call(standin.None))
	got, err = h.Ask(ctx, in)
	require.NoError(t, err)
	require.Equal(t, *second.Answers, got.Table, "bit for bit")
	require.Positive(t, asked)
	// An observation that is wider than the widest of the description is broken.
	opening := activities.AskInput{Run: found.Run, Rollout: activities.Rollout{Iteration: 7}}
	h.Environments = only(func(ctx context.Context, name string, input []byte) ([]byte, error) {
		out, err := standin.Call(standin.None)(ctx, name, input)
		wide := "Guess a number that is from one to nine, please."
		return []byte(strings.NewReplacer("Guess.", wide, foreign.Begin("Guess."), foreign.Begin(wide)).Replace(string(out))), err
	})
	_, err = h.Ask(ctx, opening)
	require.ErrorIs(t, err, activities.ErrEnvironmentBroke)
	require.ErrorContains(t, err, "add it to widest")
}

// The spec of a run has the environment's description, and says nothing of commands.
func TestForeignSpec(t *testing.T) {
	for _, file := range []string{"lights.json", "reasoning.json", "signals.json"} {
		shown, err := os.ReadFile("../docs/own/" + file)
		require.NoError(t, err)
		_, err = spec.Decode(shown, run.Known())
		require.NoError(t, err, file)
	}
	ctx, s := t.Context(), store.NewMemory()
	h := &host.Host{Store: s}
	_, err := h.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: guessSpec(0.5, spec.Drop, 1)})
	require.ErrorIs(t, err, activities.ErrNotServed)
	require.ErrorIs(t, err, activities.ErrEnvironment)
	require.ErrorContains(t, err, "--env-process guess=COMMAND")
	h.Environments = map[string]foreign.Way{"guess": foreign.Always(standin.Call(standin.None))}
	out, err := h.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: guessSpec(0.5, spec.Drop, 1)})
	require.NoError(t, err)
	require.True(t, out.Plan.Foreign)
	require.True(t, out.Plan.Suites[0].Foreign)
	b, err := store.GetArtifact(ctx, s, out.Spec)
	require.NoError(t, err)
	var resolved spec.Train
	require.NoError(t, json.Unmarshal(b, &resolved))
	var options map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(resolved.Environment.Options, &options))
	require.Equal(t, []string{"description", "name", "options"}, slices.Sorted(maps.Keys(options)))
	require.Contains(t, string(options["description"]), `"version":"guess-1"`)
	require.Equal(t, resolved.Environment.Options, resolved.Evaluation.Suites[0].Environment.Options)
	require.Equal(t, 60, resolved.Environment.TimeoutSeconds)
	again, err := spec.Decode(b, run.Known())
	require.NoError(t, err)
	require.Equal(t, resolved, again)
	// Started again, also with the resolved spec, it is the same run. While nothing is committed it takes another version of the
	// environment (TestDescribedAnew has what is refused after that), but not under a spec that says which version it is for.
	for _, text := range [][]byte{guessSpec(0.5, spec.Drop, 1), b} {
		same, err := h.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: text})
		require.NoError(t, err)
		require.Equal(t, out.Spec, same.Spec)
	}
	h.Environments = map[string]foreign.Way{"guess": foreign.Always(func(ctx context.Context, name string, input []byte) ([]byte, error) {
		out, err := standin.Call(standin.None)(ctx, name, input)
		return []byte(strings.ReplaceAll(string(out), "guess-1", "guess-2")), err
	})}
	anew, err := h.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: guessSpec(0.5, spec.Drop, 1)})
	require.NoError(t, err)
	b2, err := store.GetArtifact(ctx, s, anew.Spec)
	require.NoError(t, err)
	require.Contains(t, string(b2), `"version":"guess-2"`)
	_, err = h.Resolve(ctx, activities.ResolveInput{Run: "guess", Spec: b})
	require.ErrorIs(t, err, activities.ErrEnvironment)
	require.ErrorContains(t, err, "the spec's is \"guess-1\"")
}
