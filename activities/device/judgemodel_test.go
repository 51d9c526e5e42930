package device

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// otherFamily is a folder with a tiny model of another family than the starter's, whose tokenizer and chat template are Llama's.
func otherFamily(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "model", "testdata", "llama-tiny"))
	require.NoError(t, err)
	return dir
}

// judgedBy are the edits of a run whose episodes a judge judges, and more options of the judge.
func judgedBy(judge, options string, more ...string) []string {
	return append([]string{
		"evaluation.every=0", "rollout.pass_rows=4",
		fmt.Sprintf(`rewards=[{"name":"judge","options":{"judge":%q,"prompt":"<b>{conversation} {form}","max_tokens":6,"unreadable":0.25,"prompt_tokens":512%s}}]`, judge, options),
	}, more...)
}

// graded are the questions of the newest iteration's first round, and what a model answered.
func (r *testRun) graded(t *testing.T) (questions []run.QuestionRow, grades []run.GradeRow) {
	t.Helper()
	last := r.commits[len(r.commits)-1].Turns
	for i, ref := range last[len(last)-1].Questions {
		q, err := tables.Get[run.QuestionRow](t.Context(), r.store, ref)
		require.NoError(t, err)
		g, err := tables.Get[run.GradeRow](t.Context(), r.store, last[len(last)-1].Grades[i])
		require.NoError(t, err)
		questions, grades = append(questions, q...), append(grades, g...)
	}
	require.NotEmpty(t, questions)
	require.Len(t, grades, len(questions))
	return questions, grades
}

// A model of another family judges: it is asked with its own chat template, in its own tokens, and what it answers is what a
// program of its own would sample. The manifest names its files, and a worker that has lost it computes the same.
func TestAnotherModelJudges(t *testing.T) {
	t.Parallel()
	dir := otherFamily(t)
	document := tinySpec(t, judgedBy("folder:"+dir, "", "snapshot.every=5")...)
	r := begun(t, "judged", document)
	in := r.iterate(t)
	require.Equal(t, 6, r.Plan.Questions)
	require.Contains(t, r.programs, "judge.prefill")
	require.NotContains(t, r.programs, "judge.forward")
	require.Equal(t, 0.25, float64(in.Metrics["verdicts/score/mean"]), "drawn weights do not know the form")

	whole, err := host.OpenModelFolder(dir)
	require.NoError(t, err)
	defer whole.Close()
	base, err := run.NewBaseModel(whole.Small)
	require.NoError(t, err)
	tok := base.Tokenizer
	questions, grades := r.graded(t)
	generate := model.GenerateInput{Greedy: true, Stop: tok.EndOfTurn()}
	for _, q := range questions {
		ids, err := tok.EncodeChat([]chat.Message{{Role: "user", Content: q.Text}}, true)
		require.NoError(t, err)
		generate.Prompts = append(generate.Prompts, ids)
	}
	p, err := r.Device.Engine.device.Programs(whole.Config, base.Legal, model.Shapes{GenerateRows: 4, PromptTokens: 512, MaxNewTokens: 6})
	require.NoError(t, err)
	defer p.Free()
	folder, err := model.OpenFS(os.DirFS(dir))
	require.NoError(t, err)
	state, err := p.LoadParams(folder.First())
	require.NoError(t, err)
	defer state.Free()
	want, err := p.Sampler.Generate(t.Context(), state, generate)
	require.NoError(t, err)
	for i, g := range grades {
		require.Empty(t, g.Refused)
		require.Equal(t, want.Tokens[i], g.IDs)
		require.NotEmpty(t, g.Reply)
	}

	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.Equal(t, "folder:"+dir, m.Judge.Name)
	require.Contains(t, m.Judge.Files, "model.safetensors")
	require.NotEqual(t, m.Base.Dir, m.Judge.Dir)
	verdicts, err := tables.Get[run.VerdictRow](t.Context(), r.store, *in.Turns[0].Verdicts)
	require.NoError(t, err)
	require.Equal(t, "folder:"+dir+" "+m.Judge.Digest, verdicts[0].Model)
	written, err := run.ReadSpec(t.Context(), r.store, r.Run.Spec)
	require.NoError(t, err)
	require.Equal(t, m.Judge.Digest, written.JudgeModel().Model)
	require.Contains(t, string(written.Rewards[0].Options), `"prompt":"<b>{conversation} {form}"`, "the other options keep their bytes")

	r.iterate(t)
	killed := begunIn(t, modelsOf(t, r.store), "judged", document)
	for n := range 2 {
		killed.forget(t)
		require.Nil(t, killed.Device.Engine.judge)
		killed.restore(t, activities.RestoreInput{})
		killed.iterate(t)
		require.Equal(t, r.commits[n].Turns, killed.commits[n].Turns)
	}
	require.Equal(t, r.head, killed.head)
}

