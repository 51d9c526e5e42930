package spec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/methods"

	"github.com/reprise-rl/reprise/model/credit"
)

// Where the distance from the reference counts.
const (
	// KLNone: nowhere.
	KLNone = "none"
	// KLLoss: in the policy's loss.
	KLLoss = "loss"
	// KLReward: in the rewards, before credit.
	KLReward = "reward"
)

// algorithm is the entry of the table; empty for a name that it does not have.
func (c Credit) algorithm() credit.Algorithm {
	a, _ := methods.Find(c.Algorithm)
	return a
}

// Critic reports whether the algorithm needs a critic: then the run trains one.
func (c Credit) Critic() bool { return c.algorithm().Critic }

// PRM reports whether the algorithm needs a process reward model that is a policy: then the run
// trains one, in the critic's place.
func (c Credit) PRM() bool { return c.algorithm().Preferences != nil }

// Second reports whether the run trains a second network beside the policy, a critic or a process
// reward model.
func (c Credit) Second() bool { return c.Critic() || c.PRM() }

// Values is how many numbers the critic has for each token; one without a critic too.
func (c Credit) Values() int { return max(c.algorithm().Values, 1) }

// BySubgoals reports whether the algorithm reads what the policy says of its subgoals.
func (c Credit) BySubgoals() bool { return c.algorithm().BySubgoals }

// ReadsOpen reports whether the algorithm reads which episodes a limit ended and the environment did not.
func (c Credit) ReadsOpen() bool {
	reads := c.algorithm().ReadsOpen
	return reads != nil && reads(credit.Options(c))
}

// ReadsCriteria reports whether the algorithm reads criteria by turn, which only some rewards have.
func (c Credit) ReadsCriteria() bool { return c.algorithm().ReadsCriteria }

// ReadsSumSquares reports whether the algorithm reads the sum of the squared probabilities of each token's distribution, so
// that rows are scored by the programs that give it.
func (c Credit) ReadsSumSquares() bool { return c.algorithm().ReadsSumSquares }

// Promises reports whether the critic learns chances of success.
func (c Credit) Promises() bool { return c.algorithm().Promises }

// Compares reports whether the algorithm compares the members of a group.
func (c Credit) Compares() bool { return c.algorithm().Compares }

// ByRole reports whether the algorithm needs the roles of turns, which only some environments
// have.
func (c Credit) ByRole() bool { return c.algorithm().ByRole }

// ObservesStates reports whether every trajectory of a rollout, selected or not, updates
// the values of initial states.
func (c Credit) ObservesStates() bool { return c.algorithm().ObservesStates }

// Reference reports whether the update measures its distance from version 0.
func (u Update) Reference() bool { return u.KLIn == KLLoss || u.KLIn == KLReward }

// withCritic are the algorithms for which a run trains a critic.
func withCritic() []string { return algorithms(func(a credit.Algorithm) bool { return a.Critic }) }

// withProcess are the algorithms with a process reward model, in either form.
func withProcess() []string {
	return algorithms(func(a credit.Algorithm) bool { return a.Preferences != nil || a.Promises })
}

// withPRM are those for which it trains a process reward model in the critic's place.
func withPRM() []string {
	return algorithms(func(a credit.Algorithm) bool { return a.Preferences != nil })
}

// bySubgoals are those that read what the policy says of its subgoals.
func withCriteria() []string {
	return algorithms(func(a credit.Algorithm) bool { return a.ReadsCriteria })
}
func bySubgoals() []string { return algorithms(func(a credit.Algorithm) bool { return a.BySubgoals }) }

func anyAlgorithm(credit.Algorithm) bool { return true }

// algorithms are the names of the algorithms that fit, in the table's order.
func algorithms(fits func(credit.Algorithm) bool) []string {
	return namesOf(methods.Algorithms, func(a credit.Algorithm) (string, bool) { return a.Name, fits(a) })
}

// readersOf are the algorithms that read a field of the section credit, for people.
func readersOf(field string) string {
	return strings.Join(algorithms(func(a credit.Algorithm) bool { return slices.Contains(a.Fields(), field) }), ", ")
}

// waysOfCredit says how each algorithm makes advantages of rewards.
func waysOfCredit() string {
	ways := namesOf(methods.Algorithms, func(a credit.Algorithm) (string, bool) { return "by " + a.By, true })
	return strings.Join(ways[:len(ways)-1], ", ") + ", or " + ways[len(ways)-1]
}

// namesOf are the names of a table's entries that fit.
func namesOf[T any](table []T, entry func(T) (name string, fits bool)) []string {
	names := []string{} // a field whose methods are not there allows nothing, not everything
	for _, t := range table {
		if name, fits := entry(t); fits {
			names = append(names, name)
		}
	}
	return names
}

// listed is names for people: "a, b and c" with the last word "and".
func listed(names []string, last string) string {
	n := len(names) - 1
	if n < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n], ", ") + " " + last + " " + names[n]
}

// cited is a paper as a source is written: "name (number)".
func cited(paper string) string {
	name, number, found := strings.Cut(paper, ", ")
	if !found {
		return paper
	}
	return name + " (" + number + ")"
}

// papersOf are the sources of a field that single algorithms read.
func papersOf(fits func(credit.Algorithm) bool) string {
	return cmp.Or(strings.Join(namesOf(methods.Algorithms, func(a credit.Algorithm) (string, bool) { return cited(a.Paper), fits(a) }),
		"; "), fromOurs)
}

func stepWeighing(a credit.Algorithm) bool { return a.StepWeight != "" }

// symbolsOfStepWeight are what the papers call credit.step_weight.
func symbolsOfStepWeight() string {
	return strings.Join(namesOf(methods.Algorithms, func(a credit.Algorithm) (string, bool) { return a.StepWeight, stepWeighing(a) }), ", ")
}
