package episodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Reader reads rollouts. It keeps the tokenizers it has met and is for one
// goroutine.
type Reader struct {
	store      store.Store
	vocabulary map[string]*vocabulary // by the model's digest; nil: cannot be read
	absent     map[string]Missing     // why, by the model's digest
}

// NewReader gives a reader of a store.
func NewReader(s store.Store) *Reader {
	return &Reader{store: s, vocabulary: map[string]*vocabulary{}, absent: map[string]Missing{}}
}

// Tolerable reports whether an error means that an object is gone or damaged. The page
// then says so. If the store could not be read, the reading ends.
func Tolerable(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAltered) ||
		errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrTooLarge)
}

// Read reads a rollout's episodes. The error says why the store could not be read
// ([store.ErrUnavailable], [store.ErrDenied], …); [Rollout.Missing] lists what is gone or
// damaged.
func (r *Reader) Read(ctx context.Context, src Source) (Rollout, error) {
	var out Rollout
	// lacks notes a tolerable error and passes others on.
	lacks := func(ref store.Ref, what string, err error) error {
		if err != nil && !Tolerable(err) {
			return err
		}
		if err != nil {
			out.Missing = append(out.Missing, Missing{Key: ref.Key, What: what, Err: err})
		}
		return nil
	}
	if src.Trajectories == nil {
		return out, nil
	}
	rows, err := tables.Get[episode.TrajectoryRow](ctx, r.store, *src.Trajectories)
	if err == nil {
		err = check(rows)
	}
	if err != nil {
		return out, lacks(*src.Trajectories, "trajectories, and so these episodes", err)
	}
	components, err := r.components(ctx, src.Components, rows, lacks)
	if err != nil {
		return out, err
	}
	steps, err := r.steps(ctx, src.Turns, len(rows), lacks)
	if err != nil {
		return out, err
	}
	words, absent, err := r.words(ctx, src.Base)
	if err != nil {
		return out, err
	}
	if absent != nil {
		out.Missing = append(out.Missing, *absent)
	}
	advantages := map[int32][]float32{}
	for _, ref := range src.Batches {
		err := readAdvantages(ctx, r.store, ref, src.Iteration, advantages)
		if err := lacks(ref, "batch, and so the advantages", err); err != nil {
			return out, err
		}
	}
	for _, ref := range src.Passes {
		err := readPass(ctx, r.store, ref, src.Iteration, advantages)
		if err := lacks(ref, "batch of a pass, and so the advantages", err); err != nil {
			return out, err
		}
	}
	out.Episodes = make([]Episode, len(rows))
	for i, row := range rows {
		out.Episodes[i] = told(row, steps.of(i), words, advantages[row.Row])
	}
	for _, c := range components {
		turn := &out.Episodes[c.Row].Turns[c.Turn]
		turn.Parts = append(turn.Parts, Part{Name: c.Component, Weight: c.Weight, Value: c.Value})
	}
	return out, nil
}

// components reads the rewards in parts and adds them to the rows' returns.
func (r *Reader) components(ctx context.Context, ref *store.Ref, rows []episode.TrajectoryRow,
	lacks func(store.Ref, string, error) error) ([]run.ComponentRow, error) {
	if ref == nil {
		return nil, nil
	}
	components, err := tables.Get[run.ComponentRow](ctx, r.store, *ref)
	if err == nil {
		err = run.AddComponents(rows, components)
	}
	if err != nil {
		for i := range rows {
			rows[i].Added = nil
		}
		return nil, lacks(*ref, "rewards in parts, and so the returns with them", err)
	}
	return components, nil
}

// check finds rows whose parts do not fit each other.
func check(rows []episode.TrajectoryRow) error {
	members := 0
	for members < len(rows) && rows[members].Group == 0 {
		members++
	}
	for i, r := range rows {
		if int(r.Row) != i || members == 0 || int(r.Group) != i/members || int(r.Member) != i%members {
			return fmt.Errorf("row %d is row %d, group %d, member %d: %w", i, r.Row, r.Group, r.Member, store.ErrInvalid)
		}
		n, ids, sampled := r.Turns(), 0, 0
		for k := range r.PromptLengths {
			if k >= len(r.SampledLengths) || r.PromptLengths[k] < 0 || r.SampledLengths[k] < 0 {
				return fmt.Errorf("row %d: lengths of turn %d: %w", i, k+1, store.ErrInvalid)
			}
			ids += int(r.PromptLengths[k]) + int(r.SampledLengths[k])
			sampled += int(r.SampledLengths[k])
		}
		for _, have := range []int{
			len(r.SampledLengths), len(r.Restarts), len(r.StateKeys) - 1, len(r.Rewards), len(r.Penalties),
			len(r.Actions), len(r.Executed), len(r.Effective), len(r.Invalid),
		} {
			if have != n {
				return fmt.Errorf("row %d has %d turns, a column %d: %w", i, n, have, store.ErrInvalid)
			}
		}
		if ids != len(r.IDs) || sampled != len(r.RolloutLogProbs) {
			return fmt.Errorf("row %d: %d ids and %d log-probs, its turns say %d and %d: %w",
				i, len(r.IDs), len(r.RolloutLogProbs), ids, sampled, store.ErrInvalid)
		}
	}
	return nil
}

// told puts a row together with what its turns led to; steps are nil if that
// could not be read.
func told(r episode.TrajectoryRow, steps []*episode.StepRow, words *vocabulary, advantages []float32) Episode {
	e := Episode{
		Row: int(r.Row), Group: int(r.Group), Member: int(r.Member), Environment: r.Environment, StateKey: r.StateKeys[0],
		Reward: r.Reward(), Return: r.Return(), Success: r.Success, Valid: r.Valid, Truncated: r.Truncated, Selected: r.Selected,
		Turns: make([]Turn, r.Turns()),
	}
	if len(advantages) != len(r.RolloutLogProbs) {
		advantages = nil
	}
	place, sampled := 0, 0
	for k := range e.Turns {
		prompt := r.IDs[place : place+int(r.PromptLengths[k])]
		place += len(prompt)
		ids := r.IDs[place : place+int(r.SampledLengths[k])]
		place += len(ids)
		t := Turn{
			Restart: r.Restarts[k], Actions: r.Actions[k], Reward: r.Rewards[k], Penalty: r.Penalties[k],
			Executed: int(r.Executed[k]), Effective: int(r.Effective[k]), Invalid: int(r.Invalid[k]), StateKey: r.StateKeys[k+1],
			Tokens: make([]Token, len(ids)),
		}
		for i, id := range ids {
			t.Tokens[i] = Token{ID: id, LogProb: r.RolloutLogProbs[sampled+i]}
			if advantages != nil {
				t.Tokens[i].Advantage, t.Tokens[i].HasAdvantage = advantages[sampled+i], true
			}
		}
		sampled += len(ids)
		if k < len(steps) && steps[k] != nil {
			t.Text, t.After = steps[k].Text, steps[k].Observation
		}
		if words != nil {
			t.Prompt = words.text(prompt)
			t.Text = words.spell(t.Tokens)
		}
		if k == 0 {
			t.Before = firstBoard(t.Prompt)
		} else {
			t.Before = e.Turns[k-1].After
		}
		e.Turns[k] = t
	}
	return e
}
