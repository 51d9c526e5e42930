package device

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// teacherFolder is a Hugging Face folder with a model of another shape than the runs' policies, with drawn weights.
func teacherFolder(t *testing.T, v starter.Vocabulary, seed uint64) string {
	t.Helper()
	dir := t.TempDir()
	files, err := model.DrawnFiles(StarterConfig(spec.Starter{Layers: 2, HiddenSize: 16, IntermediateSize: 24, Heads: 2, KVHeads: 2, Tokenizer: int(v)}),
		draw.Address{Seed: seed, Purpose: draw.Weights})
	require.NoError(t, err)
	for _, f := range files {
		b, err := io.ReadAll(f.Open())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), b, 0o644))
	}
	for name, b := range v.Files() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return dir
}

// taughtBy is an edit of a spec.
func taughtBy(from string) string { return fmt.Sprintf(`teacher={"from":%q}`, from) }

// distilled are the edits of a run that learns from a teacher in several turns.
func distilled(from string, more ...string) []string {
	return append([]string{
		`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", "snapshot.every=5",
		`credit.algorithm="distill"`, taughtBy(from),
	}, more...)
}

// scores are the rows of an iteration's scores table.
func (r *testRun) scores(t *testing.T, in activities.CommitInput) []episode.ScoreRow {
	t.Helper()
	rows, err := run.ReadScores(t.Context(), r.store, in.Scores, "scores", spec.Credit{Algorithm: "distill"})
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	return rows
}

// A policy that is its own teacher finds nothing to learn: the teacher's log-probs are its own, to the bit, and every advantage is
// 0. One update later they are those of version 0 still, as the teacher's are that is scored by its own run.
func TestTheTeacherScoresTheRows(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	source := begun(t, "source", tinySpec(t, distilledless()...))
	source.iterate(t)
	own := begunIn(t, source.store, "own", tinySpec(t, distilled("run:source@0")...))
	require.Equal(t, source.Run.Base, own.Run.Base)
	first := own.iterate(t)
	require.Zero(t, first.Metrics["actor/teacher_kl"])
	for _, row := range own.scores(t, first) {
		require.NotEmpty(t, row.LogProbs)
		require.Equal(t, row.LogProbs, row.TeacherLogProbs)
	}
	for _, row := range own.batch(t, first) {
		require.Zero(t, slices.Max(row.Columns[batch.Advantages]))
		require.Zero(t, slices.Min(row.Columns[batch.Advantages]))
	}

	// Another teacher, the same rows: a model of another shape.
	dir := teacherFolder(t, starter.First, 5)
	other := begunIn(t, modelsOf(t, source.store), "other", tinySpec(t, distilled("folder:"+dir)...))
	in := other.iterate(t)
	require.Contains(t, other.programs, "teacher.forward")
	require.NotContains(t, other.programs, "teacher.backward")
	kl, n := 0.0, 0
	rows := other.scores(t, in)
	for _, row := range rows {
		require.Len(t, row.TeacherLogProbs, len(row.LogProbs))
		for i := range row.LogProbs {
			kl, n = kl+float64(row.LogProbs[i])-float64(row.TeacherLogProbs[i]), n+1
		}
	}
	require.InDelta(t, kl/float64(n), float64(in.Metrics["actor/teacher_kl"]), 1e-6)
	require.Greater(t, float64(in.Metrics["actor/teacher_kl"]), 0.001)
	other.teacherScores(t, in, rows)

	// The manifest names the teacher's files, so that they are verified; a snapshot has none of it.
	m, err := store.ReadManifest(t.Context(), other.store, *other.head)
	require.NoError(t, err)
	require.Equal(t, "folder:"+dir, m.Teacher.Name)
	named := map[string]bool{}
	for _, ref := range m.Refs() {
		named[ref.Role] = true
	}
	require.True(t, named[`teacher.files["model.safetensors"]`])
	written, err := run.ReadSpec(t.Context(), other.store, other.Run.Spec)
	require.NoError(t, err)
	require.Equal(t, m.Teacher.Digest, written.Teacher.Model)
	require.Equal(t, m.Teacher.Digest, other.Plan.Teacher)
}

// teacherScores compares a run's teacher's log-probs with those that the same weights give in programs of their own.
func (r *testRun) teacherScores(t *testing.T, in activities.CommitInput, rows []episode.ScoreRow) {
	t.Helper()
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	folder, err := model.OpenFS(store.FS(t.Context(), r.store, m.Teacher.Files, nil))
	require.NoError(t, err)
	all, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, nil)
	require.NoError(t, err)
	tok, err := starter.First.Tokenizer()
	require.NoError(t, err)
	legal, err := tok.Legal(folder.Config.VocabSize)
	require.NoError(t, err)
	require.NotContains(t, legal, false, "else LogProbs would count others")
	for i, row := range episode.SelectedOf(all)[:2] {
		logProbs, _, err := model.LogProbs(t.Context(), r.Device.Engine.device, folder.First(), [][]int32{row.IDs})
		require.NoError(t, err)
		at, j := 0, 0
		for k := range row.PromptLengths {
			at += int(row.PromptLengths[k])
			for range row.SampledLengths[k] {
				require.InDelta(t, logProbs[0][at-1], rows[i].TeacherLogProbs[j], 1e-4, "row %d, token %d", i, at)
				at, j = at+1, j+1
			}
		}
	}
}

// distilledless are the edits of a run on the same task without a teacher, and with the same version 0.
func distilledless() []string {
	return []string{`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", "snapshot.every=1"}
}

// taught are the edits of a warm start that teaches something.
func taught(steps int, edits []string) []string {
	return append(edits, fmt.Sprintf("policy.warm_start.steps=%d", steps), "policy.warm_start.learning_rate=0.01", "policy.warm_start.rows=16")
}

// The student comes nearer to its teacher, here the snapshot of a run that has learned longer to speak.
func TestAStudentComesNearerToItsTeacher(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	source := begun(t, "source", tinySpec(t, taught(120, distilledless())...))
	source.iterate(t)
	edits := taught(20, distilled("run:source", "rollout.groups=8", "rollout.group_size=8", "update.micro_batch=32", "update.learning_rate=0.003",
		"update.entropy_coefficient=0", "iterations=8"))
	student := begunIn(t, source.store, "student", tinySpec(t, edits...))
	m, err := store.ReadManifest(t.Context(), source.store, *source.head)
	require.NoError(t, err)
	_, teacher, err := run.FindModel(t.Context(), student.store, student.Plan.Teacher)
	require.NoError(t, err)
	for name, ref := range teacher.Files {
		require.Equal(t, m.Snapshot.Files[name].Digest, ref.Digest, name)
		require.Equal(t, teacher.Dir+"/"+name, ref.Key)
	}
	require.NotContains(t, teacher.Files, "optimizer.safetensors")
	var kl []float64
	for range 8 {
		kl = append(kl, float64(student.iterate(t).Metrics["actor/teacher_kl"]))
	}
	t.Log("nats to the teacher:", kl)
	require.Less(t, kl[6]+kl[7], 0.8*(kl[0]+kl[1]))

	// The store of the other has the teacher alone, and not the run that it is from. Its worker loses policy and teacher, and scores
	// and learns the same.
	killed := begunIn(t, modelsOf(t, student.store), "student", tinySpec(t, pinned(student.Plan.Teacher, edits)...))
	for n := range 2 {
		if n > 0 {
			killed.forget(t)
			require.Nil(t, killed.Device.Engine.teacher)
			require.Equal(t, killed.state, killed.restore(t, activities.RestoreInput{}).State)
		}
		require.Equal(t, student.commits[n].StateAfter, killed.iterate(t).StateAfter)
		require.Equal(t, student.commits[n].Scores, killed.commits[n].Scores)
		require.Equal(t, student.commits[n].Metrics, killed.commits[n].Metrics)
	}
}

// pinned are edits with the teacher's digest, and nothing that it could be read from again.
func pinned(digest string, edits []string) []string {
	out := slices.Clone(edits)
	for i, edit := range out {
		if edit == taughtBy("run:source") {
			out[i] = fmt.Sprintf(`teacher={"from":"run:source","model":%q}`, digest)
		}
	}
	return out
}

// Score is cut into pieces with the teacher's column too, and a scores table of another model's rows is refused.
func TestTeacherInPieces(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	dir := teacherFolder(t, starter.First, 5)
	whole := begun(t, "run", tinySpec(t, distilled("folder:"+dir)...))
	in := whole.iterate(t)
	cut := begunIn(t, modelsOf(t, whole.store), "run", tinySpec(t, distilled("folder:"+dir, "limits.score_rows=4")...))
	pieces := cut.iterate(t)
	require.Equal(t, in.Scores, pieces.Scores)
	require.Equal(t, in.StateAfter, pieces.StateAfter)

	_, err := cut.Device.Score(t.Context(), activities.ScoreInput{
		Policy: cut.version(), Iteration: 1, Settings: cut.Plan.Settings, Trajectories: in.Trajectories,
		Under: &activities.Under{Model: "another"},
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "which is not the run's teacher")
}

// What cannot teach is refused with a sentence when the run is resolved.
func TestRefusedTeachers(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	resolve := func(s store.Store, edits ...string) error {
		_, err := (&host.Host{Store: s}).Resolve(t.Context(), activities.ResolveInput{Run: "student", Spec: tinySpec(t, edits...)})
		return err
	}
	second := teacherFolder(t, starter.Second, 5)
	err := resolve(store.NewMemory(), distilled("folder:"+second)...)
	require.ErrorAs(t, err, new(spec.Problems))
	require.ErrorContains(t, err, "teacher.from: found folder:"+second+", a model with another vocabulary than the policy's: id ")
	require.ErrorContains(t, err, "allowed: a model whose tokenizer has the policy's tokens under the same ids")

	err = resolve(store.NewMemory(), distilled("run:nobody@3")...)
	require.ErrorIs(t, err, activities.ErrNotFound)
	err = resolve(store.NewMemory(), distilled("folder:"+t.TempDir())...)
	require.ErrorIs(t, err, activities.ErrModelInvalid)

	source := begun(t, "source", tinySpec(t, append(distilledless(), "snapshot.every=2")...))
	source.iterate(t)
	err = resolve(source.store, distilled("run:source@1")...)
	require.ErrorIs(t, err, activities.ErrNotFound)
	require.ErrorContains(t, err, `version 1 of run "source" has no snapshot; the newest before it is that of version 0`)
	err = resolve(source.store, distilled("run:source@7")...)
	require.ErrorContains(t, err, `version 7 of run source is not committed; the newest is 1`)

	// A digest that the spec gives is the teacher's, or the run is refused; where the store has it, nothing is read again.
	wrong := distilled("run:source@0")
	wrong[len(wrong)-1] = `teacher={"from":"run:source@0","model":"` + fmt.Sprintf("%064x", 7) + `"}`
	require.ErrorContains(t, resolve(source.store, wrong...), "teacher.model")
}

// A run that is started again needs its teacher's folder no more, and its spec does not differ.
func TestATeacherIsReadOnce(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	dir := teacherFolder(t, starter.First, 5)
	document := tinySpec(t, distilled("folder:"+dir)...)
	r := begun(t, "run", document)
	require.NoError(t, os.RemoveAll(dir))
	again, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "run", Spec: document})
	require.NoError(t, err)
	require.Equal(t, r.Run.Spec, again.Spec)
	require.Equal(t, r.Plan.Teacher, again.Plan.Teacher)
	r.iterate(t)
	again, err = r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "run", Spec: document})
	require.NoError(t, err)
	require.Equal(t, r.Run.Spec, again.Spec)

	// Its files are what their digests say, or it does not teach.
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	alter(t, r.store, m.Teacher.Files["model.safetensors"].Key)
	r.forget(t)
	r.restore(t, activities.RestoreInput{})
	_, err = r.Iterate(t.Context(), r.iteration())
	require.ErrorIs(t, err, store.ErrAltered)
}

// A device that scores otherwise by the teacher the second time is refused before the run begins.
func TestSelfTestOfTheTeacher(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	refusesWhatDiffers(t, tinySpec(t, distilled("folder:"+teacherFolder(t, starter.First, 5))...), "scoring of the teacher", func(e *Engine) {
		require.NotNil(t, e.teacher, "it was tested itself, and stays")
		require.NotNil(t, e.state)
	})
}

// Adapters learn from a whole model, in bfloat16 and rows of several widths, on one device or two with the same bytes: each has the
// teacher.
func TestTeacherOnSeveralDevices(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "distill")
	m := sameOnDevices(t, adapted(t, distilled("folder:"+teacherFolder(t, starter.First, 5), `policy.compute_dtype="bfloat16"`, "policy.exact=false", "update.micro_batch=2",
		"update.widths=3")...))
	require.NotZero(t, m["actor/teacher_kl"])
}
