package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Grade answers questions about the episodes of a round by the policy itself, or by its version 0 or another model, which is
// held beside it, and stores the answers. It writes the likeliest tokens, so an answer follows from the version or the model,
// the question, its place in the table and the shapes.
func (d *Device) Grade(ctx context.Context, in activities.GradeInput) (_ activities.GradeResult, err error) {
	defer run.Edge(ctx, &err, "grade the episodes of iteration %d of run %s", in.Rollout.Iteration, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.begin(ctx, of)
	if err != nil {
		return activities.GradeResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.GradeResult{}, err
	}
	questions, err := tables.Get[run.QuestionRow](ctx, d.Store, in.Questions)
	if err != nil {
		return activities.GradeResult{}, fmt.Errorf("questions: %w", err)
	}
	rows, err := w.grade(ctx, d.Store, of, questions)
	if err != nil {
		return activities.GradeResult{}, fmt.Errorf("grade: %w", err)
	}
	ref, err := tables.Put(ctx, d.Store, run.Dir(of, in.Policy.Branch, in.Rollout), run.GradesName(in.Rollout, "grades", in.Piece), rows)
	if err != nil {
		return activities.GradeResult{}, err
	}
	return activities.GradeResult{Table: ref, Telemetry: w.telemetry()}, nil
}

// grade answers questions. One that is longer than the judge's programs take is refused.
func (w *work) grade(ctx context.Context, s store.Store, of activities.Run, questions []run.QuestionRow) ([]run.GradeRow, error) {
	shapes, ok := w.JudgeShapes()
	if !ok {
		return nil, fmt.Errorf("the run's own engine does not judge: %w", store.ErrInvalid)
	}
	p, err := w.engine.prepared(judgeKey(w.Context, of, shapes), w.Context, of)
	if err != nil {
		return nil, err
	}
	state, tok := w.engine.state, w.Tokenizer
	switch {
	case w.JudgeModel != nil:
		tok = w.JudgeModel.Tokenizer
		state, err = w.judgeModel(ctx, s, of)
	case w.Judge().Form.Model == judge.First:
		state, err = w.reference(ctx, s, of, nil)
	}
	if err != nil {
		return nil, err
	}
	rows := make([]run.GradeRow, len(questions))
	ends := tok.EndOfTurn()
	gen := model.GenerateInput{Stop: ends, Greedy: true}
	for i, q := range questions {
		ids, err := tok.EncodeChat([]chat.Message{{Role: "user", Content: q.Text}}, true)
		rows[i].Question = q.Question
		if errors.Is(err, tokenizer.ErrRewritten) { // a reply in the question may do that, and ends no run
			rows[i].Refused = err.Error()
		} else if err != nil {
			return nil, fmt.Errorf("encode question %d: %w", i, err)
		}
		if len(ids) > shapes.PromptTokens {
			rows[i].Refused = fmt.Sprintf("it has %d tokens, and the option prompt_tokens is %d", len(ids), shapes.PromptTokens)
			ids = nil
		}
		gen.Prompts, gen.Alive = append(gen.Prompts, ids), append(gen.Alive, ids != nil)
	}
	got, err := p.Sampler.Generate(ctx, state, gen)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		ids := got.Tokens[i]
		w.measured.Tokens += len(ids)
		rows[i].IDs = ids
		if n := len(ids); n > 0 && slices.Contains(ends, ids[n-1]) {
			ids = ids[:n-1]
		}
		rows[i].Reply = strings.ToValidUTF8(tok.Decode(ids), "\uFFFD")
	}
	return rows, nil
}
