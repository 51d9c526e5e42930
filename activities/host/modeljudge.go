package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// ModelJudge asks a language model, each time for at most timeout. Several goroutines may use it. An error is one of package
// judge: of kind judge.ErrRefused if it is about the question alone.
type ModelJudge interface {
	Ask(ctx context.Context, r judge.Request, timeout time.Duration) (judge.Answer, error)
}

// questionsAtOnce is how many episodes of a round a language model is asked about at the same time.
const questionsAtOnce = 32

// modelJudge is the language model of a name. The error of a worker that lacks it is of kind ErrNotServed.
func (h *Host) modelJudge(name string) (ModelJudge, error) {
	if model := h.Judges[name]; model != nil {
		return model, nil
	}
	return nil, fmt.Errorf("judge %q: %w: start it with --judge %[1]s=URL", name, activities.ErrNotServed)
}

// modelAsk gives the answer to a request, answering to one whose digest it gets too.
type (
	modelAsk  func(ctx context.Context, r judge.Request) (judge.Answer, error)
	answering func(ctx context.Context, digest string, r judge.Request) (judge.Answer, error)
)

// askModel asks a language model about all episodes and gives the rows. Each answer is stored before it is used, so a step
// that is lost and runs again asks only what has no answer.
func (h *Host) askModel(ctx context.Context, j judging, limit time.Duration) ([]run.VerdictRow, error) {
	model, err := h.modelJudge(j.Name)
	if err != nil {
		return nil, err
	}
	rows, err := j.byModel(ctx, func(ctx context.Context, digest string, r judge.Request) (judge.Answer, error) {
		key := j.dir + "/" + j.name + ".answer." + digest + ".json"
		return firstAnswer(ctx, h.Store, key, func() (judge.Answer, error) { return model.Ask(ctx, r, limit) })
	})
	if err != nil {
		return nil, err
	}
	return rows, run.CheckFailed(rows, j.members, j.FailedShare)
}

// digestOf names a request to a judge.
func digestOf(name string, r judge.Request) (string, error) {
	return run.DigestOf(struct {
		Judge   string        `json:"judge"`
		Request judge.Request `json:"request"`
	}{name, r})
}

// once gives each request one answer: episodes of a round may be equal, and are asked about once.
func once(name string, answer answering) modelAsk {
	var mu sync.Mutex
	all := map[string]func() (judge.Answer, error){}
	return func(ctx context.Context, r judge.Request) (judge.Answer, error) {
		digest, err := digestOf(name, r)
		if err != nil {
			return judge.Answer{}, err
		}
		mu.Lock()
		one := all[digest]
		if one == nil {
			one = sync.OnceValues(func() (judge.Answer, error) { return answer(ctx, digest, r) })
			all[digest] = one
		}
		mu.Unlock()
		return one()
	}
}

// byModel makes the rows of a round with the answers of a language model.
func (j judging) byModel(ctx context.Context, answer answering) ([]run.VerdictRow, error) {
	rows := slices.Clone(j.rows)
	ask := once(j.Name, answer)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(questionsAtOnce)
	for k, i := range j.at {
		group.Go(func() error {
			err := j.verdict(within, &rows[i], j.episodes[k], ask)
			switch {
			case errors.Is(err, judge.ErrRefused):
				rows[i].Failed = err.Error()
			case within.Err() != nil:
				return within.Err()
			case errors.Is(err, foreign.ErrAnswer), errors.Is(err, foreign.ErrBusy), errors.Is(err, foreign.ErrTimeout),
				errors.Is(err, foreign.ErrFlood), errors.Is(err, foreign.ErrExited):
				return fmt.Errorf("%w: %w", err, activities.ErrEnvironment)
			case err != nil:
				return err
			}
			return nil
		})
	}
	return rows, group.Wait()
}

// verdict asks about one episode and fills in its row.
func (j judging) verdict(ctx context.Context, row *run.VerdictRow, episode foreign.Scored, ask modelAsk) error {
	questions, err := j.Form.Questions(episode)
	if err != nil {
		return err
	}
	v := foreign.Verdict{Prompt: j.Form.PromptDigest(), Values: make([]float64, len(j.Components)*len(questions))}
	readings := make([]run.Reading, len(questions))
	replies := make([]string, len(questions))
	for k, q := range questions {
		reading := run.ReadAtOnce
		answer, err := ask(ctx, q)
		if err != nil {
			return err
		}
		values, read := j.Form.Read(answer.Reply)
		if !read && !j.Form.Own() { // the likeliest tokens are the same again
			reading = run.ReadAgain
			if answer, err = ask(ctx, j.Form.Again(q, answer.Reply)); err != nil {
				return err
			}
			values, read = j.Form.Read(answer.Reply)
		}
		if !read {
			reading, values = run.NeverRead, slices.Repeat([]float64{j.Form.Unreadable}, len(j.Components))
		}
		for c, value := range values {
			v.Values[c*len(questions)+k] = value
		}
		if k == 0 {
			v.Model = answer.Model
		}
		readings[k], replies[k] = reading, answer.Reply
	}
	return row.RecordReplies(j.Components, v, readings, replies)
}

