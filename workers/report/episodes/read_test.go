package episodes_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/workers/report/episodes"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

var small = synthetic.Shape{Iterations: 2, Groups: 2, Members: 3, Turns: 2, Words: 4, States: 2, EvaluateEvery: 2, Instances: 4, Seed: 5}

func stored(t *testing.T, shape synthetic.Shape) (store.Store, *store.Manifest) {
	t.Helper()
	s := store.NewMemory()
	require.NoError(t, synthetic.Write(t.Context(), s, "run", shape))
	m, _, err := store.ReadManifestAt(t.Context(), s, "run", 0, 1)
	require.NoError(t, err)
	return s, m
}

func TestRead(t *testing.T) {
	s, m := stored(t, small)
	got, err := episodes.NewReader(s).Read(t.Context(), episodes.OfIteration(m))
	require.NoError(t, err)
	require.Empty(t, got.Missing)
	require.Len(t, got.Episodes, 6)
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), s, *m.Trajectories)
	require.NoError(t, err)
	for i, e := range got.Episodes {
		require.Equal(t, [3]int{i, i / 3, i % 3}, [3]int{e.Row, e.Group, e.Member})
		require.Len(t, e.Turns, rows[i].Turns())
		require.Equal(t, rows[i].Reward(), e.Reward)
		mean, learned := e.Advantage()
		require.Equal(t, e.Group == 0, learned, "the first group was selected")
		board := e.Turns[0].Before
		require.Regexp(t, `^[_OGP]{4}\n[_OGP]{4}\n`, board)
		sampled := 0
		for k, turn := range e.Turns {
			require.Equal(t, board, turn.Before)
			require.NotEqual(t, board, turn.After)
			board = turn.After
			require.Contains(t, turn.Prompt, turn.Before)
			require.Equal(t, k == 0, turn.Restart)
			text := ""
			for i, token := range turn.Tokens {
				text += token.Text
				require.Equal(t, learned, token.HasAdvantage)
				require.Equal(t, rows[e.Row].RolloutLogProbs[sampled+i], token.LogProb)
				if learned {
					require.InDelta(t, mean, token.Advantage, 1e-6)
				}
			}
			sampled += len(turn.Tokens)
			require.Equal(t, turn.Text, text)
			require.Contains(t, text, "</think><answer> Down || Right </answer><|im_end|>")
			require.Equal(t, "Down || Right", turn.Actions)
		}
	}

	source, err := episodes.OfEvaluation(m, 0)
	require.NoError(t, err)
	got, err = episodes.NewReader(s).Read(t.Context(), source)
	require.NoError(t, err)
	require.Len(t, got.Episodes, 4)
	_, learned := got.Episodes[0].Advantage()
	require.False(t, learned)
	_, err = episodes.OfEvaluation(m, 1)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// Rewards in parts are in the turns they were given to, and in the returns; an evaluation has
// none. Without their table the rest is read.
func TestReadRewardsInParts(t *testing.T) {
	shape := small
	shape.Rewards = []string{"progress", "length"}
	s, m := stored(t, shape)
	got, err := episodes.NewReader(s).Read(t.Context(), episodes.OfIteration(m))
	require.NoError(t, err)
	require.Empty(t, got.Missing)
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), s, *m.Trajectories)
	require.NoError(t, err)
	for i, e := range got.Episodes {
		for _, turn := range e.Turns {
			require.Equal(t, []episodes.Part{{Name: "progress", Weight: 2, Value: 0.5}, {Name: "length", Weight: 2, Value: 0.5}}, turn.Parts)
		}
		require.Equal(t, rows[i].Reward(), e.Reward)
		require.InDelta(t, rows[i].Return()+2*float64(len(e.Turns)), e.Return, 1e-12)
	}
	source, err := episodes.OfEvaluation(m, 0)
	require.NoError(t, err)
	played, err := episodes.NewReader(s).Read(t.Context(), source)
	require.NoError(t, err)
	require.Empty(t, played.Episodes[0].Turns[0].Parts)

	require.NoError(t, s.Delete(t.Context(), m.Artifacts["components"].Key))
	left, err := episodes.NewReader(s).Read(t.Context(), episodes.OfIteration(m))
	require.NoError(t, err)
	require.Len(t, left.Missing, 1)
	require.Equal(t, m.Artifacts["components"].Key, left.Missing[0].Key)
	require.ErrorIs(t, left.Missing[0].Err, store.ErrNotFound)
	require.Empty(t, left.Episodes[0].Turns[0].Parts)
	require.Equal(t, rows[0].Return(), left.Episodes[0].Return)
}

