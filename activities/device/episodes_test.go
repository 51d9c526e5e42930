package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// walked is a run of two turns, with what its rows sampled written by hand.
type walked struct {
	*testRun
	t   *testing.T
	kit *run.Context
	tok *tokenizer.Tokenizer
	end int32
}

func newWalked(t *testing.T, edits ...string) *walked {
	r := resolved(t, "walk", tinySpec(t, append([]string{`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.max_new_tokens=16",
		"rollout.groups=2", "rollout.group_size=2"}, edits...)...))
	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	return &walked{testRun: r, t: t, kit: rc, tok: tok, end: tok.EndOfTurn()[0]}
}

// says is the sample of a text; a text that ends in "…" was cut.
func (w *walked) says(text string) (ids []int32, truncated bool) {
	if cut := len(text) - len("…"); cut >= 0 && text[cut:] == "…" {
		return w.tok.Encode(text[:cut]), true
	}
	return append(w.tok.Encode(text), w.end), false
}

// turn puts a turn's generate table down, from the contexts of the turns before,
// and steps it. Ended rows say "".
func (w *walked) turn(turns []store.TurnRefs, texts ...string) (store.TurnRefs, []episode.GenerateRow, []episode.StepRow, activities.StepResult) {
	w.t.Helper()
	ctx, n := w.t.Context(), len(turns)+1
	rows, contexts, _, err := contexts(ctx, w.kit, w.store, w.kit.Training, activities.GenerateInput{Policy: activities.Version{Run: w.Run}, Turn: n, Turns: turns})
	require.NoError(w.t, err)
	require.Len(w.t, rows, len(texts))
	recorded, err := recorded.Turns(ctx, w.store, turns)
	require.NoError(w.t, err)
	for i, text := range texts {
		if text == "" {
			require.False(w.t, rows[i].Alive, "row %d has ended", i)
			continue
		}
		require.True(w.t, rows[i].Alive, "row %d goes on", i)
		var want []int32
		for _, t := range recorded {
			if t.Generate[i].Restart {
				want = nil
			}
			want = append(append(want, t.Generate[i].PromptIDs...), t.Generate[i].SampledIDs...)
		}
		if rows[i].Restart {
			want = nil
		}
		require.Equal(w.t, append(want, rows[i].PromptIDs...), contexts[i], "row %d: the recorded ids, each once", i)
		require.LessOrEqual(w.t, len(contexts[i]), w.kit.Training.Widths[n-1])
		rows[i].SampledIDs, rows[i].Truncated = w.says(text)
		for j := range rows[i].SampledIDs {
			rows[i].RolloutLogProbs = append(rows[i].RolloutLogProbs, -float32(n)-float32(j)/100)
			rows[i].RolloutEntropies = append(rows[i].RolloutEntropies, float32(n)/4)
		}
	}
	g, err := tables.Put(ctx, w.store, "runs/walk", "generate", rows)
	require.NoError(w.t, err)
	got, err := w.Host.Step(ctx, activities.StepInput{Run: w.Run, Turn: n, Turns: turns, Generate: g})
	require.NoError(w.t, err)
	stepped, err := tables.Get[episode.StepRow](ctx, w.store, got.Table)
	require.NoError(w.t, err)
	return store.TurnRefs{Generate: g, Step: got.Table}, rows, stepped, got
}

func TestTrajectories(t *testing.T) {
	w := newWalked(t)
	// Rows: one walks, one says nonsense, one is cut, one is cut after its answer.
	first, g1, s1, got := w.turn(nil, "Right</answer>", "Up</answer>", "Ri…", "Left</answer>…")
	require.Equal(t, 4, got.Alive)
	require.Equal(t, []string{"Right"}, s1[0].Actions)
	require.Equal(t, 1.0, s1[0].Reward)
	require.True(t, s1[0].Valid)
	require.EqualValues(t, 1, s1[0].Effective)
	require.EqualValues(t, 1, s1[1].Invalid)
	require.Equal(t, "at 0", s1[0].StateBefore)
	require.Equal(t, "at 1", s1[0].Observation)
	require.Empty(t, s1[1].Actions)
	require.Equal(t, w.kit.Train.Rollout.FormatPenalty, s1[1].Penalty)
	require.False(t, s1[1].Valid)
	require.False(t, s1[2].Valid)
	require.Equal(t, []string{"Left"}, s1[3].Actions)
	require.True(t, s1[3].Valid)
	for i := range s1 {
		require.NotEmpty(t, s1[i].NextIDs)
		require.Equal(t, g1[0].PromptIDs, g1[i].PromptIDs, "the same first prompt in this environment")
	}
	closing, err := w.tok.Closing()
	require.NoError(t, err)
	require.NotEqual(t, closing, s1[0].NextIDs[0], "the sample closed its message itself")
	require.Equal(t, closing, s1[2].NextIDs[0], "what was cut is closed by the environment, outside the loss")
	require.Equal(t, s1[0].NextIDs[:3], s1[0].NextIDs[:3])

	second, g2, s2, got := w.turn([]store.TurnRefs{first}, "Right</answer>", "Right</answer>", "Up…", "Right</answer>")
	require.Zero(t, got.Alive)
	require.Equal(t, s1[0].NextIDs, g2[0].PromptIDs)
	require.True(t, s2[0].Success)
	require.Equal(t, "at 2", s2[0].StateKey, "the state of turn 1 was played again")
	require.Equal(t, "at 1", s2[1].StateKey)
	for _, row := range s2 {
		require.True(t, row.Done)
		require.Empty(t, row.NextIDs)
	}

	selected, err := w.Host.Select(t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first, second}})
	require.NoError(t, err)
	require.Equal(t, 4, selected.Rows)
	rows, err := recorded.Selected(t.Context(), w.store, selected.Trajectories)
	require.NoError(t, err)
	for i, r := range rows {
		require.EqualValues(t, i, r.Row)
		require.EqualValues(t, i/2, r.Group)
		require.EqualValues(t, i%2, r.Member)
		var want []int32
		want = append(append(append(append(want, g1[i].PromptIDs...), g1[i].SampledIDs...), s1[i].NextIDs...), g2[i].SampledIDs...)
		require.Equal(t, want, r.IDs, "recorded ids, as they were")
		require.Equal(t, []int32{int32(len(g1[i].PromptIDs)), int32(len(s1[i].NextIDs))}, r.PromptLengths)
		require.Equal(t, append(append([]float32(nil), g1[i].RolloutLogProbs...), g2[i].RolloutLogProbs...), r.RolloutLogProbs)
		// Exactly the sampled ids are marked: in order they are what was sampled.
		var marked []int32
		cut := episode.Stretches([]episode.TrajectoryRow{r})
		require.Len(t, cut, 1, "the contexts showed everything")
		for at, sampled := range cut[0].Sampled {
			if sampled {
				marked = append(marked, r.IDs[at])
			}
		}
		require.Equal(t, append(append([]int32(nil), g1[i].SampledIDs...), g2[i].SampledIDs...), marked)
	}
	require.Equal(t, []float64{1, 2}, rows[0].Rewards)
	require.Equal(t, 3.0, rows[0].Return())
	require.Equal(t, []string{"Right", "Right"}, rows[0].Actions)
	require.True(t, rows[0].Success)
	require.True(t, rows[0].Valid)
	require.False(t, rows[0].Truncated)
	require.True(t, rows[2].Truncated)
	require.False(t, rows[1].Valid, "one turn was not")
	require.False(t, rows[3].Success)
	require.Equal(t, canon.Float(0.25), selected.Metrics["success/mean"])
	require.Equal(t, canon.Float(0.5), selected.Metrics["truncated/mean"])
	require.Equal(t, canon.Float(0.5), selected.Metrics["valid/mean"])
	require.Equal(t, canon.Float(4), selected.Metrics["rollout/selected_rows"])

	w.microBatches(rows)
}

// microBatches checks the layout that the loss sees.
func (w *walked) microBatches(rows []episode.TrajectoryRow) {
	t, b := w.t, w.kit.Train.Update.MicroBatch
	for _, n := range []int{1, b - 1, b, len(rows)} {
		mbs := w.kit.MicroBatches(episode.Stretches(rows[:n]))
		require.Len(t, mbs, (n+b-1)/b)
		for i := range len(mbs) * b {
			mb, at := mbs[i/b], i%b
			require.Len(t, mb.IDs[at], w.kit.Shapes(w.kit.Training, 1).Sequence)
			if i >= n {
				require.Zero(t, mb.Lengths[at])
				require.Zero(t, mb.RowWeights[at])
				require.NotContains(t, mb.Mask[at], true)
				continue
			}
			r := rows[i]
			require.EqualValues(t, len(r.IDs), mb.Lengths[at])
			require.EqualValues(t, 1, mb.RowWeights[at])
			require.Equal(t, r.IDs, mb.IDs[at][:len(r.IDs)])
			for j, m := range mb.Mask[at] {
				sampled := j < len(r.IDs) && episode.Stretches(rows[i : i+1])[0].Sampled[j]
				require.Equal(t, sampled, m, "row %d, token %d", i, j)
			}
		}
	}
}

// An episode that has ended keeps its row, as padding.
func TestEndedRows(t *testing.T) {
	w := newWalked(t, "rollout.turns=3")
	first, _, _, got := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
	require.Equal(t, 4, got.Alive)
	second, _, s2, got := w.turn([]store.TurnRefs{first}, "Right</answer>", "Left</answer>", "Right</answer>", "Right</answer>")
	require.Equal(t, 3, got.Alive)
	require.True(t, s2[0].Done)
	require.True(t, s2[0].Success)
	third, g3, s3, _ := w.turn([]store.TurnRefs{first, second}, "", "Right</answer>", "Right</answer>", "Left</answer>")
	require.Empty(t, g3[0].PromptIDs)
	require.Empty(t, g3[0].SampledIDs)
	require.True(t, s3[0].Done)
	require.False(t, s3[0].Alive)
	require.Zero(t, s3[0].Reward)
	require.True(t, s3[2].Success)

	turns, err := recorded.Turns(t.Context(), w.store, []store.TurnRefs{first, second, third})
	require.NoError(t, err)
	rows := episode.Trajectories(turns, w.kit.Training.Label)
	require.Len(t, rows[0].Rewards, 2, "the third turn is no part of it")
	require.True(t, rows[0].Success)
	require.False(t, rows[0].Truncated)
	require.Len(t, rows[1].Rewards, 3)
	require.False(t, rows[1].Truncated, "it used its turns up")
	require.True(t, rows[2].Success)
}

// If the context is full, an episode ends and counts as truncated.
func TestFullContext(t *testing.T) {
	w := newWalked(t)
	w.kit.Training.Widths[1] = w.kit.Training.Widths[0] + 1
	first, _, s1, got := w.turn(nil, "Right</answer>", "Right</answer>", "Right</answer>", "Right</answer>")
	require.Zero(t, got.Alive)
	require.True(t, s1[0].Done)
	require.True(t, s1[0].ContextFull)
	require.Empty(t, s1[0].NextIDs)
	turns, err := recorded.Turns(t.Context(), w.store, []store.TurnRefs{first})
	require.NoError(t, err)
	require.True(t, episode.Trajectories(turns, w.kit.Training.Label)[0].Truncated)
}

func TestTablesThatDoNotFit(t *testing.T) {
	w := newWalked(t)
	ctx := t.Context()
	first, _, _, _ := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
	short, err := tables.Put(ctx, w.store, "runs/walk", "short", []episode.GenerateRow{{Alive: true}})
	require.NoError(t, err)
	shortStep, err := tables.Put(ctx, w.store, "runs/walk", "short-step", []episode.StepRow{{}})
	require.NoError(t, err)
	wrong := map[string]func() error{
		"turn of other rows": func() error {
			_, err := w.Host.Select(ctx, activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first, {Generate: short, Step: shortStep}}})
			return err
		},
		"rows that did not step": func() error {
			_, err := w.Host.Select(ctx, activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{{Generate: short, Step: first.Step}}})
			return err
		},
		"too few rows": func() error {
			_, err := w.Host.Select(ctx, activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{{Generate: short, Step: shortStep}}})
			return err
		},
		"no turn": func() error {
			_, err := w.Host.Select(ctx, activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings})
			return err
		},
		"another table": func() error {
			_, err := w.Host.Step(ctx, activities.StepInput{Run: w.Run, Turn: 1, Generate: first.Step})
			return err
		},
		"context of other rows": func() error {
			_, _, _, err := contexts(ctx, w.kit, w.store, w.kit.Training, activities.GenerateInput{Turn: 2, Turns: []store.TurnRefs{{Generate: short, Step: first.Step}}})
			return err
		},
	}
	for name, f := range wrong {
		require.Equal(t, activities.KindInvalid, run.KindOf(f()), "%s: %v", name, f())
	}
	selected, err := w.Host.Select(ctx, activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first}})
	require.NoError(t, err)
	for name, scores := range map[string][]episode.ScoreRow{"other rows": {{Row: 1}, {Row: 2}, {Row: 3}, {Row: 4}}, "fewer": {{}}, "shorter": {{Row: 0}, {Row: 1}, {Row: 2}, {Row: 3}}} {
		table, err := tables.Put(ctx, w.store, "runs/walk", "scores", scores)
		require.NoError(t, err)
		_, err = w.Host.Credit(ctx, activities.CreditInput{Run: w.Run, Settings: w.Plan.Settings, Trajectories: selected.Trajectories, Scores: &table})
		require.Equal(t, activities.KindInvalid, run.KindOf(err), name)
	}
}

// Two turns with a real policy, which knows nothing: what it says is whatever it
// says, and the same twice.
func TestTwoTurns(t *testing.T) {
	t.Parallel()
	document := tinySpec(t, `environment.name="`+walkName+`"`, "rollout.turns=2", "rollout.group_size=2", "evaluation.every=0")
	r := begun(t, "turns", document)
	in := r.iterate(t)
	require.Len(t, in.Turns, 2)
	state := r.state
	r.forget(t)
	again := begun(t, "turns", document)
	again.iterate(t)
	require.Equal(t, r.head, again.head)
	require.Equal(t, state, again.state)
	again.forget(t)
	require.Equal(t, state, again.restore(t, activities.RestoreInput{}).State)
}