// withoutEnds takes the token that ends a turn out of what a policy wrote: to the judge's own model it may be one too.
func withoutEnds(tok envs.Tokenizer, e *foreign.Scored) {
	for _, id := range tok.EndOfTurn() {
		end := tok.Decode([]int32{id})
		for k := range e.Turns {
			e.Turns[k].Reply = strings.TrimSuffix(e.Turns[k].Reply, end)
		}
	}
}

// ownJudge stores the questions to the run's own engine about a round, in pieces of limits.generate_rows; and where the engine has
// answered all, or there is nothing to ask, the verdicts.
func (h *Host) ownJudge(ctx context.Context, rc *run.Context, in activities.JudgeInput, j judging) (out activities.JudgeResult, err error) {
	if len(in.Turns) == 0 {
		return out, fmt.Errorf("a round without turns: %w", store.ErrInvalid)
	}
	last := in.Turns[len(in.Turns)-1]
	if last.Questions == nil {
		questions, err := j.questions()
		if err != nil {
			return out, err
		}
		for some := range slices.Chunk(questions, cmp.Or(rc.Train.Limits.GenerateRows, max(len(questions), 1))) {
			ref, err := tables.Put(ctx, h.Store, j.dir, run.GradesName(in.Rollout, "questions", len(out.Questions)), some)
			if err != nil {
				return out, err
			}
			out.Questions = append(out.Questions, ref)
		}
	}
	if len(out.Questions) > 0 {
		return out, nil
	}
	grades, err := run.ReadGrades(ctx, h.Store, last.Grades)
	if err != nil {
		return out, err
	}
	rows, err := j.byModel(ctx, func(_ context.Context, digest string, r judge.Request) (judge.Answer, error) {
		return graded(digest, j.Name+" "+r.Model, grades)
	})
	if err != nil {
		return out, err
	}
	if err := run.CheckFailed(rows, j.members, j.FailedShare); err != nil {
		return out, err
	}
	out.Table, err = tables.Put(ctx, h.Store, j.dir, j.name, rows)
	return out, err
}

// questions are the questions about all episodes, each once, in the order of the episodes. One that cannot be asked is left
// out: its episode gets no verdict.
func (j judging) questions() (out []run.QuestionRow, err error) {
	have := map[string]bool{}
	for _, e := range j.episodes {
		requests, err := j.Form.Questions(e)
		if errors.Is(err, judge.ErrRefused) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range requests {
			digest, err := digestOf(j.Name, r)
			if err != nil {
				return nil, err
			}
			if !have[digest] {
				have[digest] = true
				out = append(out, run.QuestionRow{Question: digest, Text: r.Messages[0].Content})
			}
		}
	}
	return out, nil
}

// graded is what the run's own engine, with a model of this name, answered to the question of a digest.
func graded(digest, model string, grades map[string]run.GradeRow) (judge.Answer, error) {
	row, ok := grades[digest]
	switch {
	case !ok:
		return judge.Answer{}, fmt.Errorf("the question %s has no answer: %w", digest, store.ErrInvalid)
	case row.Refused != "":
		return judge.Answer{}, fmt.Errorf("%w: %s", judge.ErrRefused, row.Refused)
	}
	return judge.Answer{Model: model, Reply: row.Reply}, nil
}

// judgeDrifts asks a language model again about the episodes of one round, if this worker has it. A round without verdicts,
// and one that another kind of judge was asked about, have no drift: a program's verdicts are taken from the record.
func (h *Host) judgeDrifts(ctx context.Context, rc *run.Context, in activities.JudgeInput) (drifts []Drift, compared int, err error) {
	of := rc.Judge()
	if of == nil || of.Form == nil || h.Judges[of.Name] == nil || len(in.Turns) == 0 || in.Turns[len(in.Turns)-1].Verdicts == nil {
		return nil, 0, nil
	}
	recorded, err := tables.Get[run.VerdictRow](ctx, h.Store, *in.Turns[len(in.Turns)-1].Verdicts)
	if err != nil {
		return nil, 0, err
	}
	j, err := h.judging(ctx, rc, in)
	if err != nil {
		return nil, 0, err
	}
	limit := judgeTime(rc)
	now, err := j.byModel(ctx, func(ctx context.Context, _ string, r judge.Request) (judge.Answer, error) {
		return h.Judges[j.Name].Ask(ctx, r, limit)
	})
	if err != nil {
		return nil, 0, err
	}
	if len(now) != len(recorded) {
		return nil, 0, fmt.Errorf("%d verdicts, and %d are recorded: %w", len(now), len(recorded), store.ErrInvalid)
	}
	for i, was := range recorded {
		is := now[i]
		if !was.Asked {
			continue
		}
		compared++
		for _, f := range []struct {
			what    string
			was, is any
		}{
			{"question", was.Episode + " " + was.Prompt, is.Episode + " " + is.Prompt},
			{"refused", was.Failed != "", is.Failed != ""}, {"model", was.Model, is.Model}, {"values", was.Values, is.Values},
		} {
			if old, new := shown(f.was), shown(f.is); old != new {
				drifts = append(drifts, Drift{
					Round: in.Rollout.Round, Turn: len(in.Turns), Group: int(was.Group), Member: int(was.Member),
					What: "verdict of judge " + j.Name + ": " + f.what, Recorded: old, Now: new,
				})
				break
			}
		}
	}
	return drifts, compared, nil
}
