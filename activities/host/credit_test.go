package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// scores are scores of the selected rows: each log-prob names its row and its token.
func (p *played) scores(rows []episode.TrajectoryRow, values int) (out []episode.ScoreRow) {
	for _, r := range episode.SelectedOf(rows) {
		s := episode.ScoreRow{Row: r.Row}
		for n := range r.Sampled() {
			at := float32(r.Row) + float32(n)/64
			s.LogProbs, s.Entropies, s.RefLogProbs = append(s.LogProbs, -at), append(s.Entropies, at), append(s.RefLogProbs, -2*at)
			for v := range values {
				s.Values = append(s.Values, at/64+float32(v))
			}
		}
		out = append(out, s)
	}
	return out
}

// credited computes the advantages of a selection.
func (p *played) credited(in activities.CreditInput, selected activities.SelectResult) (activities.CreditInput, activities.CreditResult) {
	p.t.Helper()
	rows := p.rows(selected)
	scores := putTable(p, p.scores(rows, p.rc.Train.Credit.Values()))
	in.Run, in.Settings, in.Scores = p.Run, p.Plan.Settings, &scores
	selected.Scored = nil // these have numbers by which they are known
	in = in.Of(selected, in.Rollout)
	out, err := p.h.Credit(p.t.Context(), in)
	require.NoError(p.t, err)
	out.Telemetry = activities.Telemetry{}
	return in, out
}

// batch reads the batch of an iteration.
func (p *played) batch(ref *store.Ref) []batch.Row {
	p.t.Helper()
	require.NotNil(p.t, ref)
	rows, err := p.rc.ReadBatch(p.t.Context(), p.s, *ref)
	require.NoError(p.t, err)
	return rows
}

// The batch of a rollout of any kind has each sampled token once that it learns from: with the log-probs of its own row
// and place.
func TestCreditKeepsTheBooks(t *testing.T) {
	for name, edits := range rollouts {
		t.Run(name, func(t *testing.T) {
			p := begin(t, edits)
			_, selected := p.selected(1, activities.SelectInput{})
			in := activities.CreditInput{Iteration: 1, Rollout: selected.Shared(0, 1)}
			if in.Rollout != nil {
				in.Rollout.Update = 1
			}
			in, out := p.credited(in, selected)
			var branches []episode.BranchRow
			if out := selected.Tables.Ref(activities.BranchesTable); out != nil {
				branches = read[episode.BranchRow](p, *out)
			}
			byRow := map[int32]episode.TrajectoryRow{}
			tokens := 0
			for _, r := range p.rows(selected) {
				own := in.Rollout == nil || int(r.Group)/p.rc.Training.Groups == 1
				if r.Selected && own {
					byRow[r.Row] = r
					tokens += r.Sampled()
				}
			}
			seen := map[[2]int32]bool{}
			for _, b := range branches {
				if r, ok := byRow[b.Row]; ok {
					// Rows of one group share a turn that has one slot.
					if at := [2]int32{b.Slot, 1000*r.Group + b.Turn}; seen[at] {
						tokens -= int(r.SampledLengths[b.Turn])
					} else {
						seen[at] = true
					}
				}
			}
			learned, places := 0, map[int32]int{}
			rows := p.batch(out.Batch)
			for _, r := range rows {
				require.Contains(t, byRow, r.Row)
				require.EqualValues(t, 1, r.Origin)
				begin := places[r.Row]
				for at := range r.IDs {
					if r.Turns[at] == 0 {
						require.False(t, r.Mask[at])
						require.Zero(t, r.Columns[batch.OldLogProbs][at])
						continue
					}
					require.Equal(t, -(float32(r.Row) + float32(begin)/64), r.Columns[batch.OldLogProbs][at], "row %d, token %d", r.Row, begin)
					begin++
					if r.Mask[at] {
						learned++
					}
				}
				places[r.Row] = begin
			}
			for row, n := range places {
				require.Equal(t, byRow[row].Sampled(), n, "all tokens of row %d", row)
			}
			require.Len(t, places, len(byRow))
			require.Equal(t, tokens, learned)
			if name == "window" {
				require.Greater(t, len(rows), len(byRow), "a turn is a row")
			}
		})
	}
}

