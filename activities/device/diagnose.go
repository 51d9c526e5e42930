package device

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/mutual"
)

// Diagnose estimates the mutual information of prompts and reasonings of a rollout
// (RAGEN-2): of first turns under the prompts of all groups, and of turns of
// trajectories under each other's contexts. The figures are the iteration's metrics, and
// nothing is stored; of a piece, a table with what the piece scored.
func (d *Device) Diagnose(ctx context.Context, in activities.DiagnoseInput) (_ activities.DiagnoseResult, err error) {
	defer run.Edge(ctx, &err, "diagnose iteration %d of run %s", in.Iteration, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.begin(ctx, of)
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.DiagnoseResult{}, err
	}
	rows, err := tables.Get[episode.TrajectoryRow](ctx, d.Store, in.Trajectories)
	if err != nil {
		return activities.DiagnoseResult{}, fmt.Errorf("trajectories: %w", err)
	}
	rows = slices.DeleteFunc(rows, func(r episode.TrajectoryRow) bool { return r.Turns() == 0 }) // dropped
	p, err := d.Engine.programsFor(w.Context, of, w.Shapes(w.Training, 1))
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	estimates := estimatesOf(w.Context, rows, in)
	pairs, places := pairsOf(estimates, w.Train.Update.MicroBatch)
	piece, err := pieceOf(places, w.Train.Limits.ScoreRows, len(in.Pieces))
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	var before, now []pair
	for _, p := range pairs {
		switch {
		case p.place < piece.from:
			before = append(before, p)
		case p.place < piece.to:
			now = append(now, p)
		}
	}
	scored, err := w.scorePairs(ctx, p.Scorer, now, float32(in.Settings.Rollout.Temperature))
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	if piece.more {
		ref, err := tables.Put(ctx, d.Store, store.IterationDir(of.ID, in.Policy.Branch, in.Iteration), piece.name("diagnosis"), scored)
		return activities.DiagnoseResult{Piece: &ref, Telemetry: w.telemetry()}, err
	}
	earlier, err := pairsBefore(ctx, d.Store, in.Pieces, before)
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	metrics, err := informationOf(estimates, append(earlier, scored...), in.Before)
	return activities.DiagnoseResult{Metrics: metrics, Telemetry: w.telemetry()}, err
}

// estimate is one of the diagnosis's estimates: what it scores, and the prefix of its
// figures.
type estimate struct {
	prefix string
	pairs  scoringPairs
}

// estimatesOf are the estimates that a rollout allows: it has none where no member
// thought, or where all reasonings are equal.
func estimatesOf(rc *run.Context, rows []episode.TrajectoryRow, in activities.DiagnoseInput) (out []estimate) {
	for _, e := range []estimate{{mutual.FirstTurn, firstTurns(rc, rows, in)}, {mutual.Trajectory, anyTurns(rc, rows, in)}} {
		if len(e.pairs.reasonings) > 0 && len(e.pairs.prompts) > 1 {
			out = append(out, e)
		}
	}
	return out
}

// informationOf are the figures of the estimates, whose pairs were scored.
func informationOf(estimates []estimate, scored []episode.PairRow, before activities.Metrics) (activities.Metrics, error) {
	out := activities.Metrics{}
	for i, e := range estimates {
		cross := mutual.Cross{Own: e.pairs.own, Same: e.pairs.same}
		for _, z := range e.pairs.reasonings {
			cross.LogProbs, cross.Lengths = append(cross.LogProbs, make([]float64, len(e.pairs.prompts))), append(cross.Lengths, len(z))
		}
		for _, r := range scored {
			if int(r.Estimate) == i {
				cross.LogProbs[r.Reasoning][r.Prompt] = r.LogProb
			}
		}
		figures, err := mutual.Estimate(cross)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", e.prefix, err, store.ErrInvalid)
		}
		smoothed := figures.Smooth(deviations(before, e.prefix))
		for _, f := range append(figures.Named(e.prefix), smoothed.Named(e.prefix)...) {
			out[f.Name] = canon.Float(f.Value)
		}
	}
	return out, nil
}

// scoringPairs lists each reasoning with the prompts it is scored under.
type scoringPairs struct {
	reasonings [][]int32
	own        []int // the prompt of each reasoning
	prompts    [][]int32
	same       []int // equal prompts have the same number
}

func (c *scoringPairs) addPrompt(ids []int32) int {
	number := len(c.prompts)
	for i, p := range c.prompts {
		if slices.Equal(p, ids) {
			number = c.same[i]
			break
		}
	}
	c.prompts, c.same = append(c.prompts, ids), append(c.same, number)
	return len(c.prompts) - 1
}

// The groups of the draws. First turns and arbitrary turns are drawn from different
// trajectories.
const (
	ofFirstTurns = iota
	ofAnyTurns
)

// addressOf is the address of the diagnosis's draws.
func diagnosisAddress(rc *run.Context, in activities.DiagnoseInput, group int64) draw.Address {
	a := rc.Drawn(draw.Diagnose, in.Policy.Branch, in.Iteration)
	a.Group = group
	return a
}

// lookedAt are some of the rows, in order: a draw without replacement.
func sampleRows(rc *run.Context, rows []episode.TrajectoryRow, a draw.Address) []episode.TrajectoryRow {
	order := a.Permutation(len(rows))[:min(rc.Train.Diagnostics.Samples, len(rows))]
	slices.Sort(order)
	var out []episode.TrajectoryRow
	for _, at := range order {
		out = append(out, rows[at])
	}
	return out
}

