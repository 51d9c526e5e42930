package foreign

import (
	"github.com/reprise-rl/reprise/envs"
)

// Recording has the answers about episodes, in the order of their turns.
type Recording struct{ played map[key]*played }

type key struct{ instance, chance uint64 }

// played is one episode's answers.
type played struct {
	first string
	steps []Step
	turn  Answer // the last one
}

// NewRecording is an empty recording.
func NewRecording() *Recording { return &Recording{map[key]*played{}} }

// Add adds the answer about an episode that follows those added before: first its beginning,
// then turn by turn. An answer with an error is not added.
func (r *Recording) Add(instance, chance uint64, a Answer) {
	if a.Err != nil {
		return
	}
	at := key{instance, chance}
	p := r.played[at]
	if p == nil {
		p = &played{first: a.Observation}
		r.played[at] = p
	}
	p.steps, p.turn = append(p.steps, a.Steps...), a
}

// episode is an episode at its beginning. One that is not recorded shows nothing and takes no
// action.
func (r *Recording) episode(instance, chance uint64) envs.Episode {
	p := r.played[key{instance, chance}]
	if p == nil {
		p = &played{}
	}
	return &recorded{played: p}
}

// recorded is an episode that was played elsewhere. Only the recorded actions are legal in it.
type recorded struct {
	*played
	at int // steps taken
}

// Observation implements envs.Episode.
func (r *recorded) Observation() string {
	if r.at == 0 {
		return r.first
	}
	return r.steps[r.at-1].Observation
}

// Legal implements envs.Episode.
func (r *recorded) Legal(action string) (string, bool) {
	return action, r.at < len(r.steps) && r.steps[r.at].Action == action
}

// Choices implements envs.Episode.
func (r *recorded) Choices() []string {
	if r.at == len(r.steps) {
		return nil
	}
	return []string{r.steps[r.at].Action}
}

// Step implements envs.Episode.
func (r *recorded) Step(string) envs.Outcome {
	s := r.steps[r.at]
	r.at++
	return envs.Outcome{Reward: s.Reward, Effective: s.Effective, Text: s.Text, Done: r.Done(), Success: r.Success()}
}

// Answer implements envs.Answered.
func (r *recorded) Answer() (actions []string, invalid int) {
	for _, s := range r.steps[r.at:] {
		actions = append(actions, s.Action)
	}
	return actions, r.turn.Invalid
}

// StateKey implements envs.Episode.
func (r *recorded) StateKey() string { return stateKey(r.Observation()) }

// Done implements envs.Episode.
func (r *recorded) Done() bool { return r.at == len(r.steps) && r.turn.Done }

// Success implements envs.Episode.
func (r *recorded) Success() bool { return r.at == len(r.steps) && r.turn.Success }