// The batch and the figures of an iteration are the same every time, where rows and states are alike.
func TestCreditIsTheSame(t *testing.T) {
	for name, edits := range map[string]string{
		"trees":  rollouts["trees"],
		"states": `{"credit": {"algorithm": "state_baseline"}}`,
		"replay": `{"freshness": {"replay_iterations": 2, "replay_share": 0.5}}`,
	} {
		p := begin(t, edits)
		p.say = func(activities.Rollout, int, episode.GenerateRow) string { return "Right</answer>" } // all rows are alike
		_, selected := p.selected(0, activities.SelectInput{})
		in, out := p.credited(activities.CreditInput{}, selected)
		if name == "replay" {
			_, selected = p.selected(1, activities.SelectInput{})
			in, out = p.credited(activities.CreditInput{Iteration: 1, Replay: []store.Ref{*out.Batch}}, selected)
			require.Len(t, p.batch(out.Batch), 16)
		}
		want, err := canon.Marshal(out)
		require.NoError(t, err)
		for range repeats {
			again, err := p.h.Credit(t.Context(), in)
			require.NoError(t, err)
			again.Telemetry = activities.Telemetry{}
			b, err := canon.Marshal(again)
			require.NoError(t, err)
			require.Equal(t, string(want), string(b), name)
		}
	}
}

// Rewards in parts are given to the algorithm without their weights, which it has beside them; the weighted sum is the
// return of the others.
func TestCreditOfParts(t *testing.T) {
	methodstest.Needs(t, "gdpo")
	const parts = `"rewards": [{"name": "first_attempt", "weight": 0.5}, {"name": "length", "weight": -2}]`
	first := func(r batch.Row) float64 { return float64(r.Columns[batch.Advantages][slices.Index(r.Mask, true)]) }
	p := begin(t, `{"credit": {"algorithm": "gdpo"}, `+parts+`}`)
	_, selected := p.selected(0, activities.SelectInput{})
	in, out := p.credited(activities.CreditInput{}, selected)
	rows := p.rows(selected)
	var components [][]float64
	var groups []int
	var mask [][]bool
	for _, r := range rows {
		components, groups = append(components, []float64{r.Reward(), r.Penalised() - r.Reward(), 0, 0}), append(groups, int(r.Group))
		mask = append(mask, slices.Repeat([]bool{true}, r.Sampled()))
	}
	for _, c := range read[run.ComponentRow](p, *selected.Tables.Ref(activities.ComponentsTable)) {
		components[c.Row][map[string]int{"first_attempt": 2, "length": 3}[c.Component]] += c.Value
	}
	input := credit.Input{Parts: components, PartWeights: []float64{1, 1, .5, -2}, Groups: groups, Mask: mask}
	want, _, err := methods.Compute(input, credit.Options(in.Settings.Credit))
	require.NoError(t, err)
	for i, r := range p.batch(out.Batch) {
		require.InDelta(t, want[i][0], first(r), 1e-5, "row %d", i)
	}

	p = begin(t, `{"credit": {"algorithm": "dr_grpo"}, `+parts+`}`)
	_, selected = p.selected(0, activities.SelectInput{})
	_, out = p.credited(activities.CreditInput{}, selected)
	rows = p.rows(selected)
	for i, r := range p.batch(out.Batch) {
		mean := 0.0
		for _, other := range rows[i/4*4 : i/4*4+4] {
			mean += other.Return() / 4
		}
		require.InDelta(t, rows[i].Return()-mean, first(r), 1e-6)
		require.InDelta(t, rows[i].Penalised()+.5*components[i][2]-2*components[i][3], rows[i].Return(), 1e-12)
	}
}

