package mechanism

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
)

const (
	// Groups is how many groups are played.
	Groups = 1000
	// GroupsABatch and Members are the sizes of the presets.
	GroupsABatch, Members = 8, 16
	// moveTokens and mumbleTokens are the sampled tokens of an answer; the first decides it.
	moveTokens, mumbleTokens = 3, 8
	// seed is the study's.
	seed = 1
)

// Batch is a rollout as algorithms read it, with a critic that is always right.
type Batch struct {
	credit.Input
	// Outcomes are what a state says about the success so far, [rows][turns].
	Outcomes [][]int
	// Decisions are the answers, [rows][turns].
	Decisions [][]Decision
	// TrainFrom is the first turn of each row that is trained on; nil stands for all. The turns
	// before are another row's.
	TrainFrom []int
	// Copied are the turns of each row that another row has sampled; nil stands for none.
	Copied []int
}

// Decision is an answer of the policy.
type Decision struct {
	Lake, Turn, Cell, Action int
}

// Play rolls a batch out. Group g of all is played on lake g modulo their number.
func Play(lakes []*Lake, batch int) (Batch, error) {
	var b Batch
	for group := range GroupsABatch {
		of := lakeOf(lakes, batch, group)
		for member := range Members {
			e := episode{of: of, at: lakes[of].start}
			e.finish(lakes[of], rowAddress(batch, group, member).Rand())
			b.add(e, group)
		}
	}
	return b, b.complete(lakes)
}

// sampled is the number of tokens that the policy has sampled.
func (b Batch) sampled() int {
	n := 0
	for row, spans := range b.Turns {
		for k, span := range spans {
			if b.Copied == nil || k >= b.Copied[row] {
				n += span.To - span.From
			}
		}
	}
	return n
}

// lakeOf is the lake of a batch's group.
func lakeOf(lakes []*Lake, batch, group int) int { return (batch*GroupsABatch + group) % len(lakes) }

// rowAddress is where the draws of a row come from.
func rowAddress(batch, group, member int) draw.Address {
	return draw.Address{Seed: seed, Purpose: draw.Sample, Iteration: int64(batch), Group: int64(group), Member: int64(member)}
}

// complete fills in what depends on all rows.
func (b *Batch) complete(lakes []*Lake) error {
	for lake, l := range lakes {
		// What the states of many earlier iterations have returned: the truth.
		b.Past = append(b.Past, credit.StateValue{Key: strconv.Itoa(lake), Count: Groups, Value: l.values[0][l.start]})
	}
	b.PartWeights = []float64{1, 1}
	var err error
	if b.Mask, err = credit.Mask(b.Turns, b.Lengths); err != nil {
		return err
	}
	b.Tokens, err = credit.TokenRewards(b.Rewards, b.Turns, b.Lengths, credit.AtTurns)
	b.Returns = credit.Returns(b.Rewards)
	return err
}

// episode is what has been played of a trajectory.
type episode struct {
	of, at int // the lake, and the cell it is in
	done   bool

	rewards, values, entropies []float64
	old, squares               []float64 // of tokens, as values
	keys, agents               []string
	spans                      []credit.Span
	outcomes                   []int
	decisions                  []Decision
}

// over reports whether there is no further turn.
func (e *episode) over() bool { return e.done || len(e.rewards) == Turns }

// turn plays a turn. It draws first the answer, then where it leads.
func (e *episode) turn(l *Lake, r *rand.Rand) {
	k, at := len(e.rewards), e.at
	action := pick(l.policy[at][:], r.Float64())
	var probabilities []float64
	for _, o := range l.answer(at, action) {
		probabilities = append(probabilities, o.Probability)
	}
	o := l.answer(at, action)[pick(probabilities, r.Float64())]
	tokens := moveTokens
	if action == Mumble {
		tokens = mumbleTokens
	}
	// A token of the environment, which is not sampled; then the answer, of which the
	// first token decides all.
	e.values = append(e.values, 0, l.values[k][at])
	e.old, e.squares = append(e.old, 0, math.Log(l.policy[at][action])), append(e.squares, 0, l.squares(at))
	for range tokens - 1 {
		e.values = append(e.values, l.answered[k][at][action])
		e.old, e.squares = append(e.old, 0), append(e.squares, 1) // they are certain
	}
	e.spans = append(e.spans, credit.Span{From: len(e.values) - tokens, To: len(e.values)})
	e.rewards, e.entropies = append(e.rewards, o.Reward), append(e.entropies, l.entropy(at))
	e.keys, e.agents = append(e.keys, strconv.Itoa(at)), append(e.agents, "turn "+strconv.Itoa(k))
	e.outcomes = append(e.outcomes, l.outcomes[at])
	e.decisions = append(e.decisions, Decision{e.of, k, at, action})
	e.at, e.done = o.Next, o.Done
}

// finish plays to the end.
func (e *episode) finish(l *Lake, r *rand.Rand) {
	for !e.over() {
		e.turn(l, r)
	}
}

// first are the first k turns as an episode of its own, from which another can go on.
func (e *episode) first(k int) episode {
	out := episode{of: e.of, at: e.at, done: e.done}
	if k < len(e.rewards) {
		out.at, out.done = e.decisions[k].Cell, false
	}
	tokens := 0
	if k > 0 {
		tokens = e.spans[k-1].To
	}
	out.values = slices.Clone(e.values[:tokens])
	out.old, out.squares = slices.Clone(e.old[:tokens]), slices.Clone(e.squares[:tokens])
	out.rewards, out.entropies = slices.Clone(e.rewards[:k]), slices.Clone(e.entropies[:k])
	out.keys, out.agents = slices.Clone(e.keys[:k]), slices.Clone(e.agents[:k])
	out.spans, out.outcomes, out.decisions = slices.Clone(e.spans[:k]), slices.Clone(e.outcomes[:k]), slices.Clone(e.decisions[:k])
	return out
}

// add adds an episode as a row of a group. The parts of its reward are the task's and the penalties.
func (b *Batch) add(e episode, group int) {
	parts, success := []float64{0, 0}, false
	var goals []credit.Subgoal // one of the first turn, and all tokens are of actions
	for k, d := range e.decisions {
		if d.Action == Mumble {
			parts[1] += e.rewards[k]
		} else {
			parts[0] += e.rewards[k]
		}
		success = success || e.rewards[k] > 0
		goals = append(goals, credit.Subgoal{Action: e.spans[k]})
	}
	b.Groups, b.Successes, b.Parts = append(b.Groups, group), append(b.Successes, success), append(b.Parts, parts)
	b.Subgoals, b.Invalid = append(b.Subgoals, goals), append(b.Invalid, make([]bool, len(goals)))
	b.Rewards, b.Values, b.Entropies = append(b.Rewards, e.rewards), append(b.Values, e.values), append(b.Entropies, e.entropies)
	b.Old, b.SumSquares = append(b.Old, e.old), append(b.SumSquares, e.squares)
	b.Keys, b.Agents, b.Outcomes = append(b.Keys, e.keys), append(b.Agents, e.agents), append(b.Outcomes, e.outcomes)
	b.Starts = append(b.Starts, strconv.Itoa(e.of))
	b.Turns, b.Lengths = append(b.Turns, e.spans), append(b.Lengths, len(e.values))
	b.Decisions = append(b.Decisions, e.decisions)
}

// pick returns the first index whose probability and those before exceed u.
func pick(probabilities []float64, u float64) int {
	sum := 0.0
	for i, p := range probabilities {
		if sum += p; u < sum {
			return i
		}
	}
	return len(probabilities) - 1
}
