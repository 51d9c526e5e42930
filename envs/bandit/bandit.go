// Package bandit is RAGEN's two-armed bandit: a low arm that always pays the
// same, and a high arm that pays more on average but mostly nothing
// (arXiv 2504.20073, appendix). One turn, one action.
//
// The policy must learn to prefer the mean over certainty and, across names, to reason
// about what the names stand for. Success means that the high arm was chosen, not that it
// paid; if the high arm has a smaller mean than the low one (high_probability 0.10), the
// right choice is the low arm and success should fall. So look at the mean reward too.
package bandit

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "bandit"

func init() { envs.Register(Name, summary, New) }

// Bandit is the environment with its options resolved.
type Bandit struct {
	options Options
	pairs   []pair
	// pool is the instances there are, or nil if options.Instances sets no limit.
	pool []listing
}

// listing is an instance, what the members of a group share: a pair of names and
// the order in which its arms are listed.
type listing struct {
	pair
	highFirst bool
}

// pair names the two arms.
type pair struct{ low, high string }

// Name implements envs.Environment.
func (b *Bandit) Name() string { return Name }

// Instructions implements envs.Environment.
func (b *Bandit) Instructions() string {
	return "One of two arms pays more points on average. Think about what the names stand for, and choose that arm."
}

// Actions implements envs.Environment: nil, since the observation names the
// arms in the instance's order; a fixed list would give away which is which.
func (b *Bandit) Actions() []string { return nil }

// MaxActions implements envs.Environment.
func (b *Bandit) MaxActions() int { return 1 }

// MaxActionsPerTurn implements envs.Environment.
func (b *Bandit) MaxActionsPerTurn() int { return 1 }

// Reset implements envs.Environment. The instance draws the pair of names and the order
// in which they are listed; the chance draws the payout. It is the group's chance and not
// the member's if shared_chance selects RAGEN's behaviour.
func (b *Bandit) Reset(address, chance draw.Address) envs.Episode {
	if b.options.SharedChance {
		chance.Member = 0
	}
	return &episode{bandit: b, listing: b.draw(address), chance: chance}
}

func (b *Bandit) draw(address draw.Address) listing {
	if b.pool != nil {
		return b.pool[board.Instance(address, len(b.pool), b.options.Pool).Group]
	}
	r := board.Instance(address, 0, 0).Rand()
	p := b.pairs[r.IntN(len(b.pairs))]
	return listing{pair: p, highFirst: r.IntN(2) == 1}
}

// listings are all there can be: every pair in both orders.
func (b *Bandit) listings() []listing {
	var all []listing
	for _, p := range b.pairs {
		all = append(all, listing{pair: p}, listing{pair: p, highFirst: true})
	}
	return all
}

// Cases implements envs.Environment: every pair in both orders, even if a pool has fewer,
// since a balanced set has each order as often as the other.
func (b *Bandit) Cases() []envs.Episode {
	all := b.listings()
	cases := make([]envs.Episode, len(all))
	for i, l := range all {
		cases[i] = &episode{bandit: b, listing: l}
	}
	return cases
}

// episode is the state of a member's episode.
type episode struct {
	bandit *Bandit
	listing
	chance draw.Address
	chosen string
}

// Choices implements envs.Episode: the arms in the listed order.
func (e *episode) Choices() []string {
	if e.highFirst {
		return []string{e.high, e.low}
	}
	return []string{e.low, e.high}
}

// Observation implements envs.Episode.
func (e *episode) Observation() string { return "Arms: " + strings.Join(e.Choices(), ", ") }

// Legal implements envs.Episode: a name, or the number of its place in the list.
func (e *episode) Legal(action string) (string, bool) {
	choices := e.Choices()
	switch action {
	case "1":
		return choices[0], true
	case "2":
		return choices[1], true
	}
	return envs.Lookup(choices, action)
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	if e.chosen != "" || action != e.low && action != e.high {
		panic(fmt.Sprintf("bandit: step %q is not legal (chosen: %q)", action, e.chosen))
	}
	e.chosen = action
	reward := e.bandit.options.LowReward
	if action == e.high {
		reward = 0
		// The draw is made for the high arm alone: the low one pays without chance.
		if e.chance.Rand().Float64() < e.bandit.options.HighProbability {
			reward = e.bandit.options.HighReward
		}
	}
	return envs.Outcome{
		Reward:    reward,
		Done:      true,
		Effective: true,
		Success:   e.Success(),
		Text:      fmt.Sprintf("%s: %s points", action, envs.FormatReward(reward)),
	}
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	return fmt.Sprintf("low=%s high=%s first=%s chosen=%s", e.low, e.high, e.Choices()[0], e.chosen)
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.chosen != "" }

// Success implements envs.Episode: the high arm was chosen, whatever it paid.
func (e *episode) Success() bool { return e.chosen == e.high }

// Advice implements envs.Advised: the high arm, which counts as success even if it pays
// less on average; see BestReward for what pays.
func (e *episode) Advice(n int) []string {
	if n < 1 || e.Done() {
		return nil
	}
	return []string{e.high}
}

// BestSuccess implements envs.Advised.
func (e *episode) BestSuccess(n int) float64 {
	if e.Success() || len(e.Advice(n)) > 0 {
		return 1
	}
	return 0
}

// BestReward implements envs.Valued: the mean of the arm that pays more on average, or 0,
// for no action, if both cost.
func (e *episode) BestReward(n int) float64 {
	if n < 1 || e.Done() {
		return 0
	}
	o := e.bandit.options
	return max(0, o.LowReward, float64(o.HighProbability*o.HighReward))
}
