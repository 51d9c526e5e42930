package starter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
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

// Options say which episodes Transcripts writes.
type Options struct {
	// Turns is the most turns of an episode, at least 1.
	Turns int
	// Demonstrations is the share of episodes that are played by the
	// environment's solver (envs.Advised), from 0 to 1; the others are random play.
	// 1 is supervised fine-tuning on solutions, a baseline of the paper (arXiv
	// 2504.20073); 0 teaches the format and nothing of the task.
	Demonstrations float64
	// Window shows that many turns of each episode and none before them, from a turn that is
	// drawn, as contexts of that many turns do; 0 shows all turns from the first on.
	Window int
	// Objects are what random claims of a thought are about; with none, a thought is random
	// words.
	Objects []string
}

// Transcript is one warm-start example: a whole episode as ids.
type Transcript struct {
	// IDs are the prompt of turn 1, the reply, the next turn's prompt …: [tokens].
	IDs []int32
	// Loss marks the ids that are trained on: those a policy would have sampled, the
	// end-of-turn token included: [tokens].
	Loss []bool
}

// Transcripts gives n episodes in the right format, for step addr.Iteration of a
// warm start (purpose draw.WarmStart): a share of demonstrations, spread evenly
// over the rows of all steps, and otherwise random play. In K rows from the first
// step on, round(share × K) are demonstrations, so the share holds over time even if a
// step's rows do not divide by it. Steps of a warm start have the same n.
//
// Random play goes through every combination of the environment's cases and their first
// actions in turn, and continues where the previous step ended. So if its rows are a
// multiple of Combinations, each arm and each order occurs equally often in every step,
// and the model learns that none of them matters. Later actions are random choices.
//
// A demonstration is best play in a fresh instance, which no run plays unless the
// environment has a pool of instances. If chance decides what follows, a turn has one
// action; otherwise as many as it may have.
//
// Thoughts are random words in both, or random claims of Objects, or random subgoals. The tokenizer
// may be any policy's. Errors are of kind ErrNoAdvice if demonstrations are requested and the
// environment has none.
func Transcripts(tok *tokenizer.Tokenizer, env envs.Environment, p envs.Protocol, o Options, n int,
	addr draw.Address) ([]Transcript, error) {
	fail := func(err error) ([]Transcript, error) {
		return nil, fmt.Errorf("transcripts of environment %q: %w", env.Name(), err)
	}
	if o.Turns < 1 {
		return fail(fmt.Errorf("an episode has %d turns, must be at least 1", o.Turns))
	}
	if !(o.Demonstrations >= 0 && o.Demonstrations <= 1) {
		return fail(fmt.Errorf("the share of demonstrations is %v, must be from 0 to 1", o.Demonstrations))
	}
	count := Combinations(env)
	if count == 0 {
		return fail(fmt.Errorf("it has no cases"))
	}
	closing, err := tok.Closing()
	if err != nil {
		return fail(err)
	}
	out := make([]Transcript, n)
	for row := range out {
		w := writer{tok: tok, env: env, p: p, turns: o.Turns, window: o.Window, objects: o.Objects, closing: closing}
		rowAddr := addr
		rowAddr.Group = int64(row)
		w.r = rowAddr.Rand()
		number := addr.Iteration*int64(n) + int64(row)
		shown := o.shown(number)
		if o.shown(number+1) > shown {
			err = w.demonstrate(rowAddr)
		} else {
			err = w.improvise(rowAddr, int((number-shown)%int64(count)))
		}
		if err != nil {
			return fail(fmt.Errorf("row %d: %w", row, err))
		}
		out[row] = w.out
	}
	return out, nil
}

// shown is how many of a warm start's first rows are demonstrations.
func (o Options) shown(rows int64) int64 { return int64(math.Round(o.Demonstrations * float64(rows))) }

// Combinations is the number of pairs of an environment's cases and their first
// actions: rows of random play in a warm-start step should be a multiple of it.
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

// writer writes one transcript.
type writer struct {
	tok     *tokenizer.Tokenizer
	env     envs.Environment
	p       envs.Protocol
	turns   int
	window  int
	objects []string // of claims
	closing int32
	// answered is what tools answered in the turn before.
	answered string
	r        *rand.Rand // what the row draws, except for instance and chance
	out      Transcript
}

