package run

import (
	"cmp"
	"slices"
	"strings"
)

// leastKnown is the fewest bytes of an answer that is looked for in other calls: shorter ones, as "yes", stand
// everywhere.
const leastKnown = 8

// Order gives the calls of an episode that the agent made, as places in d.Calls, in an order that follows from their
// contents alone and not from when they came. Calls that continue each other stand together, as a chain; a second call
// that continues the same one begins a chain of its own. A chain whose last call knows less of the others' answers comes
// before one that knows more: so an agent that asks one thing after the other, and shows the answers, is in its own
// order, and what was asked on the side comes before the call that uses it. Others are in the order of their addresses.
func (d *Dialogue) Order() []int {
	var made []int
	for i, c := range d.Calls {
		if d.End == nil || slices.Contains(d.End.Calls, c.Address) {
			made = append(made, i)
		}
	}
	slices.SortFunc(made, func(a, b int) int { return strings.Compare(d.Calls[a].Address, d.Calls[b].Address) })
	knows := d.known(made)
	next, inner := map[int]int{}, map[int]bool{} // the chain's next call, and those that are not a chain's first
	for _, i := range made {
		for _, k := range made {
			if _, taken := next[i]; !taken && i != k && d.Calls[k].Continues == d.Calls[i].Address {
				next[i], inner[k] = k, true
			}
		}
	}
	type chain struct {
		calls []int
		knows int
	}
	var chains []chain
	for _, i := range made {
		if inner[i] {
			continue
		}
		c := chain{calls: []int{i}}
		for k, ok := next[i]; ok; k, ok = next[k] {
			c.calls = append(c.calls, k)
		}
		for k := range knows[c.calls[len(c.calls)-1]] {
			if !slices.Contains(c.calls, k) {
				c.knows++
			}
		}
		chains = append(chains, c)
	}
	slices.SortStableFunc(chains, func(a, b chain) int { return cmp.Compare(a.knows, b.knows) })
	var out []int
	for _, c := range chains {
		out = append(out, c.calls...)
	}
	return out
}

// known gives for each call those whose answers it knows: because it continues them, because an answer stands in its
// messages, or because a call that it knows knew them.
func (d *Dialogue) known(made []int) map[int]map[int]bool {
	direct := map[int][]int{}
	for _, i := range made {
		for _, k := range made {
			if i != k && d.Calls[i].knows(d.Calls[k]) {
				direct[i] = append(direct[i], k)
			}
		}
	}
	out := map[int]map[int]bool{}
	for _, i := range made {
		seen := map[int]bool{}
		var visit func(int)
		visit = func(at int) {
			for _, k := range direct[at] {
				if k != i && !seen[k] {
					seen[k] = true
					visit(k)
				}
			}
		}
		visit(i)
		out[i] = seen
	}
	return out
}

// knows reports whether a call shows the answer to another one.
func (c DialogueCall) knows(other DialogueCall) bool {
	if c.Continues == other.Address {
		return true
	}
	for _, m := range c.Asked.Messages {
		if answer := strings.TrimSpace(other.Answer.Text); len(answer) >= leastKnown && strings.Contains(m.Content, answer) {
			return true
		}
		if len(other.Answer.Calls) > 0 && slices.EqualFunc(m.Calls, other.Answer.Calls, sameCall) {
			return true
		}
	}
	return false
}
