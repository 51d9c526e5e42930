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
	if w.engine.teacher != nil {
		return w.engine.teacher, nil
	}
	begin := time.Now()
	p, err := w.engine.teacherFor(w.Context, of)
	if err != nil {
		return nil, err
	}
	folder, err := model.OpenFS(store.FS(ctx, s, w.Teacher.Files, &w.reading))
	if err != nil {
		return nil, fmt.Errorf("teacher: %w", run.ModelError(err))
	}
	if w.engine.teacher, err = p.LoadFrozen(folder.First()); err != nil {
		return nil, fmt.Errorf("load the teacher: %w", run.ModelError(err))
	}
	w.measured.LoadSeconds += time.Since(begin).Seconds()
	return w.engine.teacher, nil
}

// testTeacher has the device score a micro-batch twice by the run's teacher, and each of several devices the same. A probe of the
// teacher's size would need more memory than the teacher, so it is tested itself, and stays.
func (w *work) testTeacher(ctx context.Context, s store.Store, of activities.Run) error {
	if w.Train.Teacher == nil {
		return nil
	}
	begin := time.Now()
	defer func() {
		took := time.Since(begin).Seconds()
		w.measured.CompileSeconds += took
		w.measured.SelfTestSeconds += took
	}()
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
		var gave [2][]string
		for i := range gave {
			scores, err := p.Scorer.ScoreAll(ctx, state, all, 1)
			if err != nil {
				return fmt.Errorf("self-test: scoring of the teacher: %w", err)
			}
			for _, of := range scores {
				gave[i] = append(gave[i], fmt.Sprint(of))
			}
		}
		if err := same("scoring of the teacher", gave[0][0], w.planted(ctx, gave[1][0])); err != nil {
			return err
		}
		return w.agree(ctx, "scoring of the teacher", gave[0])
	})
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
