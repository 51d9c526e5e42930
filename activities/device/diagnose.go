package device

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/mutual"
)

// Diagnose estimates the mutual information of prompts and reasonings of a rollout
// (RAGEN-2): of first turns under the prompts of all groups, and of turns of
// trajectories under each other's contexts. It stores nothing: the figures are the
// iteration's metrics.
func (d *Device) Diagnose(ctx context.Context, in activities.DiagnoseInput) (_ activities.DiagnoseResult, err error) {
	defer run.Edge(ctx, &err, "diagnose iteration %d of run %s", in.Iteration, in.Policy.Run.ID)
	w, done, err := d.begin(ctx, in.Policy.Run)
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.DiagnoseResult{}, err
	}
	rows, err := tables.Get[run.TrajectoryRow](ctx, d.Store, in.Trajectories)
	if err != nil {
		return activities.DiagnoseResult{}, fmt.Errorf("trajectories: %w", err)
	}
	p, err := d.Engine.programsFor(w.Context, in.Policy.Run, w.Shapes(w.Training, 1))
	if err != nil {
		return activities.DiagnoseResult{}, err
	}
	out := activities.DiagnoseResult{Metrics: activities.Metrics{}}
	for _, of := range []struct {
		prefix string
		pairs  scoringPairs
	}{
		{mutual.FirstTurn, firstTurns(w.Context, rows, in)}, {mutual.Trajectory, anyTurns(w.Context, rows, in)},
	} {
		if len(of.pairs.reasonings) == 0 || len(of.pairs.prompts) < 2 {
			continue // no member thought, or all reasonings are equal
		}
		cross, err := w.cross(ctx, p, of.pairs, float32(in.Settings.Rollout.Temperature))
		if err != nil {
			return activities.DiagnoseResult{}, err
		}
		figures, err := mutual.Estimate(cross)
		if err != nil {
			return activities.DiagnoseResult{}, fmt.Errorf("%s: %w: %w", of.prefix, err, store.ErrInvalid)
		}
		smoothed := figures.Smooth(deviations(in.Before, of.prefix))
		for _, f := range append(figures.Named(of.prefix), smoothed.Named(of.prefix)...) {
			out.Metrics[f.Name] = canon.Float(f.Value)
		}
	}
	out.Telemetry = w.telemetry()
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
func sampleRows(rc *run.Context, rows []run.TrajectoryRow, a draw.Address) []run.TrajectoryRow {
	order := a.Permutation(len(rows))[:min(rc.Train.Diagnostics.Samples, len(rows))]
	slices.Sort(order)
	var out []run.TrajectoryRow
	for _, at := range order {
		out = append(out, rows[at])
	}
	return out
}

// firstTurns are reasonings of first turns, and the prompts of all groups.
func firstTurns(rc *run.Context, rows []run.TrajectoryRow, in activities.DiagnoseInput) scoringPairs {
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
func anyTurns(rc *run.Context, rows []run.TrajectoryRow, in activities.DiagnoseInput) scoringPairs {
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

// cross scores every reasoning under every prompt.
func (w *work) cross(ctx context.Context, p *model.Programs, c scoringPairs, temperature float32) (mutual.Cross, error) {
	out := mutual.Cross{Own: c.own, Same: c.same}
	var rows []run.Piece // of is the reasoning, row the prompt
	for i, z := range c.reasonings {
		out.LogProbs, out.Lengths = append(out.LogProbs, make([]float64, len(c.prompts))), append(out.Lengths, len(z))
		for j, x := range c.prompts {
			rows = append(rows, run.Piece{Of: i, Row: int32(j), Ids: slices.Concat(x, z), First: len(x)})
		}
	}
	for i, batch := range w.MicroBatches(rows) {
		first := i * len(batch.IDs)
		logProbs, _, err := p.Score(ctx, w.engine.state, batch, temperature)
		if err != nil {
			return out, fmt.Errorf("score reasonings: %w", err)
		}
		for i, r := range rows[first:min(first+len(batch.IDs), len(rows))] {
			sum := 0.0
			for _, v := range logProbs[i][r.First:len(r.Ids)] {
				sum += float64(v)
			}
			out.LogProbs[r.Of][r.Row] = sum
			w.measured.Tokens += len(r.Ids)
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
