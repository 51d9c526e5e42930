package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/selection"
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
	turns    [][]credit.Span
	lengths  []int
	groups   []int
	rewards  [][]float64 // a turn
	returns  []float64
	keys     [][]string // of the states that turns begin in
	starts   []string
	values   [][]float64 // a token
	logProbs [][]float64
	past     []credit.StateValue
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
		r.turns, r.keys, r.starts = append(r.turns, spans), append(r.keys, keys), append(r.starts, keys[0])
		r.lengths, r.groups = append(r.lengths, length), append(r.groups, row/creditMembers)
		r.rewards = append(r.rewards, normal(numbers, creditTurns))
		r.values, r.logProbs = append(r.values, normal(numbers, length)), append(r.logProbs, normal(numbers, length))
	}
	r.returns = credit.Returns(r.rewards)
	for row, group := range r.groups {
		r.members.Rewards[group] = append(r.members.Rewards[group], r.returns[row])
	}
	for state := range creditStates {
		r.past = append(r.past, credit.StateValue{Key: fmt.Sprint("state ", state), Count: 1, Value: numbers.NormFloat64()})
	}
	slices.SortFunc(r.past, func(a, b credit.StateValue) int { return cmp.Compare(a.Key, b.Key) })
	return r
}

func normal(r *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	return xs
}

// tokens are the mask and the rewards at tokens.
func (r *rollout) tokens() (mask [][]bool, rewards [][]float64, err error) {
	if mask, err = credit.Mask(r.turns, r.lengths); err != nil {
		return nil, nil, err
	}
	rewards, err = credit.TokenRewards(r.rewards, r.turns, r.lengths, credit.AtTurns)
	return mask, rewards, err
}

// credits are the algorithms by their names in a spec.
func (r *rollout) credits() []workload {
	byRow := func(compute func() ([]float64, error)) func(context.Context) error {
		return func(context.Context) error {
			rows, err := compute()
			if err != nil {
				return err
			}
			mask, err := credit.Mask(r.turns, r.lengths)
			if err != nil {
				return err
			}
			_, err = credit.OverRows(rows, mask)
			return err
		}
	}
	byToken := func(compute func(rewards [][]float64, mask [][]bool) error) func(context.Context) error {
		return func(context.Context) error {
			mask, rewards, err := r.tokens()
			if err != nil {
				return err
			}
			return compute(rewards, mask)
		}
	}
	gae := func(rewards [][]float64, mask [][]bool) error {
		_, _, err := credit.GAE(rewards, r.values, mask, credit.GAEOptions{Gamma: 1, Lambda: 1, Whiten: true})
		return err
	}
	return []workload{
		{"grpo", -1, byRow(func() ([]float64, error) {
			return credit.GRPO(r.returns, r.groups, credit.GRPOOptions{NormalizeByStd: true, Epsilon: 1e-6})
		})},
		{"dr_grpo", -1, byRow(func() ([]float64, error) { return credit.DrGRPO(r.returns, r.groups) })},
		{"leave_one_out", -1, byRow(func() ([]float64, error) { return credit.LeaveOneOut(r.returns, r.groups) })},
		{"state_baseline", -1, byRow(func() ([]float64, error) { return credit.StateBaseline(r.past, r.returns, r.starts) })},
		{"reinforce_pp", -1, byToken(func(rewards [][]float64, mask [][]bool) error {
			_, err := credit.ReinforcePlusPlus(rewards, mask, 1)
			return err
		})},
		{"reinforce_pp_baseline", -1, func(context.Context) error {
			mask, err := credit.Mask(r.turns, r.lengths)
			if err == nil {
				_, err = credit.ReinforcePlusPlusBaseline(r.returns, r.groups, mask)
			}
			return err
		}},
		{"gigpo", -1, func(context.Context) error {
			turns, err := credit.GiGPO(r.rewards, r.groups, r.keys, credit.GiGPOOptions{Gamma: 0.95, StepWeight: 1})
			if err == nil {
				_, err = credit.OverTurns(turns, r.turns, r.lengths)
			}
			return err
		}},
		{"gae", -1, byToken(gae)},
		{"turn_gae", -1, func(context.Context) error {
			_, _, err := credit.TurnGAE(r.rewards, r.values, r.turns, credit.TurnGAEOptions{
				Gamma: 1, Lambda: 1, TurnGamma: 0.95, TurnLambda: 1, Whiten: true,
			})
			return err
		}},
		{"gae, KL in the reward", -1, byToken(func(rewards [][]float64, mask [][]bool) error {
			penalised, _, err := credit.KLInReward(rewards, r.logProbs, r.values, mask, 0.001, loss.K1)
			if err != nil {
				return err
			}
			return gae(penalised, mask)
		})},
	}
}

// selections are the methods by their names in a spec.
func (r *rollout) selections() []workload {
	var all []workload
	for _, o := range []selection.Options{
		{Method: selection.MethodAll},
		{Method: selection.MethodTopFraction, Value: 0.25},
		{Method: selection.MethodTopCount, Value: 2},
		{Method: selection.MethodTopP, Value: 0.9, Slack: 0.01, DropFlat: true},
		{Method: selection.MethodTopPSoftmax, Value: 0.9},
		{Method: selection.MethodMinP, Value: 0.9},
	} {
		all = append(all, workload{string(o.Method), -1, func(context.Context) error {
			_, err := selection.Select(r.members, o)
			return err
		}})
	}
	return all
}
