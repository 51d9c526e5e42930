package device

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// selfTaught are the edits of a run whose policy is its own teacher, on a task whose success is luck.
func selfTaught(more ...string) []string {
	return append(taught(60, []string{
		`environment.name="` + luckName + `"`, "rollout.turns=2", "rollout.groups=3", "rollout.group_size=4", "evaluation.every=0", "snapshot.every=1",
		`credit.algorithm="distill"`, `teacher={"from":"self","context":"success","context_tokens":100}`,
	}), more...)
}

// The policy is its own teacher: it scores each row again behind the actions of the first other row of its group that succeeded, and
// the table says which that is. Where none has, it has nothing to say, and the row teaches nothing.
func TestAPolicyIsItsOwnTeacher(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	r := begun(t, "own", tinySpec(t, selfTaught()...))
	require.Equal(t, &activities.Under{Context: spec.ShownSuccess}, r.Plan.Under())
	in := r.iterate(t)
	require.Contains(t, r.programs, "teacher.forward")
	require.NotContains(t, r.programs, "teacher.backward")
	all, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, nil)
	require.NoError(t, err)
	scores := r.scores(t, in)
	shown := 0
	first := map[bool]int{} // places of a row that was taught, and of one that was not
	for i, row := range scores {
		require.Len(t, row.TeacherLogProbs, len(row.LogProbs))
		first[row.Shown >= 0] = i
		want := int32(run.NothingShown)
		for _, other := range all {
			if other.Group == all[i].Group && other.Row != row.Row && other.Success && want == run.NothingShown {
				want = other.Row
			}
		}
		if want >= 0 && strings.Join(all[want].Actions, "") == "" {
			want = run.NothingShown // it did nothing
		}
		require.Equal(t, want, row.Shown, "row %d", row.Row)
		if row.Shown < 0 {
			require.Equal(t, row.LogProbs, row.TeacherLogProbs)
			continue
		}
		shown++
		require.NotEqual(t, row.LogProbs, row.TeacherLogProbs)
	}
	require.InDelta(t, float64(shown)/float64(len(scores)), float64(in.Metrics["actor/teacher_shown"]), 1e-12)
	require.NotZero(t, in.Metrics["actor/teacher_kl"])
	require.NotZero(t, shown)
	r.scoredBehind(t, all, scores)
	for _, row := range r.batch(t, in) {
		untaught := slices.ContainsFunc(scores, func(s episode.ScoreRow) bool { return s.Row == row.Row && s.Shown < 0 })
		if untaught {
			require.Zero(t, slices.Max(row.Columns[batch.Advantages]))
			require.Zero(t, slices.Min(row.Columns[batch.Advantages]))
		}
	}
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.Nil(t, m.Teacher, "it is the policy")

	// Of a worker that loses the policy, the next iteration is the same; of pieces too.
	second := r.iterate(t)
	again := begunIn(t, modelsOf(t, r.store), "own", tinySpec(t, selfTaught("limits.score_rows=4")...))
	again.iterate(t)
	again.forget(t)
	again.restore(t, activities.RestoreInput{})
	pieces := again.iterate(t)
	for i, want := range []activities.CommitInput{in, second} {
		require.Equal(t, want.Scores, again.commits[i].Scores)
		require.Equal(t, want.Metrics, again.commits[i].Metrics)
	}
	require.Equal(t, second.StateAfter, pieces.StateAfter)
}

// scoredBehind compares the log-probs of the rows behind what they were shown with those that version 0 gives in programs of its own.
func (r *testRun) scoredBehind(t *testing.T, rows []episode.TrajectoryRow, scores []episode.ScoreRow) {
	t.Helper()
	rc, err := r.Device.contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	shown, err := rc.ShownBefore(rows, rows, 0, 0, r.Plan.Settings.Rollout)
	require.NoError(t, err)
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	folder, err := model.OpenFS(store.FS(t.Context(), r.store, m.Base.Files, nil))
	require.NoError(t, err)
	compared := 0
	for i, row := range rows {
		if compared == 2 || shown[i].IDs == nil {
			continue
		}
		compared++
		text := rc.Tokenizer.Decode(shown[i].IDs)
		require.Contains(t, text, "system\nActions that solve this task, turn by turn:\n "+strings.SplitN(rows[shown[i].Row].Actions[0], " ", 2)[0])
		ids := slices.Concat(shown[i].IDs, row.IDs)
		logProbs, _, err := model.LogProbs(t.Context(), r.Device.Engine.device, folder.First(), [][]int32{ids})
		require.NoError(t, err)
		at, j := len(shown[i].IDs), 0
		for k := range row.PromptLengths {
			at += int(row.PromptLengths[k])
			for range row.SampledLengths[k] {
				require.InDelta(t, logProbs[0][at-1], scores[i].TeacherLogProbs[j], 1e-4, "row %d, token %d", i, at)
				at, j = at+1, j+1
			}
		}
	}
	require.NotZero(t, compared)
}

