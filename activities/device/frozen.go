package device

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// teacher makes the engine hold the run's teacher. It stays until another run comes.
func (w *work) teacher(ctx context.Context, s store.Store, of activities.Run) (*model.State, error) {
	return w.frozenModel(ctx, s, of, "teacher", w.Teacher, teacherKey(w.Context, of), &w.engine.teacher)
}

// judgeModel makes the engine hold the model that judges the run's episodes. It stays until another run comes.
func (w *work) judgeModel(ctx context.Context, s store.Store, of activities.Run) (*model.State, error) {
	shapes, _ := w.JudgeShapes()
	return w.frozenModel(ctx, s, of, "judge", w.JudgeModel, judgeKey(w.Context, of, shapes), &w.engine.judge)
}

// frozenModel makes the engine hold a model beside the policy in its place of the memory, unless it is there. Errors call it what.
func (w *work) frozenModel(ctx context.Context, s store.Store, of activities.Run, what string, m *run.Frozen, key programsKey,
	place **model.State) (*model.State, error) {
	if *place != nil {
		return *place, nil
	}
	begin := time.Now()
	p, err := w.engine.prepared(key, w.Context, of)
	if err != nil {
		return nil, err
	}
	folder, err := model.OpenFS(store.FS(ctx, s, m.Files, &w.reading))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, run.ModelError(err))
	}
	if *place, err = p.LoadFrozen(folder.First()); err != nil {
		return nil, fmt.Errorf("load the %s: %w", what, run.ModelError(err))
	}
	w.measured.LoadSeconds += time.Since(begin).Seconds()
	return *place, nil
}

// testFrozen tests the models beside the policy: see testTeacher and testJudge.
func (w *work) testFrozen(ctx context.Context, s store.Store, of activities.Run) error {
	begin := time.Now()
	defer func() {
		took := time.Since(begin).Seconds()
		w.measured.CompileSeconds += took
		w.measured.SelfTestSeconds += took
	}()
	if w.Train.Teacher != nil {
		if err := w.testTeacher(ctx, s, of); err != nil {
			return err
		}
	}
	if w.JudgeModel != nil {
		return w.testJudge(ctx, s, of)
	}
	return nil
}

// testTeacher has the device score a micro-batch twice by the run's teacher, and each of several devices the same. A probe of the
// teacher's size would need more memory than the teacher, so it is tested itself, and stays.
func (w *work) testTeacher(ctx context.Context, s store.Store, of activities.Run) error {
	p, err := w.engine.teacherFor(w.Context, of)
	if err != nil {
		return err
	}
	return w.testOnce(teacherKey(w.Context, of), p, func() error {
		rows := w.selfTestRows(w.TeacherShapes(), draw.Address{Purpose: "self-test"}.Rand())[0]
		all := slices.Repeat([]batch.MicroBatch{rows}, w.engine.device.Count())
		if w.Teacher == nil {
			return w.testOwnTeacher(ctx, of, p, all)
		}
		state, err := w.teacher(ctx, s, of)
		if err != nil {
			return err
		}
		return w.twice(ctx, "scoring of the teacher", func() (gave []string, err error) {
			scores, err := p.Scorer.ScoreAll(ctx, state, all, 1)
			for _, of := range scores {
				gave = append(gave, fmt.Sprint(of))
			}
			return gave, err
		})
	})
}

// twice tests what models beside the policy compute: on each device, the second time as the first and on all of them as on one.
func (w *work) twice(ctx context.Context, what string, compute func() ([]string, error)) error {
	var gave [2][]string
	for i := range gave {
		var err error
		if gave[i], err = compute(); err != nil {
			return fmt.Errorf("self-test: %s: %w", what, err)
		}
	}
	if err := same(what, gave[0][0], w.planted(ctx, gave[1][0])); err != nil {
		return err
	}
	return w.agree(ctx, what, gave[0])
}

// testOwnTeacher is the test of a policy that is its own teacher, on probes of the policy.
func (w *work) testOwnTeacher(ctx context.Context, of activities.Run, teaching *model.Programs, all []batch.MicroBatch) error {
	const what = "scoring of the teacher"
	policy, err := w.engine.programsFor(w.Context, of, w.Shapes(w.Training, 1))
	if err != nil {
		return err
	}
	var gave []string
	if err := w.repeats(ctx, what, policy, func(probe *model.State) (string, *model.State, error) {
		gave = nil
		scores, err := teaching.Scorer.ScoreAll(ctx, probe, all, 1)
		for _, of := range scores {
			gave = append(gave, fmt.Sprint(of))
		}
		return strings.Join(gave, " "), probe, err
	}); err != nil {
		return err
	}
	return w.agree(ctx, what, gave)
}

// testJudge has the device answer a pass of questions twice by the model that judges, and each of several devices the same.
func (w *work) testJudge(ctx context.Context, s store.Store, of activities.Run) error {
	shapes, _ := w.JudgeShapes()
	key := judgeKey(w.Context, of, shapes)
	p, err := w.engine.prepared(key, w.Context, of)
	if err != nil {
		return err
	}
	return w.testOnce(key, p, func() error {
		state, err := w.judgeModel(ctx, s, of)
		if err != nil {
			return err
		}
		draws := draw.Address{Purpose: "self-test"}.Rand()
		in := model.GenerateInput{Greedy: true, Stop: w.JudgeModel.Tokenizer.EndOfTurn()}
		for range shapes.GenerateRows {
			in.Prompts = append(in.Prompts, legalIDs(w.JudgeModel.Legal, shapes.PromptTokens, draws))
		}
		unit := len(in.Prompts)
		in.Prompts = slices.Concat(slices.Repeat([][][]int32{in.Prompts}, w.engine.device.Count())...)
		return w.twice(ctx, "replies of the judge", func() (gave []string, err error) {
			got, err := p.Sampler.Generate(ctx, state, in)
			if err != nil {
				return nil, err
			}
			for k := range w.engine.device.Count() {
				gave = append(gave, fmt.Sprint(got.Tokens[k*unit:(k+1)*unit], got.LogProbs[k*unit:(k+1)*unit]))
			}
			return gave, nil
		})
	})
}
