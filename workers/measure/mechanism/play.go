package mechanism

import (
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
	// Entropies are the policy's at each turn, [rows][turns].
	Entropies [][]float64
	// Components are each row's return and its penalties, [rows][2].
	Components [][]float64
	// Outcomes are what Blockwise reads, [rows][turns].
	Outcomes [][]int
	// Decisions are the answers, [rows][turns].
	Decisions [][]Decision
}

// Decision is an answer of the policy.
type Decision struct {
	Lake, Turn, Cell, Action int
}

// Play rolls a batch out. Group g of all is played on lake g modulo their number.
func Play(lakes []*Lake, batch int) (Batch, error) {
	var b Batch
	for group := range GroupsABatch {
		of := (batch*GroupsABatch + group) % len(lakes)
		for member := range Members {
			b.play(lakes, of, draw.Address{Seed: seed, Purpose: draw.Sample, Iteration: int64(batch), Group: int64(group), Member: int64(member)})
			b.Groups = append(b.Groups, group)
		}
	}
	for lake, l := range lakes {
		// What the states of many earlier iterations have returned: the truth.
		b.Past = append(b.Past, credit.StateValue{Key: strconv.Itoa(lake), Count: Groups, Value: l.values[0][l.start]})
	}
	var err error
	if b.Mask, err = credit.Mask(b.Turns, b.Lengths); err != nil {
		return b, err
	}
	b.Tokens, err = credit.TokenRewards(b.Rewards, b.Turns, b.Lengths, credit.AtTurns)
	b.Returns = credit.Returns(b.Rewards)
	return b, err
}

// play adds an episode. Its draws are the address's: of each turn first the answer, then
// where it leads.
func (b *Batch) play(lakes []*Lake, of int, address draw.Address) {
	l, r := lakes[of], address.Rand()
	row := struct {
		rewards, values, entropies []float64
		keys, agents               []string
		spans                      []credit.Span
		outcomes                   []int
		decisions                  []Decision
	}{}
	components := []float64{0, 0}
	at := l.start
	for k, done := 0, false; k < Turns && !done; k++ {
		action := pick(l.policy[at][:], r.Float64())
		var probabilities []float64
		for _, o := range l.answer(at, action) {
			probabilities = append(probabilities, o.Probability)
		}
		o := l.answer(at, action)[pick(probabilities, r.Float64())]
		tokens := moveTokens
		if action == Mumble {
			tokens = mumbleTokens
			components[1] += o.Reward
		} else {
			components[0] += o.Reward
		}
		// A token of the environment, which is not sampled; then the answer, of which the
		// first token decides all.
		row.values = append(row.values, 0, l.values[k][at])
		for range tokens - 1 {
			row.values = append(row.values, l.answered[k][at][action])
		}
		row.spans = append(row.spans, credit.Span{From: len(row.values) - tokens, To: len(row.values)})
		row.rewards, row.entropies = append(row.rewards, o.Reward), append(row.entropies, l.entropy(at))
		row.keys, row.agents = append(row.keys, strconv.Itoa(at)), append(row.agents, "turn "+strconv.Itoa(k))
		row.outcomes = append(row.outcomes, l.outcomes[at])
		row.decisions = append(row.decisions, Decision{of, k, at, action})
		at, done = o.Next, o.Done
	}
	b.Rewards, b.Values, b.Entropies = append(b.Rewards, row.rewards), append(b.Values, row.values), append(b.Entropies, row.entropies)
	b.Keys, b.Agents, b.Outcomes = append(b.Keys, row.keys), append(b.Agents, row.agents), append(b.Outcomes, row.outcomes)
	b.Starts, b.Components = append(b.Starts, strconv.Itoa(of)), append(b.Components, components)
	b.Turns, b.Lengths = append(b.Turns, row.spans), append(b.Lengths, len(row.values))
	b.Decisions = append(b.Decisions, row.decisions)
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
