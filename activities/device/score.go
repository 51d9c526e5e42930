package device

import (
	"context"
	"fmt"
	"maps"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Score computes the old log-probs and entropies of the selected rows with Update's own
// graph, micro-batch by micro-batch, and sums of squares where credit reads them. If the run has a
// reference, a critic, a process reward model or a teacher, it computes the reference's log-probs, the critic's
// values, or the log-probs of the process reward model or of the teacher too. It stores the scores table; of a piece,
// a table with what the piece scored.
func (d *Device) Score(ctx context.Context, in activities.ScoreInput) (_ activities.ScoreResult, err error) {
	defer run.Edge(ctx, &err, "score iteration %d of run %s", in.Iteration, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.begin(ctx, of)
	if err != nil {
		return activities.ScoreResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.ScoreResult{}, err
	}
	rows, err := recorded.Selected(ctx, d.Store, in.Trajectories)
	if err != nil {
		return activities.ScoreResult{}, err
	}
	cut := episode.Stretches(rows)
	piece, err := pieceOf(len(cut), w.Train.Limits.ScoreRows, len(in.Pieces))
	if err != nil {
		return activities.ScoreResult{}, err
	}
	table := make([]episode.ScoreRow, len(rows))
	for i, r := range rows {
		table[i].Row, table[i].Shown = r.Row, r.Row
	}
	name := "scores"
	if piece.more {
		name = piece.name(name)
	} else if err := scoredBefore(ctx, d.Store, in.Pieces, table, w.Train.Credit); err != nil {
		return activities.ScoreResult{}, err
	}
	s, err := w.scorer(ctx, d.Store, of, in.Settings.Rollout.Temperature, in.Reference, in.Under)
	if err != nil {
		return activities.ScoreResult{}, err
	}
	if s.self != nil {
		if s.shown, err = w.shownBefore(ctx, d.Store, rows, in); err != nil {
			return activities.ScoreResult{}, err
		}
		for i, of := range s.shown {
			table[i].Shown = of.Row
		}
	}
	if err := w.score(ctx, s, cut[piece.from:piece.to], table); err != nil {
		return activities.ScoreResult{}, fmt.Errorf("score: %w", err)
	}
	out := activities.ScoreResult{More: piece.more}
	if !piece.more {
		out.Metrics = run.EntropyMetrics(table)
		exact := w.Train.Policy.Exact && w.Train.Rollout.Lag == 0 // with a lag another version has sampled
		maps.Copy(out.Metrics, run.ExactnessOf(rows, table).Metrics(exact))
		if s.self != nil {
			out.Metrics["actor/teacher_shown"] = canon.Float(run.ShareShown(s.shown))
		}
	}
	dir := store.IterationDir(of.ID, in.Policy.Branch, in.Iteration)
	if out.Scores, err = run.PutScores(ctx, d.Store, dir, name, table, w.Train.Credit); err != nil {
		return activities.ScoreResult{}, err
	}
	out.Telemetry = w.telemetry()
	return out, nil
}

// scoredBefore fills in what earlier pieces scored. Each has all rows in its table, with
// the figures of its own tokens: those of a trajectory can be from several pieces.
func scoredBefore(ctx context.Context, s store.Store, pieces []store.Ref, table []episode.ScoreRow, c spec.Credit) error {
	for i, ref := range pieces {
		piece, err := run.ReadScores(ctx, s, &ref, fmt.Sprintf("piece %d", i+1), c)
		if err != nil {
			return err
		}
		if len(piece) != len(table) {
			return fmt.Errorf("piece %d has %d rows, %d are selected: %w", i+1, len(piece), len(table), store.ErrInvalid)
		}
		for at, r := range piece {
			to := &table[at]
			if r.Row != to.Row {
				return fmt.Errorf("piece %d has row %d, selected is row %d: %w", i+1, r.Row, to.Row, store.ErrInvalid)
			}
			to.LogProbs, to.Entropies = append(to.LogProbs, r.LogProbs...), append(to.Entropies, r.Entropies...)
			to.RefLogProbs, to.Values = append(to.RefLogProbs, r.RefLogProbs...), append(to.Values, r.Values...)
			to.TeacherLogProbs = append(to.TeacherLogProbs, r.TeacherLogProbs...)
			to.SumSquares = append(to.SumSquares, r.SumSquares...)
		}
	}
	return nil
}

// scorer computes the figures of micro-batches before an update.
type scorer struct {
	policy      *model.Scorer
	state       *model.State
	temperature float32
	reference   *model.State  // nil without
	beside      *model.Scorer // of the second network
	second      *model.State  // nil without
	teaching    *model.Scorer // of the teacher
	teacher     *model.State  // nil without
	self        *model.Scorer // of the policy as its own teacher; nil without
	shown       []run.Shown   // to it, before each of the rows
}

// scorer makes the scorer of the resident version, and of what else rows are scored by.
func (w *work) scorer(ctx context.Context, s store.Store, of activities.Run, temperature float64, reference *store.Ref,
	under *activities.Under) (scorer, error) {
	p, err := w.engine.programsFor(w.Context, of, w.Shapes(w.Training, 1))
	if err != nil {
		return scorer{}, err
	}
	out := scorer{policy: p.Scorer, state: w.engine.state, temperature: float32(temperature)}
	if w.Train.Update.Reference() {
		if out.reference, err = w.reference(ctx, s, of, reference); err != nil {
			return scorer{}, err
		}
	}
	if w.Train.Credit.Second() {
		out.second = w.engine.second
		second, err := w.engine.secondFor(w.Context, of)
		if err != nil {
			return scorer{}, err
		}
		out.beside = second.Scorer
	}
	if under != nil && under.Context != "" {
		if !w.Train.Teacher.Self() || w.Train.Teacher.Context != under.Context || under.Model != "" {
			return scorer{}, fmt.Errorf("rows are to be scored under the context %q, which is not the run's teacher's: %w", under.Context, store.ErrInvalid)
		}
		own, err := w.engine.teacherFor(w.Context, of)
		if err != nil {
			return scorer{}, err
		}
		out.self = own.Scorer
	} else if under != nil {
		if w.Teacher == nil || w.Train.Teacher.Model != under.Model {
			return scorer{}, fmt.Errorf("rows are to be scored by the model %s, which is not the run's teacher: %w", under.Model, store.ErrInvalid)
		}
		teacher, err := w.engine.teacherFor(w.Context, of)
		if err != nil {
			return scorer{}, err
		}
		if out.teacher, err = w.teacher(ctx, s, of); err != nil {
			return scorer{}, err
		}
		out.teaching = teacher.Scorer
	}
	return out, nil
}

// score scores rows in micro-batches.
func (w *work) score(ctx context.Context, s scorer, rows []episode.Stretch, table []episode.ScoreRow) error {
	batches, places := w.ScoreBatches(rows)
	scored, err := s.score(ctx, batches)
	if err != nil {
		return err
	}
	laid := make([]int, len(rows)) // where a row was laid out
	for at, place := range places {
		if place >= 0 {
			laid[place] = at
		}
	}
	own, err := w.scoreShown(ctx, s, rows)
	if err != nil {
		return fmt.Errorf("by the teacher: %w", err)
	}
	for i, p := range rows { // in their order, which the stretches of a trajectory need
		b, to := len(batches[0].IDs), &table[p.Of]
		before := len(to.LogProbs)
		scored[laid[i]/b].appendTo(to, p, laid[i]%b)
		switch {
		case s.self == nil:
		case own[i] == nil:
			to.TeacherLogProbs = append(to.TeacherLogProbs, to.LogProbs[before:]...)
		default:
			to.TeacherLogProbs = append(to.TeacherLogProbs, own[i]...)
		}
		w.measured.Tokens += len(p.Ids)
	}
	return nil
}

// shownBefore is what the policy is shown before each of the selected rows, by all rows of their table.
func (w *work) shownBefore(ctx context.Context, s store.Store, selected []episode.TrajectoryRow, in activities.ScoreInput,
) ([]run.Shown, error) {
	all, err := run.ReadTrajectories(ctx, s, in.Trajectories, nil)
	if err != nil {
		return nil, err
	}
	return w.ShownBefore(selected, all, in.Policy.Branch, in.Iteration, in.Settings.Rollout)
}

// scoreShown has the policy score rows behind what it is shown, [rows][sampled tokens]; nil of a row for which there is nothing.
func (w *work) scoreShown(ctx context.Context, s scorer, rows []episode.Stretch) ([][]float32, error) {
	out := make([][]float32, len(rows))
	if s.self == nil {
		return out, nil
	}
	longer, of := run.Behind(rows, s.shown)
	batches, places := run.BatchesOf(w.TeacherShapes(), longer)
	scores, err := s.self.ScoreAll(ctx, s.state, batches, s.temperature)
	if err != nil {
		return nil, err
	}
	for at, place := range places {
		if place < 0 {
			continue
		}
		b, p := len(batches[0].IDs), longer[place]
		logProbs := scores[at/b].LogProbs[at%b]
		own := []float32{}
		for t, sampled := range p.Sampled {
			if sampled {
				own = append(own, logProbs[t])
			}
		}
		out[of[place]] = own
		w.measured.Tokens += len(p.Ids)
	}
	return out, nil
}

// figures are those of a micro-batch, [row][token]; nil where the run has none.
type figures struct {
	model.Scores
	reference, values, teacher [][]float32
}

// score scores micro-batches by the policy, then by the reference, then by the teacher, then by the second network.
func (s scorer) score(ctx context.Context, batches []batch.MicroBatch) ([]figures, error) {
	out := make([]figures, len(batches))
	scores, err := s.policy.ScoreAll(ctx, s.state, batches, s.temperature)
	if err != nil {
		return nil, err
	}
	for i, of := range scores {
		out[i].Scores = of
	}
	if s.reference != nil {
		scores, err := s.policy.ScoreAll(ctx, s.reference, batches, s.temperature)
		if err != nil {
			return nil, err
		}
		for i, of := range scores {
			out[i].reference = of.LogProbs
		}
	}
	if s.teacher != nil {
		scores, err := s.teaching.ScoreAll(ctx, s.teacher, batches, s.temperature)
		if err != nil {
			return nil, fmt.Errorf("by the teacher: %w", err)
		}
		for i, of := range scores {
			out[i].teacher = of.LogProbs
		}
	}
	if s.second == nil {
		return out, nil
	}
	values, err := s.bySecond(ctx, batches)
	if err != nil {
		return nil, err
	}
	for i, of := range values {
		out[i].values = of
	}
	return out, nil
}

// bySecond gives a critic's values, or the log-probs of a process reward model: [batch][row][token].
func (s scorer) bySecond(ctx context.Context, batches []batch.MicroBatch) ([][][]float32, error) {
	if s.second.Config().ValueHead {
		return s.beside.ValuesAll(ctx, s.second, batches)
	}
	scores, err := s.beside.ScoreAll(ctx, s.second, batches, s.temperature)
	if err != nil {
		return nil, err
	}
	var out [][][]float32
	for _, of := range scores {
		out = append(out, of.LogProbs)
	}
	return out, nil
}

// appendTo appends the figures of a stretch's sampled tokens, which are those of row i of the
// micro-batch, to the row of its trajectory.
func (f figures) appendTo(to *episode.ScoreRow, p episode.Stretch, i int) {
	for t, sampled := range p.Sampled {
		if !sampled {
			continue
		}
		to.LogProbs = append(to.LogProbs, f.LogProbs[i][t])
		to.Entropies = append(to.Entropies, f.Entropies[i][t])
		if f.SumSquares != nil {
			to.SumSquares = append(to.SumSquares, f.SumSquares[i][t])
		}
		if f.reference != nil {
			to.RefLogProbs = append(to.RefLogProbs, f.reference[i][t])
		}
		if f.teacher != nil {
			to.TeacherLogProbs = append(to.TeacherLogProbs, f.teacher[i][t])
		}
		if f.values != nil {
			each := len(f.values[i]) / len(f.LogProbs[i])
			to.Values = append(to.Values, f.values[i][each*t:each*(t+1)]...)
		}
	}
}
