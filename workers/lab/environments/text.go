package environments

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// ReplyTokens is the length of the reply of a turn with thoughts.
const ReplyTokens = 400

// Model is a policy's tokenizer and configuration.
type Model struct {
	Name string
	// Files are the files of its folder by name, without the weights.
	Files map[string][]byte
}

// TextSpeed is how many texts of a Sokoban episode one core encodes and decodes per second.
type TextSpeed struct {
	Tokenizer string `json:"tokenizer"`
	// Prompts are first prompts, of PromptTokens ids on average; Continuations are the
	// environment's answers to a turn, of ContinuationTokens.
	Prompts            float64 `json:"prompts_per_second"`
	PromptTokens       float64 `json:"prompt_tokens"`
	Continuations      float64 `json:"continuations_per_second"`
	ContinuationTokens float64 `json:"continuation_tokens"`
	// Replies are replies of ReplyTokens ids, decoded and parsed; Parses counts parsing
	// alone.
	Replies float64 `json:"replies_per_second"`
	Parses  float64 `json:"parses_per_second"`
}

// speaker writes both sides of a conversation in the ids of a tokenizer.
type speaker struct {
	*game
	protocol  envs.Protocol
	tokenizer *tokenizer.Tokenizer
	closing   int32
}

func newSpeaker(m Model) (*speaker, error) {
	tok, err := tokenizer.Load(m.Files)
	if err != nil {
		return nil, err
	}
	closing, err := tok.Closing()
	if err != nil {
		return nil, err
	}
	g, err := newGame(games[0].environment, games[0].options)
	return &speaker{game: g, protocol: envs.Protocol{Think: true}, tokenizer: tok, closing: closing}, err
}

// thoughts are the sentences of replies' thoughts.
var thoughts = []string{
	"The player stands left of the box, and the target is two rows below it.",
	"If I push the box against the wall, it can not be moved away again.",
	"I go around the box first, so that I stand above it, and push it down.",
	"Moving up is blocked by a wall in this column, so that way costs a move.",
	"The last turn changed nothing, so the state is the same as before.",
	"There are few actions left: each of them costs 0.1 points.",
}

// reply is a turn of exactly tokens ids: random thoughts, the actions and the closing
// token.
func (s *speaker) reply(r *rand.Rand, tokens int, actions []string) []int32 {
	tail := s.tokenizer.EncodeTag("</think><answer>" + strings.Join(actions, " "+envs.Separator+" ") + "</answer>")
	tail = append(tail, s.closing)
	var ids []int32
	for len(ids) < tokens-len(tail) {
		ids = append(ids, s.tokenizer.EncodePlain(thoughts[r.IntN(len(thoughts))]+" ")...)
	}
	return append(ids[:max(0, tokens-len(tail))], tail...)
}

// drawn is count uniform draws from choices.
func drawn(r *rand.Rand, choices []string, count int) []string {
	actions := make([]string, count)
	for i := range actions {
		actions[i] = choices[r.IntN(len(choices))]
	}
	return actions
}

// textWorks returns works and the fields of speed that their rates go into. It fills in
// the other fields.
func textWorks(m Model, speed *TextSpeed) (works []work, into []*float64, err error) {
	s, err := newSpeaker(m)
	if err != nil {
		return nil, nil, fmt.Errorf("tokenizer of %s: %w", m.Name, err)
	}
	speed.Tokenizer = m.Name
	episodes := make([]envs.Episode, roomsAtOnce)
	replies, texts := make([][]int32, roomsAtOnce), make([]string, roomsAtOnce)
	for i := range episodes {
		instance, chance := s.addresses()
		episodes[i] = s.env.Reset(instance, chance)
		r := randomPlayer(chance)
		replies[i] = s.reply(r, ReplyTokens, drawn(r, s.env.Actions(), s.env.MaxActionsPerTurn()))
		texts[i] = s.tokenizer.Decode(replies[i])
	}
	next := envs.NextTurn{Number: 2, Reward: -0.5, ActionsLeft: s.env.MaxActions() / 2}
	prompt := func(e envs.Episode) ([]int32, error) { return s.protocol.PromptIDs(s.tokenizer, s.env, e) }
	continuation := func(e envs.Episode) ([]int32, error) {
		return s.protocol.ContinueIDs(s.tokenizer, s.env, e, next, replies[0])
	}
	encode := func(make func(envs.Episode) ([]int32, error)) work {
		return timed(func() (int, error) {
			for _, e := range episodes {
				if _, err := make(e); err != nil {
					return 0, err
				}
			}
			return len(episodes), nil
		})
	}
	if speed.PromptTokens, err = meanLength(episodes, prompt); err != nil {
		return nil, nil, err
	}
	if speed.ContinuationTokens, err = meanLength(episodes, continuation); err != nil {
		return nil, nil, err
	}
	read := timed(func() (int, error) {
		for _, ids := range replies {
			if reply, _ := s.protocol.ReadReply(s.tokenizer, s.env, ids); !reply.Formatted {
				return 0, errNotRead
			}
		}
		return len(replies), nil
	})
	parse := timed(func() (int, error) {
		for _, text := range texts {
			if !s.protocol.Parse(text, s.env.MaxActionsPerTurn()).Formatted {
				return 0, errNotRead
			}
		}
		return len(texts), nil
	})
	return []work{encode(prompt), encode(continuation), read, parse},
		[]*float64{&speed.Prompts, &speed.Continuations, &speed.Replies, &speed.Parses}, nil
}

var errNotRead = errors.New("a reply's tags were not found")

// meanLength is the mean number of ids.
func meanLength(episodes []envs.Episode, ids func(envs.Episode) ([]int32, error)) (float64, error) {
	total := 0
	for _, e := range episodes {
		got, err := ids(e)
		if err != nil {
			return 0, err
		}
		total += len(got)
	}
	return float64(total) / float64(len(episodes)), nil
}

// chanceOf is the random stream of a member's reply in a turn.
func chanceOf(group, member, turn int) *rand.Rand {
	return draw.Address{Seed: 1, Purpose: draw.Sample, Group: int64(group), Member: int64(member), Turn: int64(turn)}.Rand()
}