// Missing and damaged objects are reported, and the rest is read.
func TestReadWhatIsLeft(t *testing.T) {
	remove := func(t *testing.T, s store.Store, key string) { require.NoError(t, s.Delete(t.Context(), key)) }
	alter := func(t *testing.T, s store.Store, key string) {
		remove(t, s, key)
		require.NoError(t, s.Put(t.Context(), key, []byte("other bytes"), store.PutOptions{}))
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, s store.Store, m *store.Manifest)
		what   string
		kind   error
		check  func(t *testing.T, all []episodes.Episode)
	}{
		{"no trajectories", func(t *testing.T, s store.Store, m *store.Manifest) { remove(t, s, m.Trajectories.Key) },
			"trajectories, and so these episodes", store.ErrNotFound, func(t *testing.T, all []episodes.Episode) { require.Empty(t, all) }},
		{"altered trajectories", func(t *testing.T, s store.Store, m *store.Manifest) { alter(t, s, m.Trajectories.Key) },
			"trajectories, and so these episodes", store.ErrAltered, func(t *testing.T, all []episodes.Episode) { require.Empty(t, all) }},
		{"no step table", func(t *testing.T, s store.Store, m *store.Manifest) { remove(t, s, m.Turns[0].Step.Key) },
			"what turn 1 led to, and so its boards", store.ErrNotFound, func(t *testing.T, all []episodes.Episode) {
				require.NotEmpty(t, all[0].Turns[0].Before, "of the prompt")
				require.Empty(t, all[0].Turns[0].After)
				require.NotEmpty(t, all[0].Turns[0].Text)
			}},
		{"no batch", func(t *testing.T, s store.Store, m *store.Manifest) { remove(t, s, m.Batch.Key) },
			"batch, and so the advantages", store.ErrNotFound, func(t *testing.T, all []episodes.Episode) {
				_, ok := all[0].Advantage()
				require.False(t, ok)
			}},
		{"a batch that is none", func(t *testing.T, s store.Store, m *store.Manifest) {
			ref, err := store.PutArtifact(t.Context(), s, "elsewhere", "batch", "safetensors", []byte("no tensors"))
			require.NoError(t, err)
			m.Batch = &ref
		}, "batch, and so the advantages", store.ErrInvalid, func(t *testing.T, all []episodes.Episode) { require.NotEmpty(t, all) }},
		{"no tokenizer", func(t *testing.T, s store.Store, m *store.Manifest) { remove(t, s, m.Base.Files["tokenizer.json"].Key) },
			"tokenizer, and so the texts of single tokens", store.ErrNotFound, func(t *testing.T, all []episodes.Episode) {
				require.Contains(t, all[0].Turns[0].Text, "</think><answer> Down", "of the step table")
				require.Empty(t, all[0].Turns[0].Tokens[0].Text)
				require.Empty(t, all[0].Turns[0].Prompt)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, m := stored(t, small)
			c.damage(t, s, m)
			r := episodes.NewReader(s)
			for range 2 { // a reader remembers what it could not read
				got, err := r.Read(t.Context(), episodes.OfIteration(m))
				require.NoError(t, err)
				require.Len(t, got.Missing, 1)
				require.Equal(t, c.what, got.Missing[0].What)
				require.ErrorIs(t, got.Missing[0].Err, c.kind)
				c.check(t, got.Episodes)
			}
		})
	}
}

// A store that cannot be asked is no damage.
func TestReadUnavailable(t *testing.T) {
	s, m := stored(t, small)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := episodes.NewReader(s).Read(ctx, episodes.OfIteration(m))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, episodes.Tolerable(&store.Error{Op: "read", Kind: store.ErrUnavailable}))
	require.True(t, episodes.Tolerable(errors.Join(store.ErrAltered)))
}

// Rows that no rollout makes are refused as a whole.
func TestReadInconsistentRows(t *testing.T) {
	s, m := stored(t, small)
	whole, err := tables.Get[episode.TrajectoryRow](t.Context(), s, *m.Trajectories)
	require.NoError(t, err)
	for name, spoil := range map[string]func(r *episode.TrajectoryRow){
		"row":          func(r *episode.TrajectoryRow) { r.Row = 9 },
		"group":        func(r *episode.TrajectoryRow) { r.Group = 7 },
		"ids":          func(r *episode.TrajectoryRow) { r.IDs = r.IDs[1:] },
		"log-probs":    func(r *episode.TrajectoryRow) { r.RolloutLogProbs = nil },
		"lengths":      func(r *episode.TrajectoryRow) { r.PromptLengths[0] = -1 },
		"other length": func(r *episode.TrajectoryRow) { r.SampledLengths = nil },
		"keys":         func(r *episode.TrajectoryRow) { r.StateKeys = nil },
		"rewards":      func(r *episode.TrajectoryRow) { r.Rewards = append(r.Rewards, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			rows := append([]episode.TrajectoryRow(nil), whole...)
			r := rows[4]
			r.PromptLengths = append([]int32(nil), r.PromptLengths...)
			spoil(&r)
			rows[4] = r
			ref, err := tables.Put(t.Context(), s, "spoilt/"+store.EscapeSegment(name), "trajectories", rows)
			require.NoError(t, err)
			source := episodes.OfIteration(m)
			source.Trajectories = &ref
			got, err := episodes.NewReader(s).Read(t.Context(), source)
			require.NoError(t, err)
			require.Empty(t, got.Episodes)
			require.ErrorIs(t, got.Missing[0].Err, store.ErrInvalid)
		})
	}
}

