package device

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// evaluations are a run's of one version, by suite.
func evaluations(in activities.CommitInput, version int) map[string]store.EvaluationRef {
	out := map[string]store.EvaluationRef{}
	for _, e := range in.Evaluations {
		if e.Version == version {
			out[e.Suite] = e
		}
	}
	return out
}

// The same policy on the same suite gives the same bytes, whichever run asks: the
// run itself, another with the same starter and other settings, or an Evaluate.
func TestSuitesAreTheSameForAll(t *testing.T) {
	t.Parallel()
	suites := `evaluation.suites=["in-distribution",{"suite":"bandit-test","samples":2},{"suite":"bandit","name":"thinking","think":true,"max_new_tokens":12}]`
	one := begun(t, "one", tinySpec(t, suites))
	in := one.iterate(t)
	first := evaluations(in, 0)
	require.Len(t, first, 3)
	require.Len(t, in.Evaluations, 3, "version 1 is not due")

	// Another run of the same starter: other seed, other size of rollout.
	other := begun(t, "other", tinySpec(t, suites, "seed=77", "rollout.groups=3", "update.micro_batch=4"))
	second := evaluations(other.iterate(t), 0)
	for name, e := range first {
		require.Equal(t, e.State, second[name].State)
		require.Equal(t, e.Result.Digest, second[name].Result.Digest, name)
		require.Equal(t, e.Trajectories.Content, second[name].Trajectories.Content, name)
		require.Equal(t, e.Trajectories.Digest, second[name].Trajectories.Digest, name)
		require.NotEqual(t, e.Result.Key, second[name].Result.Key)
	}

	// An Evaluate of the run's version 0 is one of its base model, by the starter's settings.
	index, err := run.ReadIndex(t.Context(), one.store, one.Base)
	require.NoError(t, err)
	loaded, err := one.Host.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "apart", Input: json.RawMessage(
		`{"policy":{"from":"model:` + index.Digest[:12] + `","compute_dtype":"float32"},"instances":3,"think":false,"turns":1,"max_new_tokens":8,"protocol":"reprise","stop_at":[],"prefill":"rows","suites":[{"suite":"bandit-test","samples":2}]}`)})
	require.NoError(t, err)
	require.Equal(t, "apart", loaded.Run.ID)
	require.Equal(t, []activities.PlanSuite{{Name: "bandit-test", Turns: 1, Rows: 6}}, loaded.Plan.Suites)
	restored, err := one.Device.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: loaded.Run}, Evaluate: true})
	require.NoError(t, err)
	apart := iteration.NewEvaluation(Iteration{Run: loaded.Run, Plan: loaded.Plan, State: restored.State}.start(engine(t).Info()),
		iteration.Begin(loaded.Plan.Settings, nil))
	_, err = one.run(t.Context(), apart)
	require.NoError(t, err)
	require.Equal(t, first["bandit-test"].State, apart.Evaluations[0].State)
	require.Equal(t, first["bandit-test"].Trajectories.Digest, apart.Evaluations[0].Trajectories.Digest)

	var r host.EvaluationResult
	b, err := store.GetArtifact(t.Context(), one.store, *first["bandit-test"].Result)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &r))
	require.Equal(t, "bandit-test", r.Suite.Name)
	require.NotContains(t, string(b), "runs/")
	for _, name := range []string{"success/mean", "success/low", "success/high", "pass@1", "pass@2", "reward/mean", "turns/mean", "num_actions",
		"action_is_effective", "action_is_valid", "response_length/mean", "entropy/mean", "reference/random_success", "reference/best_success"} {
		require.Contains(t, r.Metrics, name)
	}
	require.InDelta(t, 0.5, float64(r.Metrics["reference/random_success"]), 0.2)
	require.EqualValues(t, 1, r.Metrics["reference/best_success"])
	require.LessOrEqual(t, r.Metrics["success/low"], r.Metrics["success/mean"])
	require.LessOrEqual(t, r.Metrics["success/mean"], r.Metrics["success/high"])
}

