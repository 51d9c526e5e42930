package workers

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// ownJudgeSpec has each turn judged by the run's own engine, in pieces of 8 questions.
func ownJudgeSpec(version string) []byte {
	return fmt.Appendf(nil, `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 20, "rows": 8, "learning_rate": 0.02}},
	"environment": {"name": "frozenlake", "options": {"size": 3}},
	"rewards": [{"name": "judge", "options": {"judge": "run", "model": %q, "level": "turn", "prompt": "{reply} {form}", "prompt_tokens": 256, "max_tokens": 4,
		"unreadable": 0.25, "failed_share": 1}}],
	"rollout": {"groups": 2, "group_size": 8, "turns": 2, "max_new_tokens": 8, "pass_rows": 4, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 0}, "limits": {"generate_rows": 8}
}`, version)
}

// The run's own engine judges: its questions and its answers are artifacts of the iteration, and a replay computes them
// again to the bit.
func TestOwnJudge(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx := t.Context()
	sampled := map[string][][]int32{}
	for _, version := range []string{"first", "current"} {
		s := store.NewMemory()
		_, err := train.New(engine, s).Train(ctx, version, ownJudgeSpec(version))
		require.NoError(t, err)
		head, err := store.Head(ctx, s, version)
		require.NoError(t, err)
		chain, err := store.LoadChain(ctx, s, head.Ref)
		require.NoError(t, err)
		for n, link := range chain {
			m := link.Manifest
			last := m.Turns[len(m.Turns)-1]
			require.NotEmpty(t, last.Questions)
			require.Len(t, last.Grades, len(last.Questions))
			require.NotNil(t, last.Verdicts)
			require.Nil(t, m.Turns[0].Questions)
			questions := 0
			for k, ref := range last.Questions {
				asked, err := tables.Get[run.QuestionRow](ctx, s, ref)
				require.NoError(t, err)
				answers, err := tables.Get[run.GradeRow](ctx, s, last.Grades[k])
				require.NoError(t, err)
				require.Len(t, answers, len(asked))
				require.LessOrEqual(t, len(asked), 8)
				questions += len(asked)
				for i, a := range answers {
					require.Equal(t, asked[i].Question, a.Question)
					require.Contains(t, asked[i].Text, "score: VALUE")
					require.Empty(t, a.Refused)
					require.NotEmpty(t, a.IDs)
					require.LessOrEqual(t, len(a.IDs), 4)
					if n == 1 && k == 0 {
						sampled[version] = append(sampled[version], a.IDs)
					}
				}
			}
			require.Positive(t, questions)
			require.Equal(t, 1.0, float64(m.Metrics["judge/unreadable"]), "a starter does not know the form")
			require.Equal(t, 0.25, float64(m.Metrics["verdicts/score/mean"]))
			verdicts, err := tables.Get[run.VerdictRow](ctx, s, *last.Verdicts)
			require.NoError(t, err)
			require.Equal(t, "run "+version, verdicts[0].Model)
			hashed := false
			for name := range m.Programs {
				hashed = hashed || strings.HasPrefix(name, "judge.")
			}
			require.True(t, hashed, "the programs that judge are the run's: %v", m.Programs)
		}
		got, err := ReplayIteration(ctx, s, opened, version, 1, func(string) {})
		require.NoError(t, err)
		require.True(t, got.Same(), "%v", got.Differences)
		report, err := store.Verify(ctx, s, version, nil)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		garbage, err := store.FindGarbage(ctx, s, version, store.GarbageOptions{Grace: -1, Ended: true})
		require.NoError(t, err)
		for _, o := range garbage.Objects {
			require.NotContains(t, o.Key, "/grades")
			require.NotContains(t, o.Key, "/questions")
		}
	}
	require.NotEmpty(t, sampled["first"])

	// Another model judges: a replay computes its answers again from the files that the manifest names.
	dir, err := filepath.Abs("../model/testdata/llama-tiny")
	require.NoError(t, err)
	other := strings.Replace(string(ownJudgeSpec("")), `"judge": "run", "model": ""`, fmt.Sprintf(`"judge": %q`, "folder:"+dir), 1)
	models := store.NewMemory()
	_, err = train.New(engine, models).Train(ctx, "other", []byte(other))
	require.NoError(t, err)
	got, err := ReplayIteration(ctx, models, opened, "other", 1, func(string) {})
	require.NoError(t, err)
	require.True(t, got.Same(), "%v", got.Differences)
	head, err := store.Head(ctx, models, "other")
	require.NoError(t, err)
	weights := head.Manifest.Judge.Files["model.safetensors"]
	require.NoError(t, models.Delete(ctx, weights.Key))
	report, err := store.Verify(ctx, models, "other", nil)
	require.NoError(t, err)
	require.False(t, report.OK(), "the judge is of the chain")

	// A question that is too long is refused, and its episode has no verdict.
	s := store.NewMemory()
	small := strings.NewReplacer(`"prompt_tokens": 256`, `"prompt_tokens": 16`, `"failed_share": 1`, `"failed_share": 0.5`).Replace(string(ownJudgeSpec("first")))
	_, err = train.New(engine, s).Train(ctx, "small", []byte(small))
	require.ErrorContains(t, err, "the option prompt_tokens is 16")
	require.ErrorContains(t, err, "the judge gave no verdict about 16 of 16 episodes")
}
