package spec

import (
	"cmp"
	"fmt"
)

// Supervised are rows of an update that are learned from by their log-likelihood, beside the
// rows of the policy gradient or instead of them. The zero value is none.
type Supervised struct {
	// From is "demonstrations", "own_successes", "observations" or empty.
	From string `json:"from,omitempty"`
	// Share and Coefficient are 0 where they are left out; see Fraction and Weight.
	Share       float64 `json:"share,omitempty"`
	Coefficient float64 `json:"coefficient,omitempty"`
}

// Values of Supervised.From.
const (
	// Demonstrations are episodes of the environments' solvers, in fresh instances.
	Demonstrations = "demonstrations"
	// OwnSuccesses are the successful episodes of the iteration's rollout, and with a replay
	// buffer those that recent iterations have learned from.
	OwnSuccesses = "own_successes"
	// Observations are what environments answered in the rows that the update learns from: ECHO's tokens.
	Observations = "observations"
)

// Defaults of the fields of Supervised.
const (
	defaultSupervisedShare       = 0.25
	defaultSupervisedCoefficient = 1.0
	// defaultObservedCoefficient is that of Observations: ECHO's λ.
	defaultObservedCoefficient = 0.1
)

// shareOfObservations is that of Observations: a row beside each row.
const shareOfObservations = 0.5

// mostSupervised is the largest share beside other rows: nine times as many as these.
const mostSupervised = 0.9

// On reports whether an update has supervised rows.
func (s Supervised) On() bool { return s.From != "" }

// Fraction is the share of an update's rows that are supervised; 0 without them.
func (s Supervised) Fraction() float64 {
	if !s.On() {
		return 0
	}
	if s.From == Observations {
		return shareOfObservations
	}
	return cmp.Or(s.Share, defaultSupervisedShare)
}

// Alone reports whether all rows of an update are supervised.
func (s Supervised) Alone() bool { return s.Fraction() == 1 }

// Weight multiplies the mean negative log-likelihood of a minibatch's supervised tokens.
func (s Supervised) Weight() float64 {
	if s.From == Observations {
		return cmp.Or(s.Coefficient, defaultObservedCoefficient)
	}
	return cmp.Or(s.Coefficient, defaultSupervisedCoefficient)
}

// Rows is how many supervised rows an update has beside so many others. If it has supervised
// rows alone, they are as many as the others would be.
func (s Supervised) Rows(others int) int {
	if !s.On() {
		return 0
	}
	if s.Alone() {
		return others
	}
	f := s.Fraction()
	return int(float64(f/(1-f)*float64(others)) + 1e-9) // as Freshness.Replayed
}

// supervisedRelations are the rules between update.supervised and other fields.
var supervisedRelations = []relation{
	{
		paths: []string{"update.supervised.from", "update.supervised.share", "update.supervised.coefficient"},
		doc:   "update.supervised.share and coefficient are given only with update.supervised.from.",
		knobs: true,
		broken: func(t Train) (bool, string, string) {
			s := t.Update.Supervised
			return !s.On() && s != Supervised{}, nothing, fmt.Sprintf("%q, %q or %q; or leave update.supervised out", Demonstrations, OwnSuccesses, Observations)
		},
	},
	{
		paths: []string{"update.supervised.share", "update.supervised.from"},
		doc:   "update.supervised.share is not given if from is observations: each row that is learned from has one of its own.",
		knobs: true,
		broken: func(t Train) (bool, string, string) {
			s := t.Update.Supervised
			return s.From == Observations && s.Share != 0, formatNumber(s.Share), "nothing: leave it out"
		},
	},
	{
		paths: []string{"update.supervised.from", "rollout.turns", "rollout.context_turns"},
		doc: "If update.supervised.from is observations, rollout.turns is at least 2 and rollout.context_turns is not 1: an observation is " +
			"predicted from the turns before it.",
		broken: func(t Train) (bool, string, string) {
			return t.Update.Supervised.From == Observations && (t.Rollout.Turns < 2 || t.Rollout.ContextTurns == 1),
				fmt.Sprintf("%q with rollout.turns %d and rollout.context_turns %d", Observations, t.Rollout.Turns, t.Rollout.ContextTurns),
				"at least 2 turns, each of which is seen with the one before"
		},
	},
	{
		paths: []string{"update.supervised.share"},
		doc:   fmt.Sprintf("update.supervised.share is at most %s, or 1.", formatNumber(mostSupervised)),
		knobs: true,
		broken: func(t Train) (bool, string, string) {
			f := t.Update.Supervised.Fraction()
			return f > mostSupervised && f < 1, formatNumber(f), fmt.Sprintf("at most %s, or 1 for supervised rows alone", formatNumber(mostSupervised))
		},
	},
	{
		paths: []string{"update.supervised.share", "credit.algorithm", "update.minibatch"},
		doc:   "update.supervised.share is less than 1 and update.minibatch is 0 if credit.algorithm needs a critic: it learns from the other rows of each step.",
		knobs: true,
		broken: func(t Train) (bool, string, string) {
			s := t.Update.Supervised
			return s.On() && t.Credit.Second() && (s.Alone() || t.Update.Minibatch > 0),
				fmt.Sprintf("%s with update.minibatch %d and credit.algorithm %s", formatNumber(s.Fraction()), t.Update.Minibatch, t.Credit.Algorithm),
				"less than 1, with update.minibatch 0; or an algorithm without a critic"
		},
	},
	{
		paths: []string{"update.kl_first_turn", "update.kl_in"},
		doc:   "update.kl_first_turn is given only if update.kl_in is loss.",
		broken: func(t Train) (bool, string, string) {
			return t.Update.KLFirstTurn != 0 && t.Update.KLIn != KLLoss, formatNumber(t.Update.KLFirstTurn), "nothing, unless update.kl_in is loss"
		},
	},
	{
		paths: []string{"rollout.turn_limit", "rollout.turns"},
		doc:   "rollout.turn_limit is at most rollout.turns.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.TurnLimit > t.Rollout.Turns, fmt.Sprint(t.Rollout.TurnLimit), fmt.Sprintf("at most %d (rollout.turns)", t.Rollout.Turns)
		},
	},
}