func TestEvaluateRun(t *testing.T) {
	r := begun(t, "measured", tinySpec(t, "evaluation.every=0"))
	r.iterate(t)
	for _, c := range []struct{ input, says string }{
		{`{}`, "policy: found nothing"},
		{`{"policy":"measured","suits":[]}`, `did you mean "suites"?`},
		{`{"policy":{"run":"measured","version":7}}`, "version 7 of run measured is not committed; the newest is 1"},
		{`{"policy":"nobody"}`, `no run "nobody"`},
		{`{"policy":"measured","suites":["sokoban-larg"]}`, `did you mean "sokoban-large"?`},
		{`{"policy":"model:0123456789ab"}`, "suites: found nothing"},
		{`{"policy":"model:0123456789ab","suites":["in-distribution"]}`, "a model has no distribution of its own"},
		{`{"policy":"model:0123456789ab","suites":["bandit"]}`, "no model"},
		{`{"policy":{"run":"measured","from":"hf:a/b"}}`, "a run and a model"},
		{`{"policy":"starter","suites":["bandit"]}`, `no run "starter"`},
		{`{"policy":{"from":"starter"},"suites":["bandit"]}`, "a starter is made by a run"},
	} {
		_, err := r.Host.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "e", Input: json.RawMessage(c.input)})
		require.ErrorContains(t, err, c.says, c.input)
		require.NotEmpty(t, run.KindOf(err), c.input)
	}
	loaded, err := r.Host.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "e", Input: json.RawMessage(`{"policy":"measured","samples":4,"temperature":0}`)})
	require.NoError(t, err)
	require.Equal(t, 1, loaded.Version)
	require.Equal(t, r.state, loaded.State)
	require.Equal(t, []activities.PlanSuite{{Name: "in-distribution", Turns: 1, Rows: 12}}, loaded.Plan.Suites)
	first, err := r.Host.ResolveEvaluation(t.Context(), activities.ResolveEvaluationInput{ID: "zero", Input: json.RawMessage(`{"policy":{"run":"measured","version":0}}`)})
	require.NoError(t, err)
	require.Zero(t, first.Version)
	require.Nil(t, first.Head)
	require.Equal(t, r.commits[0].StateBefore, first.State)
	require.Equal(t, r.Run.Base, first.Run.Base)
	written, err := run.ReadSpec(t.Context(), r.store, loaded.Run.Spec)
	require.NoError(t, err)
	require.Zero(t, written.Evaluation.Suites[0].Temperature)
	require.Equal(t, "evaluations/e/spec.", loaded.Run.Spec.Key[:len("evaluations/e/spec.")])
}

// Behind the window each turn is a row of its own, with the return of all turns,
// and the programs agree on what was sampled: the first ratio is 1.
func TestWindowedContexts(t *testing.T) {
	w := newWalked(t, "rollout.turns=3", "rollout.context_turns=1")
	require.Equal(t, w.kit.Training.Widths[0], w.kit.Training.Widths[2], "a window does not grow")
	first, g1, s1, _ := w.turn(nil, "Left</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
	require.True(t, g1[0].Restart)
	require.True(t, s1[0].NextRestart)
	second, g2, s2, _ := w.turn([]store.TurnRefs{first}, "Right</answer>", "Right</answer>", "Left</answer>…", "Left</answer>")
	require.True(t, g2[0].Restart)
	require.Equal(t, g2[0].PromptIDs, s1[0].NextIDs)
	require.Contains(t, w.tok.Decode(g2[1].PromptIDs), "Turn 2:\nat 1")
	require.NotContains(t, w.tok.Decode(g2[1].PromptIDs), "Right</answer>", "what was said before is not shown")
	require.True(t, s2[1].Success)
	third, g3, _, _ := w.turn([]store.TurnRefs{first, second}, "Right</answer>", "", "Left</answer>", "Left</answer>")
	require.Contains(t, w.tok.Decode(g3[0].PromptIDs), "Turn 3:\nat 1")

	turns := []store.TurnRefs{first, second, third}
	selected, err := w.Host.Select(t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: turns})
	require.NoError(t, err)
	rows, err := recorded.Selected(t.Context(), w.store, selected.Trajectories)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true}, rows[0].Restarts)
	require.Equal(t, []string{"at 0", "at 0", "at 1", "at 2"}, rows[0].StateKeys)
	require.Equal(t, []float64{0, 1, 2}, rows[0].Rewards)
	cut := episode.Stretches(rows)
	require.Len(t, cut, 3+2+3+3)
	require.Equal(t, append(append([]int32(nil), g2[0].PromptIDs...), g2[0].SampledIDs...), cut[1].Ids)
	require.Equal(t, len(g1[0].SampledIDs), cut[1].First)
	for i, sampled := range cut[1].Sampled {
		require.Equal(t, i >= len(g2[0].PromptIDs), sampled)
	}

	// Two turns in the window: the second of them shows the first.
	w = newWalked(t, "rollout.turns=3", "rollout.context_turns=2")
	first, _, s1, _ = w.turn(nil, "Left</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
	require.False(t, s1[0].NextRestart)
	second, g2, s2, _ = w.turn([]store.TurnRefs{first}, "Right</answer>", "Right</answer>", "Left</answer>…", "Left</answer>")
	require.True(t, s2[0].NextRestart)
	text := w.tok.Decode(s2[0].NextIDs)
	require.Contains(t, text, "Turn 2:\nat 0")
	require.Contains(t, text, "Turn 3:\nat 1")
	require.NotContains(t, text, "Turn 1:")
	at := indexOf(s2[0].NextIDs, g2[0].SampledIDs)
	require.Positive(t, at, "what was sampled stands as it was recorded")
	rows2 := episode.Trajectories(mustTurns(t, w, first, second), w.kit.Training.Label)
	require.Len(t, episode.Stretches(rows2[:1]), 1)
}

