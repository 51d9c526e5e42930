package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/model/methods"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/selection"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The rollout that credit and selection are measured on: RAGEN's 8 prompts of 16
// members, with 9 turns of 100 prompt and 300 sampled tokens each.
const (
	creditGroups, creditMembers = 8, 16
	creditTurns                 = 9
	creditPrompt, creditSampled = 100, 300
	creditStates                = 50 // different states that turns begin in
)

// HostGoal is the maximum time of credit and selection of a rollout together.
const HostGoal = 20 * time.Millisecond

// HostAlgorithms is the cost of an iteration's host algorithms on one core.
type HostAlgorithms struct {
	Rows   int `json:"rows"`
	Tokens int `json:"tokens_a_row"`
	// Credit leads from the turns' rewards to the advantages of tokens, Selection
	// from the members' rewards to the groups that are kept.
	Credit    []Cost `json:"credit"`
	Selection []Cost `json:"selection"`
	// Slowest is the sum of the slowest of each.
	Slowest Cost `json:"slowest"`
}

// MeasureHostAlgorithms measures each algorithm on one core (GOMAXPROCS is 1 meanwhile),
// repeats times in turns, each time for at least the given time.
func MeasureHostAlgorithms(ctx context.Context, repeats int, least time.Duration) (HostAlgorithms, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := newRollout()
	out := HostAlgorithms{Rows: creditGroups * creditMembers, Tokens: creditTurns * (creditPrompt + creditSampled)}
	credits, selections := r.credits(), r.selections()
	all, err := measure(ctx, slices.Concat(credits, selections), repeats, least)
	if err != nil {
		return out, err
	}
	out.Credit, out.Selection = all[:len(credits)], all[len(credits):]
	a, b := slowest(out.Credit), slowest(out.Selection)
	out.Slowest = Cost{Name: a.Name + " and " + b.Name, Seconds: a.Seconds + b.Seconds, Processor: a.Processor + b.Processor}
	return out, nil
}

// slowest is the cost with the most processor time.
func slowest(costs []Cost) Cost {
	return slices.MaxFunc(costs, func(a, b Cost) int { return cmp.Compare(a.Processor, b.Processor) })
}

// rollout is a set of random trajectories.
type rollout struct {
	credit.Input
	logProbs [][]float64
	three    [][]float64 // values of a critic that has three for each token
	members  selection.Groups
}

func newRollout() *rollout {
	r := &rollout{members: selection.Groups{Rewards: make([][]float64, creditGroups)}}
	numbers := draw.Address{Seed: 1, Purpose: draw.Sample}.Rand()
	for row := range creditGroups * creditMembers {
		var spans []credit.Span
		var keys []string
		for turn := range creditTurns {
			from := turn*(creditPrompt+creditSampled) + creditPrompt
			spans = append(spans, credit.Span{From: from, To: from + creditSampled})
			keys = append(keys, fmt.Sprint("state ", numbers.IntN(creditStates)))
		}
		length := creditTurns * (creditPrompt + creditSampled)
		r.Turns, r.Keys, r.Starts = append(r.Turns, spans), append(r.Keys, keys), append(r.Starts, keys[0])
		r.Lengths, r.Groups = append(r.Lengths, length), append(r.Groups, row/creditMembers)
		r.Rewards = append(r.Rewards, normal(numbers, creditTurns))
		r.Values, r.logProbs = append(r.Values, normal(numbers, length)), append(r.logProbs, normal(numbers, length))
	}
	r.addRead()
	r.Returns = credit.Returns(r.Rewards)
	for row, group := range r.Groups {
		r.members.Rewards[group] = append(r.members.Rewards[group], r.Returns[row])
	}
	for state := range creditStates {
		r.Past = append(r.Past, credit.StateValue{Key: fmt.Sprint("state ", state), Count: 1, Value: numbers.NormFloat64()})
	}
	slices.SortFunc(r.Past, func(a, b credit.StateValue) int { return cmp.Compare(a.Key, b.Key) })
	return r
}