// Shown nothing, the policy finds as its own teacher what it finds as itself, to the bit, though its program is wider.
func TestShownNothingTheTeacherIsThePolicy(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	r := begun(t, "own", tinySpec(t, selfTaught("policy.exact=true")...))
	in := r.iterate(t)
	rows, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, nil)
	require.NoError(t, err)
	w, done, err := r.Device.begin(t.Context(), r.Run)
	require.NoError(t, err)
	defer done(&err)
	s, err := w.scorer(t.Context(), r.store, r.Run, 1, nil, r.Plan.Under())
	require.NoError(t, err)
	s.shown = slices.Repeat([]run.Shown{{IDs: []int32{}}}, len(rows))
	table := make([]episode.ScoreRow, len(rows))
	require.NoError(t, w.score(t.Context(), s, episode.Stretches(rows), table))
	require.Greater(t, s.self.Shapes().Sequence, s.policy.Shapes().Sequence)
	for _, row := range table {
		require.NotEmpty(t, row.LogProbs)
		require.Equal(t, row.LogProbs, row.TeacherLogProbs)
	}
}

// onLakes are the edits of a run whose policy is its own teacher, and is shown a solver's play.
func onLakes(more ...string) []string {
	return append([]string{
		`environment={"name":"frozenlake","options":{"slippery":false,"max_actions":8,"max_actions_per_turn":4}}`, "rollout.turns=2",
		"rollout.groups=3", "rollout.group_size=2", "evaluation.every=0", `credit.algorithm="sdar"`, `teacher={"from":"self","context":"demonstration","context_tokens":100}`,
	}, more...)
}

// A solver shows each row how its own lake is crossed.
func TestShownASolversPlay(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "sdar")
	r := begun(t, "own", tinySpec(t, onLakes()...))
	in := r.iterate(t)
	require.InDelta(t, 1, float64(in.Metrics["actor/teacher_shown"]), 1e-12)
	rc, err := r.Device.contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	rows, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, nil)
	require.NoError(t, err)
	shown, err := rc.ShownBefore(rows, rows, 0, 0, r.Plan.Settings.Rollout)
	require.NoError(t, err)
	for i, row := range r.scores(t, in) {
		require.Equal(t, row.Row, row.Shown)
		require.Equal(t, shown[i&^1].IDs, shown[i].IDs, "the members of a group have one lake")
	}
	require.NotEqual(t, shown[0].IDs, shown[2].IDs)
}

func TestRefusedContexts(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	resolve := func(edits ...string) error {
		_, err := (&host.Host{Store: store.NewMemory()}).Resolve(t.Context(), activities.ResolveInput{Run: "own", Spec: tinySpec(t, selfTaught(edits...)...)})
		return err
	}
	require.NoError(t, resolve())
	err := resolve(`teacher={"from":"self","context":"success","context_tokens":5}`)
	require.ErrorAs(t, err, new(spec.Problems))
	require.ErrorContains(t, err, "teacher.context_tokens: found 5; allowed: more than ")
	err = resolve(`teacher={"from":"self","context":"demonstration","context_tokens":100}`)
	require.ErrorContains(t, err, `teacher.context: found "demonstration"`)
	require.ErrorContains(t, err, "it has no solver")

	r := begun(t, "own", tinySpec(t, selfTaught()...))
	in := r.iterate(t)
	_, err = r.Device.Score(t.Context(), activities.ScoreInput{
		Policy: r.version(), Iteration: 1, Settings: r.Plan.Settings, Trajectories: in.Trajectories, Under: &activities.Under{Context: "demonstration"},
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, `the context "demonstration", which is not the run's teacher's`)
}

// A device that scores otherwise behind what is shown the second time is refused before the run begins.
func TestSelfTestOfAPolicyThatTeachesItself(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	refusesWhatDiffers(t, tinySpec(t, selfTaught()...), "scoring of the teacher", func(e *Engine) {
		require.Nil(t, e.teacher)
	})
}

// Adapters that teach themselves, in bfloat16 and rows of several widths, on one device or two with the same bytes.
func TestSelfTaughtOnSeveralDevices(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "sdar")
	m := sameOnDevices(t, adapted(t, onLakes(`policy.compute_dtype="bfloat16"`, "policy.exact=false", "update.micro_batch=2", "update.widths=3")...))
	require.NotZero(t, m["actor/teacher_shown"])
}
