package credittest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// SomeOptions are options of which every one has an effect, and OtherOptions as many
// others.
var (
	SomeOptions = credit.Options{
		NormalizeByStd: true, Epsilon: 0.1, Floor: 2, Gamma: 0.9, Lambda: 0.8, TurnGamma: 0.95, TurnLambda: 0.7,
		ValueAt: credit.LastPromptToken, RewardAt: credit.AtTurns, Whiten: true, BaselineRate: 0.5, StepWeight: 0.6, Own: option.Values{
			"over_turns": true, "beta": 0.5, "segment_lambda": 0.9, "keep_reward": -0.3, "changed_reward": -0.2, "invalid_penalty": 0.1, "bootstrap": true,
			"entropy_gain": 0.5, "future_gain": 2.0, "clarity": 0.3, "least_holders": 2, "baseline_decay": 0.9, "tail_baseline": true,
		},
	}
	OtherOptions = credit.Options{
		NormalizeByStd: false, Epsilon: 0.2, Floor: 3, Gamma: 0.8, Lambda: 0.7, TurnGamma: 0.9, TurnLambda: 0.6,
		ValueAt: credit.FinalToken, RewardAt: credit.AtEnd, Whiten: false, BaselineRate: 1, StepWeight: 0.5, Own: option.Values{
			"trees_alone": true, "beta": 0.7, "code_form": true, "segment_lambda": 0.5, "keep_reward": -0.6, "keep_shared": true, "changed_reward": -0.5,
			"invalid_penalty": 0.4, "entropy_gain": 0.7, "future_gain": 3.0, "clarity": 0.2, "criteria_level": "turn",
			"least_holders": 4, "baseline_decay": 0.6, "task_weight": 0.4, "gate_weight": 0.5, "gate_sharpness": 2.0,
		},
	}
)

// Episodes are trajectories of random shape: prompts and turns of 1 to 4 tokens.
type Episodes struct {
	Turns   [][]credit.Span
	Lengths []int
	Rewards [][]float64 // a turn
	Values  [][]float64 // a token
	Groups  []int
	Mask    [][]bool
	Tokens  [][]float64 // the rewards at tokens
	Returns []float64
	Keys    [][]string
	Starts  []string
}

// RandomEpisodes are so many episodes.
func RandomEpisodes(t *testing.T, seed uint64, rows int) Episodes {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var e Episodes
	for row := range rows {
		at := 0
		var spans []credit.Span
		var rewards []float64
		var keys []string
		for range 1 + r.IntN(4) {
			from := at + 1 + r.IntN(4)
			at = from + 1 + r.IntN(4)
			spans = append(spans, At(from, at))
			rewards = append(rewards, r.NormFloat64())
			keys = append(keys, fmt.Sprint(r.IntN(3)))
		}
		at += r.IntN(3)
		values := make([]float64, at)
		for i := range values {
			values[i] = r.NormFloat64()
		}
		e.Turns, e.Lengths = append(e.Turns, spans), append(e.Lengths, at)
		e.Rewards, e.Values = append(e.Rewards, rewards), append(e.Values, values)
		e.Groups, e.Keys = append(e.Groups, row%3), append(e.Keys, keys)
		e.Starts = append(e.Starts, fmt.Sprint(row%3))
	}
	var err error
	e.Mask, err = credit.Mask(e.Turns, e.Lengths)
	require.NoError(t, err)
	e.Tokens, err = credit.TokenRewards(e.Rewards, e.Turns, e.Lengths, credit.AtTurns)
	require.NoError(t, err)
	e.Returns = credit.Returns(e.Rewards)
	return e
}

