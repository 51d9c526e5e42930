package envs

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Cut is a rule that shortens older observations in a context.
type Cut struct {
	// KeepLast is how many of the newest observations stay as they are, at least 1.
	KeepLast int
	// Tokens is how many tokens stay of each older one: its first.
	Tokens int
}

// limit is how many tokens an observation of an age has, 0 for the newest; −1 is all. Of several rules the one with the
// largest KeepLast counts.
func (p Protocol) limit(age int) int {
	limit, keep := -1, 0
	for _, c := range p.Cuts {
		if age >= c.KeepLast && c.KeepLast > keep {
			limit, keep = c.Tokens, c.KeepLast
		}
	}
	return limit
}

// cuts reports whether the context of a turn shortens an observation that the turn before shows longer. The first turn's
// is part of the first message, which stays whole.
func (p Protocol) cuts(turn int) bool {
	for observed := 2; observed < turn; observed++ {
		if p.limit(turn-observed) != p.limit(turn-1-observed) {
			return true
		}
	}
	return false
}

// cutIDs gives the whole context of the turn after the recorded ones, if it Restarts: the first message, and each turn's
// sampled ids as they were recorded with the environment's answer, cut by its age.
func (p Protocol) cutIDs(tok Tokenizer, env Environment, instance, chance draw.Address, turns []Recorded) ([]int32, error) {
	episode := env.Reset(instance, chance)
	ids, err := p.PromptIDs(tok, env, episode)
	if err != nil {
		return nil, err
	}
	actions := make([][]string, len(turns))
	for i, t := range turns {
		actions[i] = t.Actions
		episode, played, err := Replay(env, instance, chance, actions[:i+1])
		if err != nil {
			return nil, err
		}
		more, err := p.continueIDs(tok, env, episode, played[i].After(i+1, t.Results), t.Sampled, p.limit(len(turns)-1-i))
		if err != nil {
			return nil, err
		}
		ids = append(append(ids, t.Sampled...), more...)
	}
	return ids, nil
}

// shorten cuts the messages of a turn to so many tokens each; −1 leaves them.
func shorten(tok Tokenizer, messages []chat.Message, tokens int) error {
	if tokens < 0 {
		return nil
	}
	for i, m := range messages {
		text, err := cutText(tok, m.Content, tokens, func(text string) []chat.Message {
			return []chat.Message{{Role: m.Role, Content: text}}
		})
		if err != nil {
			return fmt.Errorf("cut an observation: %w", err)
		}
		messages[i].Content = text
	}
	return nil
}

// cutText is a text of at most so many tokens in a message. One that is longer loses its end, and says so; the mark counts,
// and stays where there is room for nothing else.
func cutText(tok Tokenizer, text string, tokens int, in func(text string) []chat.Message) (string, error) {
	width := func(text string) (int, error) {
		ids, err := tok.ContinuationOf(in(text))
		return len(ids), err
	}
	frame, err := width("")
	if err != nil {
		return "", err
	}
	fits := func(text string) (bool, error) {
		n, err := width(text)
		return n-frame <= tokens, err
	}
	if ok, err := fits(text); ok || err != nil {
		return text, err
	}
	runes := []rune(text)
	if most := tokens * maxTokenRunes; len(runes) > most {
		runes = runes[:most]
	}
	// The longest beginning that fits. Tokens merge across a cut, so that a longer one may have fewer: the search ends at
	// one that fits in any case.
	low, high := 0, len(runes)
	for low < high {
		middle := (low + high + 1) / 2
		ok, err := fits(string(runes[:middle]) + cutMark)
		switch {
		case err != nil:
			return "", err
		case ok:
			low = middle
		default:
			high = middle - 1
		}
	}
	return string(runes[:low]) + cutMark, nil
}

// cutMark ends a text that was cut.
const cutMark = "… [cut]"

// IsCut reports whether a text, of an answer to a call or of an observation, was cut because it was too long.
func IsCut(text string) bool { return strings.HasSuffix(text, cutMark) }

// maxTokenRunes is more runes than a token has on average in any text: what is longer does not need to be measured.
const maxTokenRunes = 64