// addRead adds what only some algorithms read: two parts of the reward, the entropies of turns,
// two roles that take turns, trees of three whose second and third row are branches, and successes,
// actions, the log-probs of a process reward model and of a teacher, subgoals and criteria.
func (r *rollout) addRead() {
	numbers := draw.Address{Seed: 2, Purpose: draw.Sample}.Rand()
	r.PartWeights = []float64{1, 0.5}
	r.CriteriaWeights, r.CriteriaAfter = []float64{0.5, 0.3, 0.2}, []int{-1, 0, -1}
	r.Old = r.logProbs
	for row, length := range r.Lengths {
		r.three = append(r.three, normal(numbers, 3*length))
		r.SumSquares = append(r.SumSquares, normal(numbers, length))
		r.PRM, r.Successes = append(r.PRM, normal(numbers, length)), append(r.Successes, row%2 == 0)
		r.Actions = append(r.Actions, r.Keys[(row+1)%len(r.Keys)])
		r.Teacher, r.Informed = append(r.Teacher, r.PRM[row]), append(r.Informed, row%4 > 0)
		var goals []credit.Subgoal
		for k, s := range r.Turns[row] {
			goals = append(goals, credit.Subgoal{
				Choice: credit.Span{From: s.From, To: s.From + 3}, Goal: credit.Span{From: s.From + 3, To: s.From + 9},
				Action: credit.Span{From: s.From + 9, To: s.To}, Switches: (row+k)%2 == 0,
			})
		}
		r.Subgoals, r.Invalid = append(r.Subgoals, goals), append(r.Invalid, make([]bool, len(goals)))
	}
	for row := range r.Rewards {
		r.Trees, r.Branches = append(r.Trees, row/3), append(r.Branches, row%3 > 0)
		held := make([][]bool, creditTurns)
		for k := range held {
			held[k] = []bool{(row+k)%3 == 0, (row+k)%2 == 0, k > 0}
		}
		r.Criteria = append(r.Criteria, held)
		r.Parts = append(r.Parts, normal(numbers, len(r.PartWeights)))
		var entropies []float64
		var agents []string
		for turn := range creditTurns {
			entropies, agents = append(entropies, numbers.Float64()), append(agents, []string{"reader", "walker"}[turn%2])
		}
		r.Entropies, r.Agents = append(r.Entropies, entropies), append(r.Agents, agents)
	}
}

func normal(r *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	return xs
}

// credits are the algorithms by their names in a spec, with its default options. As in the
// credit step, the mask and the rewards at tokens are part of the work.
func (r *rollout) credits() []workload {
	options := credit.Options(spec.Default(spec.FromStarter).Credit)
	work := func(name string, a credit.Algorithm, penalise bool) workload {
		return workload{name, -1, func(context.Context) (err error) {
			in := r.Input
			if a.Values == 3 {
				in.Values = r.three
			}
			if in.Mask, err = credit.Mask(in.Turns, in.Lengths); err != nil {
				return err
			}
			if in.Tokens, err = credit.TokenRewards(in.Rewards, in.Turns, in.Lengths, options.RewardAt); err != nil {
				return err
			}
			if penalise {
				if in.Tokens, _, err = credit.KLInReward(in.Tokens, r.logProbs, in.Values, in.Mask, 0.001, loss.K1); err != nil {
					return err
				}
			}
			_, _, err = a.Compute(in, options)
			return err
		}}
	}
	var all []workload
	for _, a := range methods.Algorithms {
		all = append(all, work(a.Name, a, false))
		if a.Critic && slices.Contains(a.Reads, "reward_at") {
			all = append(all, work(a.Name+", KL in the reward", a, true))
		}
	}
	return all
}

// selections are the methods by their names in a spec, with its default options.
func (r *rollout) selections() []workload {
	var all []workload
	for _, m := range selection.Methods {
		s := spec.Default(spec.FromStarter).Selection
		s.Method = m.Name
		o := selection.Options{Method: s.Method, Value: s.Value(), Slack: s.Slack}
		all = append(all, workload{m.Name, -1, func(context.Context) error {
			_, err := selection.Select(r.members, o)
			return err
		}})
	}
	return all
}
