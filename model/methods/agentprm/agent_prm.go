package agentprm

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

var codeForm = credit.CodeForm("In agent_prm: outcomes of −1 and 1, discounted from the start.")

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "agent_prm", By: "what a process reward model promises of each turn, among the group's promises of that turn (AgentPRM)",
	Formula: "A_k = z(Q_φ(s_k, a_k) among those of G at turn k), z = (Q − mean) / (std + ε); φ learns mean γ^(K−1−k)·success over the " +
		"visits of (s, a)",
	Paper: "AgentPRM, arXiv 2502.10325", File: "agentprm/agent_prm.go",
	Compares: true, Critic: true, Promises: true, Reads: []string{"normalize_by_std", "epsilon", "floor", "gamma"}, Own: []option.Option{codeForm},
	Learns: func(in credit.Input, _ credit.Options) [][]bool {
		learns := make([][]bool, len(in.Turns))
		for row, spans := range in.Turns {
			learns[row] = make([]bool, in.Lengths[row])
			for _, s := range spans {
				learns[row][s.To-1] = true
			}
		}
		return learns
	},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		turns, returns, err := AgentPRM(in, o)
		if err != nil {
			return nil, nil, err
		}
		advantages, _, err := in.ByTurn(turns, nil)
		return advantages, returns, err
	},
}

// AgentPRM gives each turn the advantage of what a process reward model promises (AgentPRM, arXiv
// 2502.10325, stages 2 and 3):
//
//	A_k = z(Q_φ(s_k, a_k) among the group's rows at turn k),  Q_φ = σ(f)
//
// with z of GRPO. f is the critic's value at the turn's last sampled token, which has seen all of the
// turn but that token. A turn that no other row of the group has, has 0. advantages: [rows][turns]. targets,
// [rows][tokens], are at those tokens what the model learns: Promises of the state and action of
// the turn, or PromisesCode with CodeForm. A state is told by all states and actions before it.
//
// It reads Successes, Keys, Actions, Turns, Values and Groups. Difference from the paper: there the
// policy learns by DPO from pairs of answers at a state, the one that the model prefers against the
// other, whatever the size of the difference. Here it learns by the policy gradient of the same Q_φ,
// for which the paper's objective is written, max E[Q_φ(s, a)] − β·KL(π ‖ π of the stage before),
// and the division by the deviation makes the size as unimportant. The paper's pairs are answers to one state;
// here the turns k of a group's rows are compared, whose states may differ, because a rollout has one answer
// to a state. A search would have several, and is excluded: a turn that rows share would be compared with itself.
//
// Errors are of kind ErrNotFinite (a value), ErrRewards or ErrInput.
func AgentPRM(in credit.Input, o credit.Options) (advantages, targets [][]float64, err error) {
	if len(in.Values) != len(in.Turns) || len(in.Keys) != len(in.Turns) || len(in.Actions) != len(in.Turns) ||
		len(in.Successes) != len(in.Turns) || len(in.Groups) != len(in.Turns) {
		return nil, nil, fmt.Errorf("%w: turns of %d rows, values of %d, states of %d, actions of %d, successes of %d, groups of %d",
			credit.ErrInput, len(in.Turns), len(in.Values), len(in.Keys), len(in.Actions), len(in.Successes), len(in.Groups))
	}
	visited, outcomes := make([][]string, len(in.Turns)), make([]float64, len(in.Turns))
	for row, spans := range in.Turns {
		if len(in.Keys[row]) != len(spans) || len(in.Actions[row]) != len(spans) {
			return nil, nil, fmt.Errorf("%w: row %d has %d turns, states of %d and actions of %d", credit.ErrInput, row, len(spans), len(in.Keys[row]), len(in.Actions[row]))
		}
		before := ""
		for k := range spans {
			before += fmt.Sprintf("%q %q ", in.Keys[row][k], in.Actions[row][k])
			visited[row] = append(visited[row], before)
		}
		if in.Successes[row] {
			outcomes[row] = 1
		}
	}
	estimate := Promises
	if codeForm.On(o.Own) {
		estimate = PromisesCode
	}
	promised, err := estimate(visited, outcomes, o.Gamma)
	if err != nil {
		return nil, nil, err
	}
	of := map[string]float64{}
	for _, p := range promised {
		of[p.Key] = p.Value
	}
	expected := make([][]float64, len(in.Turns)) // Q_φ
	for row, spans := range in.Turns {
		learns := make([]float64, in.Lengths[row])
		for k, s := range spans {
			f := in.Values[row][s.To-1]
			if !credit.Finite(f) {
				return nil, nil, fmt.Errorf("%w: the value of row %d, turn %d is %v", credit.ErrNotFinite, row, k, f)
			}
			learns[s.To-1] = of[visited[row][k]]
			expected[row] = append(expected[row], credit.Chance(f))
		}
		targets, advantages = append(targets, learns), append(advantages, make([]float64, len(spans)))
	}
	for _, rows := range credit.RowsOf(in.Groups) {
		for k := 0; ; k++ {
			var at []int
			var q []float64
			for _, row := range rows {
				if k < len(expected[row]) {
					at, q = append(at, row), append(q, expected[row][k])
				}
			}
			if len(at) == 0 {
				break
			}
			o.Scale(q)
			for i, row := range at {
				advantages[row][k] = q[i]
			}
		}
	}
	return advantages, targets, nil
}