// firstTurns are reasonings of first turns, and the prompts of all groups.
func firstTurns(rc *run.Context, rows []episode.TrajectoryRow, in activities.DiagnoseInput) scoringPairs {
	var c scoringPairs
	place := map[int32]int{}
	for _, r := range rows {
		if _, ok := place[r.Group]; !ok {
			context, _ := r.Turn(0)
			place[r.Group] = c.addPrompt(context)
		}
	}
	for _, r := range sampleRows(rc, rows, diagnosisAddress(rc, in, ofFirstTurns)) {
		_, sampled := r.Turn(0)
		if z := reasoning(rc, sampled); len(z) > 0 {
			c.reasonings, c.own = append(c.reasonings, z), append(c.own, place[r.Group])
		}
	}
	return c
}

// anyTurns are reasonings of turns drawn from the drawn trajectories, and their own
// contexts.
func anyTurns(rc *run.Context, rows []episode.TrajectoryRow, in activities.DiagnoseInput) scoringPairs {
	var c scoringPairs
	a := diagnosisAddress(rc, in, ofAnyTurns)
	for _, r := range sampleRows(rc, rows, a) {
		a.Member = int64(r.Row) + 1 // 0 has drawn the rows
		context, sampled := r.Turn(a.Below(r.Turns()))
		if z := reasoning(rc, sampled); len(z) > 0 {
			c.reasonings, c.own = append(c.reasonings, z), append(c.own, c.addPrompt(context))
		}
	}
	return c
}

// reasoning is what a turn says before it closes the tag that the prompt opened.
func reasoning(rc *run.Context, sampled []int32) []int32 {
	tag := "</answer>"
	if rc.Training.Protocol.Think {
		tag = "</think>"
	}
	end := strings.Index(rc.Tokenizer.Decode(sampled), tag)
	n := 0
	for n < len(sampled) {
		if slices.Contains(rc.Tokenizer.EndOfTurn(), sampled[n]) || end >= 0 && len(rc.Tokenizer.Decode(sampled[:n+1])) > end {
			break
		}
		n++
	}
	return sampled[:n]
}

// pair is a reasoning under a prompt, to be scored.
type pair struct {
	episode.PairRow
	// place is its row among the rows of all micro-batches, padding included.
	place int
	ids   []int32
	first int // the place of the reasoning's first id
}

// pairsOf are every reasoning under every prompt of the estimates, each of which begins
// with a micro-batch of b rows, and the number of rows of all micro-batches.
func pairsOf(estimates []estimate, b int) (pairs []pair, places int) {
	for of, e := range estimates {
		for i, z := range e.pairs.reasonings {
			for j, x := range e.pairs.prompts {
				pairs = append(pairs, pair{
					PairRow: episode.PairRow{Estimate: int32(of), Reasoning: int32(i), Prompt: int32(j)},
					place:   places, ids: slices.Concat(x, z), first: len(x),
				})
				places++
			}
		}
		places = (places + b - 1) / b * b
	}
	return pairs, places
}

// scorePairs gives the pairs the log-probs of their reasonings. Micro-batches are dealt to the devices.
func (w *work) scorePairs(ctx context.Context, p *model.Scorer, pairs []pair, temperature float32) ([]episode.PairRow, error) {
	var batches []batch.MicroBatch
	var dealt [][]pair // by micro-batch
	b := w.Train.Update.MicroBatch
	for len(pairs) > 0 {
		n := 1
		for n < len(pairs) && pairs[n].place/b == pairs[0].place/b {
			n++
		}
		var rows []episode.Stretch
		for _, r := range pairs[:n] {
			rows = append(rows, episode.Stretch{Ids: r.ids})
		}
		batches, dealt = append(batches, w.MicroBatches(rows)[0]), append(dealt, pairs[:n])
		pairs = pairs[n:]
	}
	scores, err := p.ScoreAll(ctx, w.engine.state, batches, temperature)
	if err != nil {
		return nil, fmt.Errorf("score reasonings: %w", err)
	}
	var out []episode.PairRow
	for i, of := range dealt {
		for row, r := range of {
			for _, v := range scores[i].LogProbs[row][r.first:len(r.ids)] {
				r.LogProb += float64(v)
			}
			out = append(out, r.PairRow)
			w.measured.Tokens += len(r.ids)
		}
	}
	return out, nil
}

// pairsBefore are the pairs as earlier pieces scored them.
func pairsBefore(ctx context.Context, s store.Store, pieces []store.Ref, pairs []pair) ([]episode.PairRow, error) {
	var out []episode.PairRow
	for i, ref := range pieces {
		piece, err := tables.Get[episode.PairRow](ctx, s, ref)
		if err != nil {
			return nil, fmt.Errorf("piece %d: %w", i+1, err)
		}
		out = append(out, piece...)
	}
	if len(out) != len(pairs) {
		return nil, fmt.Errorf("%d pieces have %d pairs, want %d: %w", len(pieces), len(out), len(pairs), store.ErrInvalid)
	}
	for i, p := range pairs {
		if r := out[i]; r.Estimate != p.Estimate || r.Reasoning != p.Reasoning || r.Prompt != p.Prompt {
			return nil, fmt.Errorf("pair %d is reasoning %d under prompt %d, want %d under %d: %w", i, r.Reasoning, r.Prompt, p.Reasoning, p.Prompt, store.ErrInvalid)
		}
	}
	return out, nil
}

// deviations are the moving averages that an earlier estimate published.
func deviations(before activities.Metrics, prefix string) mutual.Deviations {
	var d mutual.Deviations
	token, ok := before[prefix+mutual.DeviationName]
	if seq, both := before[prefix+mutual.DeviationSeqName]; ok && both {
		d = mutual.Deviations{Token: float64(token), Seq: float64(seq), Seen: true}
	}
	return d
}