// Rollout is a rollout as the credit step gives it, after another of the same states.
func Rollout(t *testing.T, o credit.Options) credit.Input {
	t.Helper()
	e, before := RandomEpisodes(t, 11, 12), RandomEpisodes(t, 12, 12)
	tokens, err := credit.TokenRewards(e.Rewards, e.Turns, e.Lengths, o.RewardAt)
	require.NoError(t, err)
	past, err := credit.Observe(nil, before.Returns, before.Starts, o.BaselineRate)
	require.NoError(t, err)
	parts, entropies := make([][]float64, len(e.Returns)), make([][]float64, len(e.Returns))
	for row, r := range e.Returns {
		parts[row] = []float64{r, e.Rewards[row][0]}
		for k, s := range e.Turns[row] {
			entropies[row] = append(entropies[row], float64(s.To-s.From)/float64(k+2))
		}
	}
	trees, branches, informed := make([]int, len(e.Returns)), make([]bool, len(e.Returns)), make([]bool, len(e.Returns))
	for row := range trees {
		trees[row], branches[row], informed[row] = row/2%2, row%3 == 2, row%4 != 3
	}
	successes, actions, prm, old := make([]bool, len(e.Returns)), make([][]string, len(e.Returns)), make([][]float64,
		len(e.Returns)), make([][]float64, len(e.Returns))
	for row := range successes {
		successes[row] = row%2 == 0
		for k := range e.Turns[row] {
			actions[row] = append(actions[row], strconv.Itoa((row+k)%2))
		}
		for t := range e.Lengths[row] {
			prm[row], old[row] = append(prm[row], -float64(1+(row+t)%3)), append(old[row], -float64(1+(row*t)%4))
		}
	}
	squares := make([][]float64, len(e.Returns))
	for row := range squares {
		for t := range e.Lengths[row] {
			squares[row] = append(squares[row], float64(2+(row+2*t)%3)/5)
		}
	}
	subgoals, invalid, open := make([][]credit.Subgoal, len(e.Returns)), make([][]bool, len(e.Returns)), make([]bool, len(e.Returns))
	for row, turns := range e.Turns {
		open[row] = row%3 == 1
		for k, s := range turns {
			middle := (s.From + s.To) / 2
			subgoals[row] = append(subgoals[row], credit.Subgoal{
				Choice: credit.Span{From: s.From, To: min(s.From+1, middle)}, Goal: credit.Span{From: min(s.From+1, s.To-1), To: min(s.From+2, s.To)},
				Action: credit.Span{From: middle, To: s.To}, Switches: (row+k)%3 == 0, Text: strconv.Itoa((row + k) % 2),
			})
			invalid[row] = append(invalid[row], (row+k)%4 == 0)
		}
	}
	criteria := make([][][]bool, len(e.Returns))
	for row, turns := range e.Turns {
		for k := range turns {
			criteria[row] = append(criteria[row], []bool{(row+k)%3 == 0, (row+2*k)%2 == 1, (row*k)%4 == 1})
		}
	}
	return credit.Input{
		Criteria: criteria, CriteriaWeights: []float64{0.5, 0.3, 0.2}, CriteriaAfter: []int{-1, 0, -1},
		Subgoals: subgoals, Invalid: invalid, Open: open, Successes: successes, Actions: actions, PRM: prm, Old: old, SumSquares: squares,
		Teacher: slices.Clone(prm), Informed: informed, Trees: trees, Branches: branches, Parts: parts, PartWeights: []float64{1, 0.3},
		Entropies: entropies,
		Returns:   e.Returns, Rewards: e.Rewards, Tokens: tokens, Values: e.Values, Groups: e.Groups, Keys: e.Keys,
		Agents: slices.Clone(e.Keys), Starts: e.Starts, Turns: e.Turns, Lengths: e.Lengths, Mask: e.Mask, Past: past,
	}
}

// UniformEpisodes are those of SameBits: what is drawn needs no logarithm.
func UniformEpisodes(t *testing.T) Episodes {
	t.Helper()
	e := RandomEpisodes(t, 7, 24)
	r := rand.New(rand.NewPCG(7, 2))
	for _, of := range [][][]float64{e.Rewards, e.Values} {
		for row := range of {
			for at := range of[row] {
				of[row][at] = 2*r.Float64() - 1
			}
		}
	}
	var err error
	e.Tokens, err = credit.TokenRewards(e.Rewards, e.Turns, e.Lengths, credit.AtTurns)
	require.NoError(t, err)
	e.Returns = credit.Returns(e.Rewards)
	return e
}