func mustTurns(t *testing.T, w *walked, refs ...store.TurnRefs) []episode.Turn {
	t.Helper()
	turns, err := recorded.Turns(t.Context(), w.store, refs)
	require.NoError(t, err)
	return turns
}

func indexOf(ids, part []int32) int {
	for i := range ids {
		if i+len(part) <= len(ids) && string(runes(ids[i:i+len(part)])) == string(runes(part)) {
			return i
		}
	}
	return -1
}

func runes(ids []int32) []rune { return append([]rune(nil), ids...) }

// A windowed run and a mixture with a real policy: exact, and the same twice.
func TestWindowAndMixtureIterate(t *testing.T) {
	t.Parallel()
	document := tinySpec(t, `environment={"mixture":[{"name":"`+walkName+`","share":3},{"name":"bandit"}]}`, "rollout.turns=3",
		"rollout.context_turns=1", "rollout.groups=4", "rollout.group_size=2", "evaluation.every=1", "evaluation.instances=4")
	r := begun(t, "mixed", document)
	in := r.iterate(t)
	require.Contains(t, in.Metrics, "actor/ratio_max")
	require.Zero(t, in.Metrics["actor/ratio_max"], "the programs agree")
	for _, name := range []string{"train/test-walk/success", "train/bandit/success", "train/bandit/pass@2", "train/test-walk/num_actions"} {
		require.Contains(t, in.Metrics, name)
	}
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, in.Trajectories)
	require.NoError(t, err)
	played := map[string]int{}
	for _, row := range rows {
		played[row.Environment]++
	}
	require.Equal(t, map[string]int{walkName: 6, "bandit": 2}, played)
	e := evaluations(in, 1)["in-distribution"]
	require.Contains(t, e.Metrics, "bandit/success")

	objects := r.objects(t)
	again := begun(t, "mixed", document)
	again.iterate(t)
	require.Equal(t, objects, again.objects(t))
}

// A model can be trained before the run begins: here on demonstrations alone.
func TestWarmStartOfAModel(t *testing.T) {
	r := begun(t, "pupil", tinySpec(t))
	index, err := run.ReadIndex(t.Context(), r.store, r.Base)
	require.NoError(t, err)
	document := tinySpec(t, `policy={"from":"model:`+index.Digest[:12]+`","compute_dtype":"float32","warm_start":{"steps":3,"rows":4,"learning_rate":1e-3}}`)
	resolved, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "taught", Spec: document})
	require.NoError(t, err)
	require.True(t, resolved.Plan.Prepare)
	require.Equal(t, r.Base, *resolved.Base)
	w, err := r.Device.WarmStart(t.Context(), activities.WarmStartInput{Run: "taught", Spec: resolved.Spec, Base: resolved.Base, Steps: 2})
	require.NoError(t, err)
	require.Equal(t, 2, w.Steps)
	r.forget(t)
	w, err = r.Device.WarmStart(t.Context(), activities.WarmStartInput{Run: "taught", Spec: resolved.Spec, Base: resolved.Base, From: w.Snapshot, Steps: 2})
	require.NoError(t, err)
	require.Equal(t, 3, w.Steps)
	require.NotNil(t, w.Base)
	require.NotEqual(t, r.Base, *w.Base)
	taught, err := run.ReadIndex(t.Context(), r.store, *w.Base)
	require.NoError(t, err)
	require.Equal(t, index.Files["tokenizer.json"].Digest, taught.Files["tokenizer.json"].Digest)

	_, err = r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "unadvised", Spec: tinySpec(t, `environment.name="`+walkName+`"`, "policy.warm_start.demonstrations=1")})
	require.ErrorContains(t, err, `policy.warm_start.demonstrations: found 1; allowed: 0 with the environment "test-walk" (it has no solver)`)
}