// improvise writes random play of a combination. Where tools answer what can be an action, it is that of a fresh instance, so
// that what is copied is many things.
func (w *writer) improvise(row draw.Address, index int) error {
	begin := func() envs.Episode {
		episode, _ := combination(w.env, index)
		return episode
	}
	_, first := combination(w.env, index)
	if w.copies() {
		instance, chance := row, row
		instance.Purpose = row.Purpose.With(draw.Instance)
		chance.Purpose = row.Purpose.With(draw.Chance)
		if choices := w.env.Reset(instance, chance).Choices(); len(choices) > 0 {
			begin = func() envs.Episode { return w.env.Reset(instance, chance) }
			first = choices[w.r.IntN(len(choices))]
		}
	}
	return w.write(begin, func(episode envs.Episode, turn, left int) []string {
		if call := w.call(episode, turn); call != "" {
			return []string{call}
		}
		choices := episode.Choices()
		action := first
		if turn > 1 && w.p.Tools == nil {
			action = choices[w.r.IntN(len(choices))]
		}
		if phrase := w.copied(episode); phrase != "" {
			action = phrase
		}
		actions := []string{action}
		for most := min(w.env.MaxActionsPerTurn(), left); len(actions) < most && w.r.IntN(2) == 0; {
			actions = append(actions, choices[w.r.IntN(len(choices))])
		}
		return actions
	})
}

// copies says that what tools answer can be an action.
func (w *writer) copies() bool {
	_, free := w.env.(envs.FreeForm)
	return free && w.p.Tools != nil
}

// call is a call that a tool suggests, at random; "" for none. Half of the turns have one. Where answers are copied, or imagined, the
// first turn always has one, since there is nothing to copy yet: a policy that answered in it would learn to guess before it
// has learned to read. The last turn has none, since nobody would read the answer.
func (w *writer) call(episode envs.Episode, turn int) string {
	if w.p.Tools == nil || turn >= w.turns || !(turn == 1 && (w.copies() || w.p.Tools.AnyOutside())) && w.r.IntN(2) == 0 {
		return ""
	}
	suggested := w.p.Tools.Suggestions(episode.Observation() + "\n" + w.answered)
	if len(suggested) == 0 {
		return ""
	}
	return suggested[w.r.IntN(len(suggested))].Action()
}

// answerWords is the most words of an answer that is copied from what tools have answered.
const answerWords = 3

// copied is a phrase that tools have answered, at random among those that the environment takes for an action; "" if there is
// none. In half of the cases it is one word, as most answers are.
func (w *writer) copied(episode envs.Episode) string {
	if !w.copies() {
		return ""
	}
	most := 1
	for most < answerWords && w.r.IntN(2) == 0 {
		most++
	}
	read := slices.DeleteFunc(envs.Phrases(w.answered, most), func(phrase string) bool {
		_, ok := episode.Legal(phrase)
		return !ok
	})
	if len(read) == 0 {
		return ""
	}
	return read[w.r.IntN(len(read))]
}

// said is a reply of these actions, calls among them.
func said(actions []string) (envs.Reply, error) {
	var r envs.Reply
	for _, action := range actions {
		if !calls.IsAction(action) {
			r.Actions = append(r.Actions, action)
			continue
		}
		c, err := calls.ReadAction(action)
		if err != nil {
			return r, err
		}
		r.Calls = append(r.Calls, c)
	}
	return r, nil
}

// player gives the actions of a turn that begins with that many actions left; none end the
// transcript there.
type player func(episode envs.Episode, turn, left int) []string