// Rounds of a rollout continue the index, and iterations that share it bring each
// their own batch.
func TestReadRounds(t *testing.T) {
	s, m := stored(t, small)
	first, _, err := store.ReadManifestAt(t.Context(), s, "run", 0, 0)
	require.NoError(t, err)
	var rows []episode.TrajectoryRow
	for i, ref := range []*store.Ref{first.Trajectories, m.Trajectories} {
		part, err := tables.Get[episode.TrajectoryRow](t.Context(), s, *ref)
		require.NoError(t, err)
		for _, r := range part {
			r.Row, r.Group = r.Row+int32(6*i), r.Group+int32(2*i)
			rows = append(rows, r)
		}
	}
	ref, err := tables.Put(t.Context(), s, "rounds", "trajectories", rows)
	require.NoError(t, err)
	source := episodes.OfIteration(first)
	source.Trajectories, source.Turns = &ref, append([]store.TurnRefs(nil), first.Turns...)
	for _, turn := range m.Turns {
		turn.Round = 1
		source.Turns = append(source.Turns, turn)
	}
	source.Batches = []store.Ref{*first.Batch, *m.Batch}
	got, err := episodes.NewReader(s).Read(t.Context(), source)
	require.NoError(t, err)
	require.Empty(t, got.Missing)
	require.Len(t, got.Episodes, 12)
	for i, ref := range []*store.Manifest{first, m} {
		alone, err := episodes.NewReader(s).Read(t.Context(), episodes.OfIteration(ref))
		require.NoError(t, err)
		for k, e := range alone.Episodes {
			require.Equal(t, e.Turns[0].After, got.Episodes[6*i+k].Turns[0].After)
		}
	}
	_, learned := got.Episodes[0].Advantage()
	require.True(t, learned, "its row is in the batch, as of the iteration that rolled it out")
	_, learned = got.Episodes[6].Advantage()
	require.False(t, learned)
}

// The advantages of an update in passes are in the batches of its turns, the last turn's first.
func TestReadPasses(t *testing.T) {
	s, m := stored(t, small)
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), s, *m.Trajectories)
	require.NoError(t, err)
	width := 0
	for _, r := range rows {
		width = max(width, len(r.IDs))
	}
	m.Batch, m.Passes = nil, nil
	for turn := 2; turn > 0; turn-- {
		var learned []batch.Row
		for _, p := range episode.Stretches(episode.SelectedOf(rows)) {
			b := batch.Row{
				Row: p.Row, Origin: int32(m.Iteration), IDs: make([]int32, width), Length: int32(len(p.Ids)), Turns: make([]int32, width),
				Mask: make([]bool, width), Columns: batch.RowColumns{batch.OldLogProbs: make([]float32, width), batch.Advantages: slices.Repeat([]float32{float32(10 * turn)}, width)},
			}
			copy(b.Turns, p.Turns)
			copy(b.Mask, p.Sampled)
			learned = append(learned, b)
		}
		learned = run.OfTurn(learned, turn)
		require.NotEmpty(t, learned)
		body, err := batch.Encode(learned, 1)
		require.NoError(t, err)
		ref, err := store.PutArtifact(t.Context(), s, "passes", "batch", "safetensors", body)
		require.NoError(t, err)
		m.Passes = append(m.Passes, store.Pass{Turn: turn, Batch: ref, State: "s"})
	}
	got, err := episodes.NewReader(s).Read(t.Context(), episodes.OfIteration(m))
	require.NoError(t, err)
	require.Empty(t, got.Missing)
	for i, e := range got.Episodes {
		for k, turn := range e.Turns {
			for _, token := range turn.Tokens {
				require.Equal(t, rows[i].Selected, token.HasAdvantage)
				if rows[i].Selected {
					require.InDelta(t, 10*(k+1), token.Advantage, 0)
				}
			}
		}
	}
	require.NoError(t, s.Delete(t.Context(), m.Passes[1].Batch.Key))
	got, err = episodes.NewReader(s).Read(t.Context(), episodes.OfIteration(m))
	require.NoError(t, err)
	require.Len(t, got.Missing, 1)
	require.False(t, got.Episodes[0].Turns[0].Tokens[0].HasAdvantage, "advantages of a part of the turns belong to no token")
}