// Promise is what trajectories through an action at a state have achieved.
type Promise struct {
	// Key names the state and the action.
	Key string
	// Visits is how often the action was taken there. A trajectory counts each time.
	Visits int
	// Value is the mean of what followed, from 0 to 1.
	Value float64
}

// Promises estimates how likely each action at each state leads to success, by Monte Carlo
// (AgentPRM, arXiv 2502.10325):
//
//	Q(s, a) = mean over the visits of γ^{K−1−k}·R
//
// where k is the turn of the visit and K the trajectory's number of turns, so that a success
// counts less the more turns it is away. keys: [rows][turns], the state and the action of
// each turn: the task, the history and the action without the reasoning. outcomes: [rows], R
// from 0 to 1. Authors: γ 0.95. The results are in the order of the first visits. They are the
// targets of a process reward model (terms.Promise).
//
// Errors are of kind ErrRewards or ErrInput.
func Promises(keys [][]string, outcomes []float64, gamma float64) ([]Promise, error) {
	return promises(keys, outcomes, gamma, func(outcome float64, k, turns int) float64 {
		return float64(credit.Power(gamma, turns-1-k) * outcome)
	})
}

// PromisesCode is Promises as the authors' code has it (sanjibanc/agent_prm,
// compute_prm_target.py):
//
//	Q(s, a) = (1 + mean over the visits of γ^k·(2R − 1)) / 2
//
// It discounts from the start, so that the first turns count in full and the last ones least, and
// moves late failures up towards ½. Arguments, results and errors are Promises'.
func PromisesCode(keys [][]string, outcomes []float64, gamma float64) ([]Promise, error) {
	out, err := promises(keys, outcomes, gamma, func(outcome float64, k, _ int) float64 {
		return float64(credit.Power(gamma, k) * (float64(2*outcome) - 1))
	})
	for i := range out {
		out[i].Value = (1 + out[i].Value) / 2
	}
	return out, err
}

// promises is the mean of a number of each visit, by key.
func promises(keys [][]string, outcomes []float64, gamma float64, of func(outcome float64, k, turns int) float64) ([]Promise, error) {
	if err := credit.CheckUnit("Gamma", gamma); err != nil {
		return nil, err
	}
	if err := credit.Check(outcomes, "rows of keys", len(keys)); err != nil {
		return nil, err
	}
	at := map[string]int{}
	var out []Promise
	for row, turns := range keys {
		if outcomes[row] < 0 || outcomes[row] > 1 {
			return nil, fmt.Errorf("%w: the outcome of row %d is %v, must be from 0 to 1", credit.ErrRewards, row, outcomes[row])
		}
		for k, key := range turns {
			i, seen := at[key]
			if !seen {
				i = len(out)
				at[key] = i
				out = append(out, Promise{Key: key})
			}
			out[i].Visits++
			out[i].Value += of(outcomes[row], k, len(turns))
		}
	}
	for i := range out {
		out[i].Value /= float64(out[i].Visits)
	}
	return out, nil
}