// write plays an episode and writes it down, or a window of its turns. begin gives the episode
// at its beginning.
func (w *writer) write(begin func() envs.Episode, play player) error {
	episode, first, last, left := begin(), 1, w.turns, w.env.MaxActions()
	if w.window > 0 && w.window < w.turns {
		played := w.rehearse(begin(), play)
		first += w.r.IntN(max(1, len(played)-w.window+1))
		last = first + w.window - 1
		play = func(_ envs.Episode, turn, _ int) []string {
			if turn > len(played) {
				return nil
			}
			return played[turn-1]
		}
		for turn := 1; turn < first; turn++ {
			left = w.p.Play(episode, envs.Reply{Actions: played[turn-1]}, left).ActionsLeft
		}
	}
	actions := play(episode, first, left)
	prompt, err := w.p.BeginIDs(w.tok, w.env, episode, first, left)
	for turn := first; ; turn++ {
		if err != nil {
			return err
		}
		w.add(prompt, false)
		var reply envs.Reply
		if reply, err = said(actions); err != nil {
			return err
		}
		sampled := append(w.tok.EncodePlain(w.reply(reply)), w.closing)
		w.add(sampled, true)
		played := w.p.Play(episode, reply, left)
		left = played.ActionsLeft
		if turn == last || played.Ended() {
			return nil
		}
		var results []string
		if results, err = w.answers(episode, played.Calls); err != nil {
			return err
		}
		next := played.After(turn, results)
		w.answered = strings.Join(results, "\n")
		if actions = play(episode, turn+1, left); len(actions) == 0 {
			return nil
		}
		prompt, err = w.p.ContinueIDs(w.tok, w.env, episode, next, sampled)
	}
}

// answers are the answers to calls. Nobody asks an outside tool: it is imagined to answer an action of the episode, at random.
func (w *writer) answers(episode envs.Episode, made []calls.Call) ([]string, error) {
	var out []string
	for _, c := range made {
		a, err := w.p.Tools.Answer(w.tok, c)
		if choices := episode.Choices(); err == nil && len(choices) > 0 {
			if _, outside := w.p.Tools.Outside(c); outside {
				a.Text, err = w.p.Tools.Cut(w.tok, choices[w.r.IntN(len(choices))])
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, a.Text)
	}
	return out, nil
}

// rehearse plays an episode and gives the actions of its turns: [turns][actions].
func (w *writer) rehearse(episode envs.Episode, play player) [][]string {
	var played [][]string
	left := w.env.MaxActions()
	for turn := 1; turn <= w.turns; turn++ {
		actions := play(episode, turn, left)
		if len(actions) == 0 {
			break
		}
		played = append(played, actions)
		t := w.p.Play(episode, envs.Reply{Actions: actions}, left)
		if left = t.ActionsLeft; t.Ended() {
			break
		}
	}
	return played
}

func (w *writer) add(ids []int32, trained bool) {
	w.out.IDs = append(w.out.IDs, ids...)
	for range ids {
		w.out.Loss = append(w.out.Loss, trained)
	}
}

// reply writes actions, and a random thought, as a policy is to write them: what
// follows the opening tag. Words and actions have a space before them, so that a
// name is the same token as in a prompt.
func (w *writer) reply(r envs.Reply) string {
	var s strings.Builder
	switch {
	case w.p.Think && w.p.Tools != nil:
		s.WriteString(w.thought() + " </think>")
	case w.p.Think && w.p.Subgoals:
		s.WriteString(" <switch>" + w.of(" SWITCH", " KEEP") + " </switch> <subgoal>" + w.of(" reach", " avoid", " find", " keep") + w.of(" goal", " box", " hole", " edge", " wall") +
			" </subgoal> </think><answer>")
	case w.p.Think && len(w.objects) > 0:
		s.WriteString(" <observation> " + w.claim() + " </observation> <prediction> " + w.claim() + " </prediction> </think><answer>")
	case w.p.Think:
		s.WriteString(w.thought() + " </think><answer>")
	}
	if w.p.Tools != nil {
		s.WriteString(w.p.Tools.Form.Write(r.Calls))
		if len(r.Actions) == 0 {
			return s.String()
		}
		s.WriteString("<answer>")
	}
	s.WriteByte(' ')
	s.WriteString(strings.Join(r.Actions, " "+envs.Separator+" "))
	s.WriteString(" </answer>")
	return s.String()
}

// thought is a few random words, each with a space before it.
func (w *writer) thought() string {
	var s strings.Builder
	for range minThought + w.r.IntN(maxThought-minThought+1) {
		s.WriteByte(' ')
		s.WriteString(thoughtWords[w.r.IntN(len(thoughtWords))])
	}
	return s.String()
}

// claim is a claim of the state, at random: an object and its sides, as the reward module
// `state` reads them. It is as likely to be true as chance has it.
func (w *writer) claim() string {
	return w.of(w.objects...) + " " + w.of("above", "below", "same") + " " + w.of("left", "right", "same")
}

// of is one of some words, at random.
func (w *writer) of(words ...string) string { return words[w.r.IntN(len(words))] }
