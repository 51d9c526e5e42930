package device

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// walk is an environment of several turns for the tests: a way from 0 to 2, an
// action a turn. It has no chance in it. Two roles walk: one from 0, the other from 1.
type walk struct{}

const walkName = "test-walk"

func init() {
	envs.Register(walkName, "", func(*envs.Options) envs.Environment { return walk{} })
}

func (walk) Name() string                            { return walkName }
func (walk) Instructions() string                    { return "Walk right." }
func (walk) Actions() []string                       { return []string{"Left", "Right"} }
func (walk) MaxActions() int                         { return 3 }
func (walk) MaxActionsPerTurn() int                  { return 1 }
func (walk) Reset(_, _ draw.Address) envs.Episode    { return &walker{} }
func (walk) Certain() bool                           { return true }
func (walk) Cases() []envs.Episode                   { return []envs.Episode{&walker{}} }
func (w *walker) Observation() string                { return fmt.Sprintf("at %d", w.at) }
func (w *walker) Legal(action string) (string, bool) { return envs.Lookup(w.Choices(), action) }
func (w *walker) Choices() []string                  { return walk{}.Actions() }
func (w *walker) StateKey() string                   { return w.Observation() }
func (w *walker) Done() bool                         { return w.at == 2 }
func (w *walker) Success() bool                      { return w.at == 2 }

func (walk) Roles() []string { return []string{"first", "second"} }
func (walk) Role(state string) string {
	if state == "at 0" {
		return "first"
	}
	return "second"
}

type walker struct{ at int }

func (w *walker) Step(action string) envs.Outcome {
	if action == "Right" {
		w.at++
	} else {
		w.at = max(0, w.at-1)
	}
	return envs.Outcome{Reward: float64(w.at), Done: w.Done(), Effective: true, Success: w.Success()}
}

// luck is a walk whose success is drawn when it begins, so that groups have successes and failures
// whatever a policy writes.
type luck struct{ walk }

const luckName = "test-luck"

func init() {
	envs.Register(luckName, "", func(*envs.Options) envs.Environment { return luck{} })
}

func (luck) Name() string  { return luckName }
func (luck) Certain() bool { return false }

func (luck) Reset(_, chance draw.Address) envs.Episode {
	return &lucky{won: chance.Rand().IntN(2) == 0}
}

type lucky struct {
	walker
	won bool
}

func (l *lucky) Success() bool { return l.won }
