// Package recorded reads the tables of rollouts from the store.
package recorded

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Turns reads the tables of recorded turns of a round and checks that they fit. Where a search
// chose after a turn, each row has the past of the row that it continues: after the last choice the
// rows are those of the turn that follows, or the round's trajectories. Where a wave follows a turn, its
// rows have the turns that they inherit, and its turns are added to those of the waves before.
func Turns(ctx context.Context, s store.Store, refs []store.TurnRefs) ([]episode.Turn, error) {
	var out []episode.Turn
	at := 0 // the turn of the episodes that the next tables have, from 0
	for i, r := range refs {
		g, err := tables.Get[episode.GenerateRow](ctx, s, r.Generate)
		if err != nil {
			return nil, err
		}
		st, err := tables.Get[episode.StepRow](ctx, s, r.Step)
		if err != nil {
			return nil, err
		}
		if len(g) != len(st) || len(out) > 0 && len(g) != len(out[0].Generate) {
			return nil, fmt.Errorf("turn %d has %d sampled and %d stepped rows: %w", i+1, len(g), len(st), store.ErrInvalid)
		}
		if at < len(out) || i > at {
			out = episode.Grow(out, at, episode.Turn{Generate: g, Step: st})
		} else {
			out = append(out, episode.Turn{Generate: g, Step: st})
		}
		at++
		if r.Forks != nil {
			forks, err := readForks(ctx, s, *r.Forks)
			if err == nil {
				err = episode.Inherit(out, forks)
			}
			if err != nil {
				return nil, fmt.Errorf("turn %d: %w", i+1, err)
			}
			if len(forks) > 0 {
				at = episode.FirstTurn(forks) - 1
			}
		}
		if r.Choices == nil {
			continue
		}
		choices, err := readChoices(ctx, s, *r.Choices)
		if err == nil {
			err = episode.Follow(out, choices)
		}
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return out, nil
}

// readChoices reads what was chosen after a turn.
func readChoices(ctx context.Context, s store.Store, ref store.Ref) ([]episode.ChoiceRow, error) {
	rows, err := tables.Get[episode.ChoiceRow](ctx, s, ref)
	if err != nil {
		return nil, fmt.Errorf("choices of a search: %w", err)
	}
	return rows, nil
}

// Wave reads what happened before a turn of a wave; refs are the turns so far, those of earlier waves
// among them. A rollout without waves is one.
func Wave(ctx context.Context, s store.Store, wave, turn int, refs []store.TurnRefs) (w episode.Wave, err error) {
	if len(refs) == 0 {
		return w, nil
	}
	turns, err := Turns(ctx, s, refs)
	if err != nil || wave == 0 {
		return episode.Wave{Turns: turns}, err
	}
	last := len(refs) - 1
	for last >= 0 && refs[last].Forks == nil {
		last--
	}
	if last < 0 || turn < 1 || turn > len(turns)+1 {
		return w, fmt.Errorf("turn %d of wave %d after %d turns: %w", turn, wave, len(refs), store.ErrInvalid)
	}
	forks, err := readForks(ctx, s, *refs[last].Forks)
	if err != nil {
		return w, err
	}
	w.Turns, w.Playing = turns[:turn-1], make([]bool, len(turns[0].Generate))
	for _, f := range forks {
		if int(f.Turn) < turn {
			w.Playing[f.Row] = true
		} else {
			w.Asleep++
		}
	}
	if turn > 1 {
		before := &w.Turns[turn-2]
		before.Step = slices.Clone(before.Step)
		for row, playing := range w.Playing {
			if !playing {
				st := &before.Step[row]
				st.Done, st.NextIDs, st.NextRestart = true, nil, false
			}
		}
	}
	return w, nil
}

// Next is the wave, from 0, and the turn, from 1, that follow the turns of a round.
func Next(ctx context.Context, s store.Store, refs []store.TurnRefs) (wave, turn int, err error) {
	turn = 1
	for _, r := range refs {
		turn++
		if r.Forks == nil {
			continue
		}
		forks, err := readForks(ctx, s, *r.Forks)
		if err != nil {
			return 0, 0, err
		}
		if len(forks) > 0 {
			wave, turn = wave+1, episode.FirstTurn(forks)
		}
	}
	return wave, turn, nil
}

// readForks reads where the rows of a wave begin.
func readForks(ctx context.Context, s store.Store, ref store.Ref) ([]episode.ForkRow, error) {
	rows, err := tables.Get[episode.ForkRow](ctx, s, ref)
	if err != nil {
		return nil, fmt.Errorf("branches of a wave: %w", err)
	}
	return rows, nil
}

// Selected reads the trajectories the update learns from, in row order.
func Selected(ctx context.Context, s store.Store, trajectories store.Ref) ([]episode.TrajectoryRow, error) {
	all, err := tables.Get[episode.TrajectoryRow](ctx, s, trajectories)
	if err != nil {
		return nil, fmt.Errorf("trajectories: %w", err)
	}
	return episode.SelectedOf(all), nil
}
