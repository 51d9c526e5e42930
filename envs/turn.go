package envs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/draw"
)

// ErrReplay says that recorded actions do not fit the episode they are said to come from.
var ErrReplay = errors.New("recorded actions do not fit the episode")

// Turn is what a reply led to.
type Turn struct {
	// Actions are the executed actions by their canonical names: what Replay needs. Calls of tools are among them.
	Actions []string
	// Invalid is how many actions of the reply were not legal; they were skipped.
	Invalid int
	// Effective is how many executed actions changed the state.
	Effective int
	// Reward is the sum of the executed actions' rewards, raw.
	Reward float64
	// Penalty is the format penalty, or 0.
	Penalty float64
	// Text is the environment's last words in this turn.
	Text string
	// Done says that the environment has ended the episode; Success that the task is solved.
	Done, Success bool
	// ActionsLeft of the episode; at 0 the episode is over, solved or not.
	ActionsLeft int
	// Calls are the calls of tools, also those that are wrong. Those that are not come first among Actions.
	Calls []calls.Call
}

// After is what follows the turn, which is the number-th, with the answers to its calls.
func (t Turn) After(number int, results []string) NextTurn {
	acted := slices.ContainsFunc(t.Actions, func(action string) bool { return !calls.IsAction(action) })
	return NextTurn{Number: number + 1, Reward: t.Reward, ActionsLeft: t.ActionsLeft, Results: results, Acted: acted}
}

// Ended says that no turn follows: the environment has ended the episode or its
// actions are used up.
func (t Turn) Ended() bool { return t.Done || t.ActionsLeft == 0 }

// Play executes a reply: its legal actions in order, until the episode is done
// or its actions are used up. A placeholder of the prompt is no legal action. A turn that the protocol's rule charges costs the
// format penalty, once.
func (p Protocol) Play(episode Episode, reply Reply, actionsLeft int) Turn {
	t := Turn{ActionsLeft: actionsLeft, Calls: reply.Calls}
	for _, c := range reply.Calls {
		if c.Wrong != "" {
			t.Invalid++
			continue
		}
		t.Actions = append(t.Actions, c.Action())
	}
	legal := func(action string) (string, bool) { return p.legal(episode, action) }
	if a, ok := episode.(Answered); ok {
		copied := len(reply.Actions) - len(p.WithoutPlaceholders(reply.Actions)) // it was not asked about these
		actions, invalid := a.Answer()
		reply.Actions = actions
		t.Invalid += invalid + copied
		legal = episode.Legal
	}
	if _, ok := episode.(Graded); ok {
		legal = func(string) (string, bool) { return p.grade(episode, reply) } // of the turn's one action
	}
	charged := false
	for i, action := range reply.Actions {
		if t.ActionsLeft == 0 || episode.Done() {
			// RAGEN looks at all actions before it executes any.
			charged = slices.ContainsFunc(reply.Actions[i:], func(a string) bool { _, ok := legal(a); return !ok })
			break
		}
		canonical, ok := legal(action)
		if !ok {
			t.Invalid++
			continue
		}
		t.take(episode, canonical)
	}
	charged = p.Penalty == AnyInvalid && (charged || t.Invalid > 0)
	if len(t.Actions) == 0 || charged {
		t.Penalty = p.FormatPenalty
	}
	t.Done, t.Success = episode.Done(), episode.Success()
	return t
}

func (t *Turn) take(episode Episode, action string) {
	o := episode.Step(action)
	t.Actions = append(t.Actions, action)
	t.ActionsLeft--
	t.Reward += o.Reward
	if o.Effective {
		t.Effective++
	}
	t.Text = o.Text
}

// Replay builds an episode again from the actions of its earlier turns, as Play
// recorded them: [turns][actions]. Invalid and Penalty of the turns are 0, since
// they depend on what was written. Errors are of kind ErrReplay.
func Replay(env Environment, instance, chance draw.Address, turns [][]string) (Episode, []Turn, error) {
	return ReplayEach(env, instance, chance, turns, func(Episode) {})
}

// ReplayForked is Replay of an episode that began as a branch of others: chances[k] is where turn k
// draws what happens by chance, [turns+1], and the last one where the next turn does. A chance that
// changes needs an episode that is Forked.
func ReplayForked(env Environment, instance draw.Address, chances []draw.Address, turns [][]string) (Episode, []Turn, error) {
	if len(chances) != len(turns)+1 {
		return nil, nil, fmt.Errorf("%w: %d chances for %d turns and the next", ErrReplay, len(chances), len(turns))
	}
	at := 0
	return ReplayEach(env, instance, chances[0], turns, func(e Episode) {
		if f, ok := e.(Forked); ok && at > 0 && chances[at] != chances[at-1] {
			f.Fork(chances[at])
		}
		at++
	})
}

// ReplayEach is Replay, which shows the episode at its beginning and after each turn. see
// must not keep it.
func ReplayEach(env Environment, instance, chance draw.Address, turns [][]string, see func(Episode)) (Episode, []Turn, error) {
	episode := env.Reset(instance, chance)
	see(episode)
	played := make([]Turn, len(turns))
	left := env.MaxActions()
	for i, actions := range turns {
		t := Turn{ActionsLeft: left}
		for _, action := range actions {
			if calls.IsAction(action) { // it changes nothing
				t.Actions = append(t.Actions, action)
				continue
			}
			if episode.Done() || t.ActionsLeft == 0 {
				return nil, nil, fmt.Errorf("%w: turn %d has the action %q after its end", ErrReplay, i+1, action)
			}
			if canonical, ok := episode.Legal(action); !ok || canonical != action {
				return nil, nil, fmt.Errorf("%w: turn %d has the action %q, legal are %q", ErrReplay, i+1, action, episode.Choices())
			}
			t.take(episode, action)
		}
		t.Done, t.Success = episode.Done(), episode.Success()
		left = t.ActionsLeft
		played[i] = t
		see(episode)
	}
	return episode, played, nil
}
