package starter

import (
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/draw"
)

// ErrNoAdvice is the kind of errors about demonstrations that nobody can give: the
// environment knows no best play, or none of the instances tried can be solved.
var ErrNoAdvice = errors.New("no demonstrations")

// maxTries bounds the instances that are drawn for a demonstration: limits under
// which one in a hundred can be solved fail once in e^40 rows.
const maxTries = 4000

// demonstrate writes best play in the first instance of the row's that can be
// solved within the turns.
func (w *writer) demonstrate(row draw.Address) error {
	instance, chance := row, row
	instance.Purpose = row.Purpose.With(draw.Instance)
	chance.Purpose = row.Purpose.With(draw.Chance)
	for try := range int64(maxTries) {
		instance.Turn, chance.Turn = try, try
		begin := func() envs.Episode { return w.env.Reset(instance, chance) }
		episode := begin()
		advised, ok := episode.(envs.Advised)
		if !ok {
			return fmt.Errorf("%w: it does not know best play", ErrNoAdvice)
		}
		searches := w.searches(episode)
		if len(searches) >= w.turns || len(w.advice(advised, len(searches)+1, w.env.MaxActions())) == 0 {
			continue
		}
		return w.write(begin, func(episode envs.Episode, turn, left int) []string {
			if turn <= len(searches) {
				return searches[turn-1 : turn]
			}
			return w.advice(episode.(envs.Advised), turn, left)
		})
	}
	return fmt.Errorf("%w: none of %d instances can be solved in %d turns", ErrNoAdvice, maxTries, w.turns)
}

// searches are the calls by which best play looks up what it needs, one a turn.
func (w *writer) searches(episode envs.Episode) (out []string) {
	seeking, ok := episode.(envs.Seeking)
	if !ok || w.p.Tools == nil {
		return nil
	}
	for _, text := range seeking.Seek() {
		call, ok := calls.Search(w.p.Tools.Told(), text)
		if !ok {
			return nil
		}
		out = append(out, call.Action())
	}
	return out
}

// advice gives the actions of a demonstrated turn; none if no play succeeds.
func (w *writer) advice(episode envs.Advised, turn, left int) []string {
	perTurn, turns := w.env.MaxActionsPerTurn(), w.turns-turn+1
	// One action a turn comes first: this is the play if chance decides what follows.
	if actions := episode.Advice(min(left, turns)); len(actions) > 0 {
		return actions[:min(len(actions), perTurn)]
	}
	// A single action that one action a turn did not bring to light is the beginning
	// of play under chance that the turns do not suffice for.
	if actions := episode.Advice(min(left, turns*perTurn)); len(actions) > 1 {
		return actions[:min(len(actions), perTurn)]
	}
	return nil
}

// Solve plays an episode from its beginning as a demonstration does, but without searches, in at most so many turns: the actions of
// each, and whether they succeed. There are none where best play is not known, or no play succeeds.
func Solve(env envs.Environment, p envs.Protocol, episode envs.Episode, turns int) (actions [][]string, success bool) {
	if _, known := episode.(envs.Advised); !known {
		return nil, false
	}
	w := writer{env: env, p: p, turns: turns}
	actions = w.rehearse(episode, func(e envs.Episode, turn, left int) []string { return w.advice(e.(envs.Advised), turn, left) })
	return actions, episode.Success()
}
