package envs

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Tokenizer is what the protocol needs of a policy's tokenizer; see
// model/tokenizer for what its methods do.
type Tokenizer interface {
	EncodeChat(messages []chat.Message, addGenerationPrompt bool) ([]int32, error)
	Continuation(user string) ([]int32, error)
	ContinuationOf(messages []chat.Message) ([]int32, error)
	EncodeTag(tag string) []int32
	Closing() (int32, error)
	EndOfTurn() []int32
	Decode(ids []int32) string
	Bytes(id int32) string
}

// PromptIDs gives the ids of turn 1's context: the chat template around the
// first messages, whose contents never become special tokens, and the opening tag.
func (p Protocol) PromptIDs(tok Tokenizer, env Environment, episode Episode) ([]int32, error) {
	return p.BeginIDs(tok, env, episode, 1, env.MaxActions())
}

// BeginIDs gives the ids of a context that begins with a turn, counted from 1, and shows none
// before it; left are the actions left.
func (p Protocol) BeginIDs(tok Tokenizer, env Environment, episode Episode, turn, left int) ([]int32, error) {
	messages := p.begin(env, episode, turn, left)
	ids, err := tok.EncodeChat(messages, true)
	if err != nil {
		return nil, fmt.Errorf("encode the prompt of turn %d of environment %q: %w", turn, env.Name(), err)
	}
	return p.open(tok, ids, messages[len(messages)-1].Content), nil
}

// Restarts reports whether the context of a turn is built from the start, because
// ContextTurns leaves out the first turns, or because one of Cuts shortens an observation.
func (p Protocol) Restarts(turn int) bool {
	return p.ContextTurns > 0 && turn > p.ContextTurns || p.cuts(turn)
}

// Recorded is the record of a turn that was played.
type Recorded struct {
	// Actions are the executed actions, as Replay takes them.
	Actions []string
	// Sampled are the sampled ids.
	Sampled []int32
	// Results are the answers to the calls of tools.
	Results []string
}

// WindowIDs gives the whole context of the turn after the recorded ones, if it Restarts.
// First come the messages as if the episode began with the first turn shown, under that
// turn's own number. Then come the sampled ids as they were recorded, with the
// environment's answers between. RAGEN's window differs: it renumbers the turns and
// forgets the rewards of the turns it leaves out.
func (p Protocol) WindowIDs(tok Tokenizer, env Environment, instance, chance draw.Address, turns []Recorded) ([]int32, error) {
	if p.ContextTurns == 0 {
		return p.cutIDs(tok, env, instance, chance, turns)
	}
	actions := make([][]string, len(turns))
	for i, t := range turns {
		actions[i] = t.Actions
	}
	shown := max(len(turns)+1-p.ContextTurns, 0) // turns before the first shown
	episode, played, err := Replay(env, instance, chance, actions[:shown])
	if err != nil {
		return nil, err
	}
	left := env.MaxActions()
	if shown > 0 {
		left = played[shown-1].ActionsLeft
	}
	ids, err := p.BeginIDs(tok, env, episode, shown+1, left)
	if err != nil {
		return nil, err
	}
	for i := shown; i < len(turns); i++ {
		if episode, played, err = Replay(env, instance, chance, actions[:i+1]); err != nil {
			return nil, err
		}
		next := played[i].After(i+1, turns[i].Results)
		more, err := p.ContinueIDs(tok, env, episode, next, turns[i].Sampled)
		if err != nil {
			return nil, err
		}
		ids = append(append(ids, turns[i].Sampled...), more...)
	}
	return ids, nil
}

// ContinueIDs gives the ids that follow the sampled ones of a turn, up to the
// opening tag of the next: none of them is sampled, and none before them is
// touched. If the sample did not end with the token that closes a message, the closing
// token comes first. (A stop text may have ended the sample, or the length limit cut it, or
// it ended with another end-of-text token.)
func (p Protocol) ContinueIDs(tok Tokenizer, env Environment, episode Episode, next NextTurn, sampled []int32) ([]int32, error) {
	return p.continueIDs(tok, env, episode, next, sampled, -1)
}

// continueIDs is ContinueIDs with at most so many tokens of each message; −1 is all.
func (p Protocol) continueIDs(tok Tokenizer, env Environment, episode Episode, next NextTurn, sampled []int32, limit int) ([]int32, error) {
	ids, err := ClosingIDs(tok, sampled)
	if err != nil {
		return nil, fmt.Errorf("continue after turn %d: %w", next.Number-1, err)
	}
	messages := p.messages(env, episode, next)
	var more []int32
	if err = shorten(tok, messages, limit); err == nil {
		more, err = tok.ContinuationOf(messages)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the prompt of turn %d of environment %q: %w", next.Number, env.Name(), err)
	}
	return p.open(tok, append(ids, more...), messages[len(messages)-1].Content), nil
}

// ClosingIDs are the ids that close a message whose content was sampled: none if the sample ended with the token that
// closes messages.
func ClosingIDs(tok Tokenizer, sampled []int32) ([]int32, error) {
	closing, err := tok.Closing()
	if err != nil || len(sampled) > 0 && sampled[len(sampled)-1] == closing {
		return nil, err
	}
	return []int32{closing}, nil
}

