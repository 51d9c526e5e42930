package starter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// thoughtWords are what a transcript's random thinking is made of. Each is one
// token of the starter's; none names an arm, a reward or a preference.
var thoughtWords = [...]string{
	"the", "a", "it", "is", "at", "to", "of", "and", "so", "then", "now", "one", "two", "here", "there", "this",
	"look", "go", "move", "step", "push", "turn", "up", "down", "left", "right", "wall", "box", "goal", "hole", "state", "first",
}

// ThoughtWords gives the words of random thinking.
func ThoughtWords() []string { return append([]string(nil), thoughtWords[:]...) }

// minThought and maxThought bound the number of words of a thought.
const (
	minThought = 1
	maxThought = 4
)

// Transcript is one warm-start example: a whole episode as ids.
type Transcript struct {
	// IDs are the prompt of turn 1, the reply, the next turn's prompt …: [tokens].
	IDs []int32
	// Loss says which ids are learnt: those a policy would have sampled, the
	// end-of-turn token included: [tokens].
	Loss []bool
}

// Transcripts gives n episodes of random play in the right format, for step
// addr.Iteration of a warm start (purpose draw.WarmStart). The rows go through
// every combination of the environment's cases and their first actions in turn
// and go on where the step before ended; so where n is a multiple of
// Combinations, each arm and each order occurs equally often in every step, and
// the model learns that nothing of it matters. Thoughts are random words, later
// actions random choices.
//
// turns bounds the turns of an episode. The tokenizer may be any policy's.
func Transcripts(tok *tokenizer.Tokenizer, env envs.Environment, p envs.Protocol, turns, n int, addr draw.Address) ([]Transcript, error) {
	count := Combinations(env)
	if count == 0 {
		return nil, fmt.Errorf("transcripts of environment %q: it has no cases", env.Name())
	}
	closing, err := tok.Closing()
	if err != nil {
		return nil, fmt.Errorf("transcripts of environment %q: %w", env.Name(), err)
	}
	first := (addr.Iteration%int64(count) + int64(count)) % int64(count) * int64(n%count) % int64(count)
	out := make([]Transcript, n)
	for row := range out {
		episode, action := combination(env, int((first+int64(row))%int64(count)))
		rowAddr := addr
		rowAddr.Group = int64(row)
		if out[row], err = transcript(tok, env, p, episode, action, turns, closing, rowAddr.Rand()); err != nil {
			return nil, fmt.Errorf("transcript %d: %w", row, err)
		}
	}
	return out, nil
}

// Combinations is the number of pairs of an environment's cases and their first
// actions: rows of a warm-start step should be a multiple of it.
func Combinations(env envs.Environment) int {
	n := 0
	for _, episode := range env.Cases() {
		n += len(episode.Choices())
	}
	return n
}

// combination gives a fresh episode and the first action of the index-th pair.
func combination(env envs.Environment, index int) (envs.Episode, string) {
	for _, episode := range env.Cases() {
		choices := episode.Choices()
		if index < len(choices) {
			return episode, choices[index]
		}
		index -= len(choices)
	}
	panic("starter: combination out of range")
}

func transcript(tok *tokenizer.Tokenizer, env envs.Environment, p envs.Protocol, episode envs.Episode, action string, turns int, closing int32, r *rand.Rand) (Transcript, error) {
	if turns < 1 {
		return Transcript{}, errors.New("an episode has at least one turn")
	}
	var t Transcript
	add := func(ids []int32, learnt bool) {
		t.IDs = append(t.IDs, ids...)
		for range ids {
			t.Loss = append(t.Loss, learnt)
		}
	}
	prompt, err := p.PromptIDs(tok, env, episode)
	if err != nil {
		return t, err
	}
	add(prompt, false)
	left := env.MaxActions()
	for turn := 1; ; turn++ {
		actions := []string{action}
		choices := episode.Choices()
		for most := min(env.MaxActionsPerTurn(), left); len(actions) < most && r.IntN(2) == 0; {
			actions = append(actions, choices[r.IntN(len(choices))])
		}
		sampled := append(tok.EncodePlain(reply(p, actions, r)), closing)
		add(sampled, true)
		played := p.Play(episode, envs.Reply{Actions: actions}, left)
		left = played.ActionsLeft
		if turn == turns || played.Ended() {
			return t, nil
		}
		next := envs.NextTurn{Number: turn + 1, Reward: played.Reward, ActionsLeft: left}
		if prompt, err = p.ContinueIDs(tok, env, episode, next, sampled); err != nil {
			return t, err
		}
		add(prompt, false)
		choices = episode.Choices()
		action = choices[r.IntN(len(choices))]
	}
}

// reply writes actions, and a random thought, as a policy is to write them: what
// follows the opening tag. Words and actions have a space before them, so that a
// name is the same token as in a prompt.
func reply(p envs.Protocol, actions []string, r *rand.Rand) string {
	var s strings.Builder
	if p.Think {
		for range minThought + r.IntN(maxThought-minThought+1) {
			s.WriteByte(' ')
			s.WriteString(thoughtWords[r.IntN(len(thoughtWords))])
		}
		s.WriteString(" </think><answer>")
	}
	s.WriteByte(' ')
	s.WriteString(strings.Join(actions, " "+envs.Separator+" "))
	s.WriteString(" </answer>")
	return s.String()
}