// Version 0 of the run itself, named as a model beside it, answers what it answers as the run's own judge.
func TestARunsVersionJudges(t *testing.T) {
	t.Parallel()
	own := begun(t, "source", tinySpec(t, judgedBy("run", "", "policy.exact=false", "snapshot.every=1")...))
	own.iterate(t)
	questions, want := own.graded(t)
	named := begunIn(t, own.store, "named", tinySpec(t, judgedBy("run:source@0", "", "policy.exact=false")...))
	named.iterate(t)
	same, got := named.graded(t)
	for i := range want {
		require.Equal(t, questions[i].Text, same[i].Text)
		require.NotEqual(t, questions[i].Question, same[i].Question, "another judge is another question")
		require.Equal(t, want[i].IDs, got[i].IDs)
	}
	later := begunIn(t, own.store, "later", tinySpec(t, judgedBy("run:source@1", "")...))
	later.iterate(t)
	m, err := store.ReadManifest(t.Context(), own.store, *later.head)
	require.NoError(t, err)
	require.NotEqual(t, m.Base.Digest, m.Judge.Digest)
}

// A judge is copied once. Started again, a run has it from the store; under a digest that the spec gives, or not at all, a judge
// that is another is refused.
func TestAJudgeIsReadOnce(t *testing.T) {
	t.Parallel()
	dir := teacherFolder(t, starter.Second, 5)
	document := tinySpec(t, judgedBy("folder:"+dir, "")...)
	r := begun(t, "run", document)
	require.NoError(t, os.RemoveAll(dir))
	again, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "run", Spec: document})
	require.NoError(t, err)
	require.Equal(t, r.Run.Spec, again.Spec)

	resolve := func(s store.Store, edits ...string) error {
		_, err := (&host.Host{Store: s}).Resolve(t.Context(), activities.ResolveInput{Run: "other", Spec: tinySpec(t, edits...)})
		return err
	}
	written, err := run.ReadSpec(t.Context(), r.store, r.Run.Spec)
	require.NoError(t, err)
	digest := written.JudgeModel().Model
	require.NoError(t, resolve(r.store, judgedBy("folder:"+dir, fmt.Sprintf(`,"model":%q`, digest))...), "the store has it")
	other := "folder:" + teacherFolder(t, starter.Second, 6)
	err = resolve(store.NewMemory(), judgedBy(other, fmt.Sprintf(`,"model":%q`, digest))...)
	require.ErrorAs(t, err, new(spec.Problems))
	require.ErrorContains(t, err, "rewards: found judge "+digest)
	require.ErrorContains(t, err, other+" is that model now")
	require.ErrorIs(t, resolve(store.NewMemory(), judgedBy("run:nobody@3", "")...), activities.ErrNotFound)
	require.ErrorIs(t, resolve(store.NewMemory(), judgedBy("folder:"+t.TempDir(), "")...), activities.ErrModelInvalid)

	// One without a chat template cannot be asked.
	mute := t.TempDir()
	require.NoError(t, os.CopyFS(mute, os.DirFS(otherFamily(t))))
	require.NoError(t, os.Remove(filepath.Join(mute, "chat_template.jinja")))
	err = resolve(store.NewMemory(), judgedBy("folder:"+mute, "")...)
	require.ErrorAs(t, err, new(spec.Problems))
	require.ErrorContains(t, err, "which cannot be asked: ")
}

// A device that answers otherwise by the judge the second time is refused before the run begins.
func TestSelfTestOfTheJudge(t *testing.T) {
	t.Parallel()
	refusesWhatDiffers(t, tinySpec(t, judgedBy("folder:"+otherFamily(t), `,"prompt_tokens":64`)...), "replies of the judge", func(e *Engine) {
		require.NotNil(t, e.judge, "it was tested itself, and stays")
	})
}

// Questions are dealt to devices, each of which has the judge, in bfloat16 and with adapters under the policy alone: the bytes are
// those of one device.
func TestJudgeModelOnSeveralDevices(t *testing.T) {
	t.Parallel()
	sameOnDevices(t, adapted(t, judgedBy("folder:"+otherFamily(t), "", `policy.compute_dtype="bfloat16"`, "policy.exact=false", "rollout.pass_rows=2")...))
}

// A question that is longer than the judge's programs take is refused, in tokens of the judge.
func TestQuestionsTooLongForTheJudge(t *testing.T) {
	t.Parallel()
	r := begun(t, "small", tinySpec(t, judgedBy("folder:"+otherFamily(t), `,"prompt_tokens":16,"failed_share":0.5`)...))
	_, err := r.Iterate(t.Context(), r.iteration())
	require.ErrorContains(t, err, "the option prompt_tokens is 16")
}