// ReadReply parses the sampled ids of a turn. Open says that they do not end with an
// end-of-turn token: a stop text ended them or the length limit cut them. An open reply
// counts only if its answer tag closed.
func (p Protocol) ReadReply(tok Tokenizer, env Environment, sampled []int32) (reply Reply, open bool) {
	open = true
	if n := len(sampled); n > 0 && slices.Contains(tok.EndOfTurn(), sampled[n-1]) {
		open = false
		sampled = sampled[:n-1]
	}
	return p.Parse(tok.Decode(sampled), env.MaxActionsPerTurn()), open
}

// ThoughtTokens is how many of the sampled ids of a turn begin in its thought; 0 for a
// protocol without thoughts. A thought that never closes reaches to the end.
func (p Protocol) ThoughtTokens(tok Tokenizer, sampled []int32) int {
	if n := len(sampled); n > 0 && slices.Contains(tok.EndOfTurn(), sampled[n-1]) {
		sampled = sampled[:n-1]
	}
	end := strings.Index(tok.Decode(sampled), "</think>")
	switch {
	case !p.Think:
		return 0
	case end < 0:
		return len(sampled)
	}
	return sort.Search(len(sampled), func(n int) bool { return len(tok.Decode(sampled[:n])) >= end })
}

// widestReward replaces the reward of a turn when widths are computed; ten actions of the
// environments here stay within it.
const widestReward = -188.8888

// PromptMultiple is what widths of contexts are rounded up to, in tokens.
const PromptMultiple = 16

// MaxPromptTokens gives the most tokens of the context at the start of each
// turn, rounded up to a multiple of PromptMultiple: [turns]. Turn 1 is enumerated over
// the environment's cases, and over the widest episodes if the environment is Bounded or
// Measured. Each later turn adds maxNewTokens sampled tokens, a closing token and the
// widest message, as far as ContextTurns shows them. An environment in
// which random play meets a wider observation is an [ErrCases].
func MaxPromptTokens(env Environment, tok Tokenizer, p Protocol, turns, maxNewTokens int) ([]int, error) {
	cases := env.Cases()
	if bounded, ok := env.(Bounded); ok {
		cases = append(cases, bounded.Widest()...)
	}
	if measured, ok := env.(Measured); ok {
		longest, err := measured.Longest(func(text string) (int, error) {
			ids, err := tok.Continuation(text)
			return len(ids), err
		})
		if err != nil {
			return nil, fmt.Errorf("widths of the observations of environment %q: %w", env.Name(), err)
		}
		cases = append(cases, longest...)
	}
	widths, err := contextWidths(env, tok, p, turns, maxNewTokens, cases)
	if err != nil {
		return nil, err
	}
	err = checkCases(env, tok, cases, widths, func(another Episode) ([]int, error) {
		return contextWidths(env, tok, p, turns, maxNewTokens, append(slices.Clone(cases), another))
	})
	return widths, err
}

// contextWidths is MaxPromptTokens of these episodes.
func contextWidths(env Environment, tok Tokenizer, p Protocol, turns, maxNewTokens int, cases []Episode) ([]int, error) {
	widest := func(encode func(episode Episode) ([]int32, error)) (int, error) {
		most := 0
		for _, episode := range cases {
			ids, err := encode(episode)
			if err != nil {
				return 0, err
			}
			most = max(most, len(ids))
		}
		return most, nil
	}
	begin := func(turn int) (int, error) {
		return widest(func(episode Episode) ([]int32, error) { return p.BeginIDs(tok, env, episode, turn, env.MaxActions()) })
	}
	width, err := begin(1)
	if err != nil {
		return nil, err
	}
	first, after := width, make([]int, turns+1) // after[k] is the most tokens before turn k's sample, from the end of the one before
	widths := make([]int, turns)
	for turn := 1; turn <= turns; turn++ {
		if turn > 1 {
			next := NextTurn{Number: turn, Reward: widestReward, ActionsLeft: env.MaxActions()}
			// No sample: the closing token is counted here.
			most, err := widest(func(episode Episode) ([]int32, error) { return p.ContinueIDs(tok, env, episode, next, nil) })
			if err != nil {
				return nil, err
			}
			if p.Tools != nil {
				if most, err = p.widestResults(tok, env, most); err != nil {
					return nil, err
				}
			}
			after[turn] = most
			switch {
			case p.ContextTurns > 0 && p.Restarts(turn):
				first, err := begin(turn - p.ContextTurns + 1)
				if err != nil {
					return nil, err
				}
				width = max(width, first+(p.ContextTurns-1)*(maxNewTokens+most))
			case p.Restarts(turn):
				whole := first
				for observed := 2; observed <= turn; observed++ {
					cut, err := p.widestCut(tok, turn-observed, after[observed])
					if err != nil {
						return nil, err
					}
					whole += maxNewTokens + cut
				}
				width = max(width, whole)
			default:
				width += maxNewTokens + most
			}
		}
		widths[turn-1] = (width + PromptMultiple - 1) / PromptMultiple * PromptMultiple
	}
	return widths, nil
}