// A row of the batch has what belongs to its tokens: of a stretch in the middle of a row as of its first, with several
// values for a token, and with the sampler's log-probs where the run wants those.
func TestBatchRows(t *testing.T) {
	methodstest.Needs(t, "hiper", "grpo")
	p := begin(t, `{"rollout": {"prompt_tokens": [100, 100, 100]}}`)
	rc := *p.rc
	rows := []episode.TrajectoryRow{
		{Row: 4, IDs: []int32{0, 1, 2, 3, 4, 5, 6}, PromptLengths: []int32{1, 1, 1}, SampledLengths: []int32{1, 2, 1}, Restarts: []bool{true, false, true}, RolloutLogProbs: []float32{-1, -2, -3, -4}},
		{Row: 9, IDs: []int32{7, 8}, PromptLengths: []int32{1}, SampledLengths: []int32{1}, Restarts: []bool{true}, RolloutLogProbs: []float32{-5}},
	}
	scores := []episode.ScoreRow{
		{Row: 4, LogProbs: []float32{10, 20, 30, 40}, RefLogProbs: []float32{11, 21, 31, 41}, Values: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{Row: 9, LogProbs: []float32{50}, RefLogProbs: []float32{51}, Values: []float32{13, 14, 15}},
	}
	l := run.TrainingSignal{
		Advantages: [][]float64{{.1, .2, .3, .4}, {.5}}, Returns: [][]float64{{101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112}, {113, 114, 115}},
		Learns: [][]bool{{true, false, false, false, true, true, false, false, true, true, true, false}, {false, true, false}},
	}
	rc.Train.Credit.Algorithm, rc.Train.Update.KLIn, rc.Train.Update.Mismatch.Regime = "hiper", spec.KLLoss, spec.Decoupled
	got := batchRows(&rc, rows, l, scores, nil, 7)
	width := rc.Shapes(rc.Training, 1).Sequence
	require.Len(t, got, 3)
	pad := func(v []float32, each int) []float32 { return append(v, make([]float32, each*width-len(v))...) }
	ints := func(v ...int32) []int32 { return append(v, make([]int32, width-len(v))...) }
	flags := func(each int, at ...int) []bool {
		out := make([]bool, each*width)
		for _, i := range at {
			out[i] = true
		}
		return out
	}
	require.Equal(t, batch.Row{
		Row: 4, Origin: 7, Length: 5, IDs: ints(0, 1, 2, 3, 4), Turns: ints(0, 1, 0, 2, 2), Mask: flags(1, 1, 3, 4), Columns: batch.RowColumns{batch.OldLogProbs: pad([]float32{0, 10, 0, 20, 30}, 1), batch.Advantages: pad([]float32{0, .1, 0, .2, .3}, 1), batch.Returns: pad([]float32{0, 0, 0, 101, 102, 103, 0, 0, 0, 104, 105, 106, 107, 108, 109}, 3), batch.OldValues: pad([]float32{0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6, 7, 8, 9}, 3), batch.ReturnsMask: batch.Flags(flags(3, 3, 10, 11, 14)), batch.RefLogProbs: pad([]float32{0, 11, 0, 21, 31}, 1), batch.RolloutLogProbs: pad([]float32{0, -1, 0, -2, -3}, 1)},
	}, got[0])
	require.Equal(t, batch.Row{
		Row: 4, Origin: 7, Length: 2, IDs: ints(5, 6), Turns: ints(0, 3), Mask: flags(1, 1), Columns: batch.RowColumns{batch.OldLogProbs: pad([]float32{0, 40}, 1), batch.Advantages: pad([]float32{0, .4}, 1), batch.Returns: pad([]float32{0, 0, 0, 110, 111, 112}, 3), batch.OldValues: pad([]float32{0, 0, 0, 10, 11, 12}, 3), batch.ReturnsMask: batch.Flags(flags(3, 3, 4)), batch.RefLogProbs: pad([]float32{0, 41}, 1), batch.RolloutLogProbs: pad([]float32{0, -4}, 1)},
	}, got[1])
	require.Equal(t, pad([]float32{0, 50}, 1), got[2].Columns[batch.OldLogProbs])
	require.Equal(t, flags(3, 4), got[2].Learns())

	// A turn that another row has is not learned from, by either network; its numbers stay.
	got = batchRows(&rc, rows, l, scores, [][]bool{{true, false, true}, {false}}, 7)
	require.Equal(t, flags(1, 1), got[0].Mask)
	require.Equal(t, flags(3, 3), got[0].Learns())
	require.Equal(t, pad([]float32{0, .1, 0, .2, .3}, 1), got[0].Columns[batch.Advantages])
	require.Equal(t, flags(1, 1), got[1].Mask)
	require.Equal(t, flags(1), got[2].Mask)
	require.Equal(t, flags(3), got[2].Learns())

	rc.Train.Credit.Algorithm, rc.Train.Update.KLIn, rc.Train.Update.Mismatch.Regime = "grpo", "", spec.Bypass
	l.Returns, l.Learns = nil, nil
	got = batchRows(&rc, rows, l, scores, nil, 7)
	require.Equal(t, pad([]float32{0, -1, 0, -2, -3}, 1), got[0].Columns[batch.OldLogProbs], "the sampler's take the place of Score's")
	require.Equal(t, pad([]float32{0, -4}, 1), got[1].Columns[batch.OldLogProbs])
	require.Nil(t, got[0].Columns[batch.Returns])
	require.Nil(t, got[0].Columns[batch.OldValues])
	require.Nil(t, got[0].Columns[batch.ReturnsMask])
	require.Nil(t, got[0].Columns[batch.RefLogProbs])
	require.Nil(t, got[0].Columns[batch.RolloutLogProbs])
}

// An iteration takes its own groups of a rollout that it shares, with their scores; a batch that is learned from again
// is taken whole.
func TestSharedPart(t *testing.T) {
	rc := &run.Context{Training: &run.Task{Groups: 2}}
	rc.Train.Freshness.Online = 3
	var rows []episode.TrajectoryRow
	var scores []episode.ScoreRow
	for _, group := range []int32{0, 1, 2, 3, 3, 5} {
		rows, scores = append(rows, episode.TrajectoryRow{Row: 10 * int32(len(rows)), Group: group}), append(scores, episode.ScoreRow{Row: 10 * int32(len(scores))})
	}
	for update, want := range [][]int32{{0, 10}, {20, 30, 40}, {50}} {
		got, of, err := sharedPart(rc, &store.RolloutRef{Update: update, Updates: 3}, rows, scores)
		require.NoError(t, err)
		require.Len(t, of, len(want))
		for i, row := range want {
			require.Equal(t, []int32{row, row}, []int32{got[i].Row, of[i].Row})
		}
	}
	rc.Train.Freshness = spec.Freshness{Online: 1, Reuse: 2}
	got, _, err := sharedPart(rc, &store.RolloutRef{Update: 1, Updates: 2}, rows, scores)
	require.NoError(t, err)
	require.Len(t, got, 6)
	got, _, err = sharedPart(rc, nil, rows, scores)
	require.NoError(t, err)
	require.Len(t, got, 6)
	_, _, err = sharedPart(rc, nil, rows, scores[:5])
	require.ErrorIs(t, err, store.ErrInvalid)
	require.Equal(t, 3, origin(activities.CreditInput{Iteration: 3}))
	require.Equal(t, 1, origin(activities.CreditInput{Iteration: 3, Rollout: &store.RolloutRef{Iteration: 1}}))
}

// Rows that are not worth a step are left out with their scores and their signal, and counted.
func TestWorthAStep(t *testing.T) {
	rows, scores := []episode.TrajectoryRow{{Row: 1}, {Row: 2}, {Row: 3}}, []episode.ScoreRow{{Row: 1}, {Row: 2}, {Row: 3}}
	s := run.TrainingSignal{Advantages: [][]float64{{1}, {2}, {3}}, Worth: []bool{false, true, true}, Metrics: activities.Metrics{}}
	rows, scores = worthAStep(rows, scores, &s)
	require.Equal(t, []int32{2, 3, 2, 3}, []int32{rows[0].Row, rows[1].Row, scores[0].Row, scores[1].Row})
	require.Equal(t, [][]float64{{2}, {3}}, s.Advantages)
	require.Equal(t, activities.Metrics{"rollout/small_advantages": 1}, s.Metrics)
	s = run.TrainingSignal{Metrics: activities.Metrics{}}
	rows, _ = worthAStep(rows, scores, &s)
	require.Len(t, rows, 2)
	require.Empty(t, s.Metrics)

	p := begin(t, `{"selection": {"least_advantage": 100}}`)
	_, selected := p.selected(0, activities.SelectInput{})
	_, out := p.credited(activities.CreditInput{}, selected)
	require.Nil(t, out.Batch, "no row is worth a step")
	require.EqualValues(t, 8, out.Metrics["rollout/small_advantages"])
}

// What a replay buffer holds are the rows of recent batches that were fresh there, each once.
func TestReplay(t *testing.T) {
	p := begin(t, `{"freshness": {"replay_iterations": 3, "replay_share": 0.5}}`)
	width := p.rc.Shapes(p.rc.Training, 1).Sequence
	put := func(rows ...[2]int32) store.Ref { // origin and row
		var out []batch.Row
		for _, of := range rows {
			out = append(out, batch.Row{Origin: of[0], Row: of[1], IDs: make([]int32, width), Turns: make([]int32, width), Mask: make([]bool, width), Columns: batch.RowColumns{batch.OldLogProbs: make([]float32, width), batch.Advantages: make([]float32, width)}})
		}
		raw, err := batch.Encode(out, 2)
		require.NoError(t, err)
		ref, err := store.PutArtifact(t.Context(), p.s, "runs/r", "batch", "safetensors", raw)
		require.NoError(t, err)
		return ref
	}
	of := func(rows []batch.Row) (out [][2]int32) {
		for _, r := range rows {
			out = append(out, [2]int32{r.Origin, r.Row})
		}
		return out
	}
	in := activities.CreditInput{Replay: []store.Ref{
		put([2]int32{6, 1}, [2]int32{4, 2}, [2]int32{6, 3}), // newest first
		put([2]int32{5, 4}, [2]int32{4, 5}),
		put([2]int32{5, 4}, [2]int32{5, 6}), // the same rollout as the batch after it
		put([2]int32{2, 7}),
	}}
	got, err := p.h.earlier(t.Context(), p.rc, in)
	require.NoError(t, err)
	require.Equal(t, [][2]int32{{6, 1}, {6, 3}, {5, 4}, {5, 6}, {2, 7}}, of(got))
	in.Replay = in.Replay[2:3]
	got, err = p.h.earlier(t.Context(), p.rc, in)
	require.NoError(t, err)
	require.Equal(t, [][2]int32{{5, 4}, {5, 6}}, of(got))
	in.Replay[0].Key = "runs/r/nothing"
	_, err = p.h.earlier(t.Context(), p.rc, in)
	require.ErrorContains(t, err, "replay buffer: ")
	plain := begin(t, `{}`)
	got, err = plain.h.earlier(t.Context(), plain.rc, in)
	require.NoError(t, err)
	require.Empty(t, got)
}

// Rows are drawn from the buffer by the iteration's own address: as many as the share says, none twice, never
// supervised ones, with what they had.
func TestReplayed(t *testing.T) {
	rc := &run.Context{Train: spec.Train{Seed: 4, Freshness: spec.Freshness{ReplayIterations: 2, ReplayShare: .25}}}
	var buffer []batch.Row
	for i := range int32(9) {
		buffer = append(buffer, batch.Row{Row: i, Supervised: i%3 == 0, Columns: batch.RowColumns{batch.OldLogProbs: []float32{float32(i)}}})
	}
	rows := func(in activities.CreditInput, fresh int) (out []int32) {
		for _, r := range replayed(rc, in, buffer, fresh) {
			require.False(t, r.Supervised)
			require.Equal(t, float32(r.Row), r.Columns[batch.OldLogProbs][0])
			out = append(out, r.Row)
		}
		require.True(t, slices.IsSorted(out))
		return out
	}
	for fresh, want := range map[int]int{0: 0, 2: 0, 3: 1, 8: 2, 9: 3, 18: 6, 30: 6} {
		require.Len(t, rows(activities.CreditInput{}, fresh), want, "%d fresh rows", fresh)
	}
	in := activities.CreditInput{Branch: 1, Iteration: 5}
	pool := []int32{1, 2, 4, 5, 7, 8}
	drawn := draw.Address{Seed: 4, Purpose: draw.Replay, Branch: 1, Iteration: 5}.Permutation(6)[:3]
	slices.Sort(drawn)
	require.Equal(t, []int32{pool[drawn[0]], pool[drawn[1]], pool[drawn[2]]}, rows(in, 9))
	seen := map[string]bool{}
	for iteration := range 20 {
		in.Iteration = iteration
		seen[fmt.Sprint(rows(in, 9))] = true
	}
	require.Greater(t, len(seen), 5)

	rc.Train.Update.Mismatch.Regime = spec.Decoupled
	got := replayed(rc, in, buffer[:2], 9)
	require.Equal(t, got[0].Columns[batch.OldLogProbs], got[0].Columns[batch.RolloutLogProbs], "of a run that kept no other")
	buffer[1].Columns[batch.RolloutLogProbs] = []float32{-3}
	require.Equal(t, []float32{-3}, replayed(rc, in, buffer[:2], 9)[0].Columns[batch.RolloutLogProbs])
	require.Equal(t, []int{0, 1, 2, 3}, some(draw.Address{}, 4, 4))
	require.Empty(t, some(draw.Address{}, 0, 4))
}

// How old rows are, is counted in updates since the version that sampled them.
func TestStaleness(t *testing.T) {
	m := activities.Metrics{}
	rows := []batch.Row{{Origin: 7}, {Origin: 7}, {Origin: 4}, {Origin: 6}}
	staleness(rows, activities.CreditInput{Iteration: 7}, m)
	require.Equal(t, activities.Metrics{"training/staleness_mean": 1, "training/staleness_max": 3}, m)
	staleness(rows, activities.CreditInput{Iteration: 7, RolledOutBy: &store.VersionRef{Version: 6}}, m)
	require.Equal(t, activities.Metrics{"training/staleness_mean": 2, "training/staleness_max": 4}, m)
	require.Equal(t, []batch.Row{{Origin: 7}, {Origin: 7}}, newestOf(rows))
	require.Nil(t, newestOf(nil))
}

// The figures say how old rows are where they may be old.
func TestCreditOfOldRows(t *testing.T) {
	p := begin(t, `{"freshness": {"online": 2}}`)
	_, selected := p.selected(0, activities.SelectInput{})
	_, out := p.credited(activities.CreditInput{Iteration: 1, Rollout: &store.RolloutRef{Iteration: 0, Update: 1, Updates: 2}}, selected)
	require.Equal(t, canon.Float(1), out.Metrics["training/staleness_mean"])
	for _, r := range p.batch(out.Batch) {
		require.Zero(t, r.Origin)
		require.GreaterOrEqual(t, r.Row, int32(8), "the second round's")
	}
	p = begin(t, `{}`)
	_, selected = p.selected(0, activities.SelectInput{})
	in, out := p.credited(activities.CreditInput{}, selected)
	require.NotContains(t, out.Metrics, "training/staleness_mean")
	require.Empty(t, out.Tables)
	require.Nil(t, out.Turns)
	in.Scores.Key = "runs/r/nothing"
	_, err := p.h.Credit(t.Context(), in)
	require.ErrorContains(t, err, "credit of iteration 0 of run r: scores: ")
}
