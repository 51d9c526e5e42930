package envs

import (
	"slices"
	"strings"
)

// Span is tokens of a turn's sample, from From to before To. It is empty if both are equal.
type Span struct{ From, To int }

// Subgoal is what a turn says of its subgoal (HiPER, arXiv 2602.16165): whether it takes another,
// and which. Spans are of the turn's sampled ids. A token belongs to the span that holds its first
// byte. A span has its tags too, because the policy writes them.
type Subgoal struct {
	// Switch is the tokens that keep or switch, Goal those of the subgoal, and Action those of the
	// answer. Without an answer all tokens are the action's too, as in the authors' code.
	Switch, Goal, Action Span
	// Switches is false where the sample says KEEP, and where it says nothing: any other word switches.
	Switches bool
	// Formed says that the sample has a subgoal, and says KEEP or SWITCH.
	Formed bool
	// Text is the subgoal with single blanks, trimmed; empty without.
	Text string
}

// The tags that a subgoal is read from.
const (
	switchTag  = "switch"
	subgoalTag = "subgoal"
	answerTag  = "answer"
)

// SubgoalTags are the names of the tags that say which subgoal a turn has.
func SubgoalTags() []string { return []string{switchTag, subgoalTag} }

// ReadSubgoal finds a turn's subgoal in its sampled ids, by the bytes of the ids alone: text is never
// encoded again. The first of each tag counts, and a tag inside of another is text of that other.
func ReadSubgoal(tok Tokenizer, sampled []int32) Subgoal {
	whole := Span{0, len(sampled)}
	if n := len(sampled); n > 0 && slices.Contains(tok.EndOfTurn(), sampled[n-1]) {
		sampled = sampled[:n-1]
	}
	var b strings.Builder
	starts := make([]int, len(sampled)) // the place of each token's first byte
	for i, id := range sampled {
		starts[i] = b.Len()
		b.WriteString(tok.Bytes(id))
	}
	text := b.String()
	tokens := func(from, to int) Span {
		first, _ := slices.BinarySearch(starts, from)
		end, _ := slices.BinarySearch(starts, to)
		return Span{first, end}
	}
	found := map[string]bool{}
	var out Subgoal
	knows := false // it says one of the two words
	for at := 0; ; {
		tag, opened := "", len(text)
		for _, t := range []string{switchTag, subgoalTag, answerTag} {
			if i := strings.Index(text[at:], "<"+t+">"); i >= 0 && at+i < opened && !found[t] {
				tag, opened = t, at+i
			}
		}
		if tag == "" {
			break
		}
		inner := opened + len(tag) + 2
		length := strings.Index(text[inner:], "</"+tag+">")
		if length < 0 {
			at = inner
			found[tag] = true // it never closes, and no later one does
			continue
		}
		said := strings.Join(strings.Fields(text[inner:inner+length]), " ")
		at = inner + length + len(tag) + 3
		found[tag] = true
		switch span := tokens(opened, at); tag {
		case switchTag:
			keeps := strings.EqualFold(said, "keep")
			out.Switch, out.Switches = span, said != "" && !keeps
			knows = keeps || strings.EqualFold(said, "switch")
		case subgoalTag:
			out.Goal, out.Text = span, strings.ToValidUTF8(said, "\uFFFD")
		case answerTag:
			out.Action = span
		}
	}
	out.Formed = knows && out.Goal.To > out.Goal.From
	if out.Action == (Span{}) {
		out.Action = whole
	}
	return out
}
