package foreign

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
)

// ReadDescription reads the answer to EnvDescribe. The error is of kind ErrAnswer and lists
// everything that is wrong.
func ReadDescription(b []byte) (Description, error) {
	r, root, err := open(b)
	if err != nil {
		return Description{}, err
	}
	at := r.object(root, "", "protocol", "version", "instructions", "actions", "max_actions", "max_actions_per_turn", "instances", "widest", "replayable")
	if protocol := at.integer("protocol", 1, math.MaxInt32); len(r.problems) == 0 && protocol != Version {
		r.wrong("protocol", strconv.FormatInt(protocol, 10), "1: this program speaks version 1 of the protocol")
	}
	d := Description{
		Version: at.text("version", 200), Instructions: at.text("instructions", MaxText),
		Actions: at.names("actions"), Instances: at.integer("instances", 0, math.MaxInt64),
		MaxActions: int(at.integer("max_actions", 1, MaxSteps)), MaxActionsPerTurn: int(at.integer("max_actions_per_turn", 1, MaxSteps)),
		Widest: at.texts("widest", MaxWidest, MaxText), Replayable: at.truth("replayable"),
	}
	if len(r.problems) == 0 {
		if d.Version == "" {
			r.wrong("version", `""`, "a text that changes with the environment's rules")
		}
		if len(d.Widest) == 0 {
			r.wrong("widest", "nothing", "at least one observation that is as wide as any")
		}
		if d.MaxActionsPerTurn > d.MaxActions {
			r.wrong("max_actions_per_turn", strconv.Itoa(d.MaxActionsPerTurn), fmt.Sprintf("at most max_actions, %d", d.MaxActions))
		}
	}
	return d, r.err()
}

// ReadAnswers reads the answer to EnvPlay about the episodes that were asked, and checks
// what can be checked. Errors are of kind ErrAnswer, ErrVersion, ErrOther and ErrChain. An
// episode that drifted or is broken or busy is not an error here: see Answer.Err.
func ReadAnswers(b []byte, d Description, episodes []Asked) ([]Answer, error) {
	r, root, err := open(b)
	if err != nil {
		return nil, err
	}
	at := r.object(root, "", "version", "episodes")
	version := at.text("version", 200)
	items := at.items("episodes", MaxEpisodes)
	if err := r.err(); err != nil {
		return nil, err
	}
	if version != d.Version {
		return nil, fmt.Errorf("%w: from %q to %q", ErrVersion, d.Version, version)
	}
	if len(items) != len(episodes) {
		return nil, fmt.Errorf("%w: %d episodes, asked were %d", ErrOther, len(items), len(episodes))
	}
	answers := make([]Answer, len(items))
	for i, item := range items {
		path := strict.Index("episodes", i)
		a, named := r.answer(item, path, d)
		if err := r.err(); err != nil {
			return nil, err
		}
		asked := episodes[i]
		if want := (identity{strconv.FormatUint(asked.Instance, 10), strconv.FormatUint(asked.Chance, 10)}); named != want {
			return nil, fmt.Errorf("%w: %s is about instance %q and chance %q, asked were %s and %s", ErrOther, path, named.instance, named.chance, want.instance, want.chance)
		}
		if a.Err != nil {
			answers[i] = a
			continue
		}
		if err := a.fits(asked, path); err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

// identity names an episode as it travels.
type identity struct{ instance, chance string }

// fits checks an answer against what was asked.
func (a Answer) fits(asked Asked, path string) error {
	switch {
	case len(a.Steps)+a.Invalid > len(asked.Next):
		return fmt.Errorf("%w: %s has %d steps and %d invalid actions of %d", ErrAnswer, path, len(a.Steps), a.Invalid, len(asked.Next))
	case a.Success && !a.Done:
		return fmt.Errorf("%w: %s is solved and not done", ErrAnswer, path)
	case !a.Done && len(a.Steps)+a.Invalid < len(asked.Next):
		return fmt.Errorf("%w: %s has %d steps and %d invalid actions of %d, and is not done", ErrAnswer, path, len(a.Steps), a.Invalid, len(asked.Next))
	case len(a.Steps) > 0 && a.Steps[len(a.Steps)-1].Observation != a.Observation:
		return fmt.Errorf("%w: %s.observation is not that of its last step", ErrAnswer, path)
	}
	chain := asked.Chain
	if chain == "" {
		chain = Begin(a.Observation)
	}
	if want := a.chainOf(chain); a.Chain != want {
		return fmt.Errorf("%w: %s has %s, want %s", ErrChain, path, strict.Quote(a.Chain), want)
	}
	return nil
}

// answer reads one episode's answer.
func (r *reader) answer(n strict.Node, path string, d Description) (Answer, identity) {
	for _, m := range n.Members() {
		switch m.Key {
		case "drift":
			at := r.object(n, path, "instance", "chance", "drift")
			chain := r.object(m.Value, strict.Join(path, "drift"), "chain").text("chain", 64)
			return Answer{Err: fmt.Errorf("%w: it arrived at chain %s", ErrDrift, strict.Quote(chain))}, at.identity()
		case "error":
			at := r.object(n, path, "instance", "chance", "error")
			return Answer{Err: r.failure(m.Value, strict.Join(path, "error"))}, at.identity()
		}
	}
	at := r.object(n, path, "instance", "chance", "observation", "choices", "steps", "invalid", "done", "success", "chain")
	a := Answer{
		Observation: at.text("observation", MaxText), Choices: at.names("choices"),
		Invalid: int(at.integer("invalid", 0, MaxSteps)), Done: at.truth("done"), Success: at.truth("success"), Chain: at.text("chain", 64),
	}
	if d.Actions == nil && a.Choices == nil && !a.Done {
		r.wrong(strict.Join(path, "choices"), "nothing", "the legal actions, since the description has no actions; examples of them where any text is legal")
	}
	for i, item := range at.items("steps", MaxSteps) {
		inside := strict.Index(strict.Join(path, "steps"), i)
		step := r.object(item, inside, "action", "reward", "text", "effective", "observation")
		s := Step{
			Action: step.text("action", MaxAction), Text: step.text("text", MaxText),
			Effective: step.truth("effective"), Observation: step.text("observation", MaxText),
		}
		s.Reward, s.RewardText = step.number("reward", MaxReward)
		if !envs.Writable(s.Action) || d.Actions != nil && !slices.Contains(d.Actions, s.Action) {
			r.wrong(strict.Join(inside, "action"), strict.Quote(s.Action), "the name of a legal action, as the description or the choices write it")
		}
		a.Steps = append(a.Steps, s)
	}
	return a, at.identity()
}

// failure reads an environment's own report of an error. Its traceback may be left out.
func (r *reader) failure(n strict.Node, path string) error {
	keys := []string{"kind", "message"}
	for _, m := range n.Members() {
		if m.Key == "traceback" {
			keys = append(keys, m.Key)
		}
	}
	at := r.object(n, path, keys...)
	kind, message := at.text("kind", 20), at.text("message", MaxText)
	switch kind {
	case "broken":
		return fmt.Errorf("%w: %s%s", ErrBroken, quoteMessage(message), traceback(at.said("traceback")))
	case "busy":
		return fmt.Errorf("%w: %s", ErrBusy, quoteMessage(message))
	}
	r.wrong(strict.Join(path, "kind"), strict.Quote(kind), `"broken" or "busy"`)
	return nil
}

// An error shows so many characters of a message, and of a traceback so many lines and characters of each.
const (
	shownMessage = 300
	shownLines   = 8
	shownLine    = 120
)

// quoteMessage shows the message of an error, shortened and without control characters.
func quoteMessage(text string) string {
	if runes := []rune(text); len(runes) > shownMessage {
		text = string(runes[:shownMessage]) + "…"
	}
	return strconv.Quote(text)
}

// traceback is the end of a traceback, which follows the message on lines of its own; "" without one.
func traceback(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		return ""
	}
	var b strings.Builder
	for _, line := range lines[max(0, len(lines)-shownLines):] {
		line = strings.Map(func(c rune) rune {
			if !unicode.IsPrint(c) {
				return ' '
			}
			return c
		}, strings.TrimRight(line, " \r"))
		if runes := []rune(line); len(runes) > shownLine {
			line = string(runes[:shownLine]) + "…"
		}
		b.WriteString("\n    " + line)
	}
	return b.String()
}

// ReadFailure reads the error of a whole call, {"kind":…,"message":…} with or without a traceback. The error is of kind
// ErrBroken, ErrBusy, or ErrAnswer for a text of another form.
func ReadFailure(b []byte) error {
	r, root, err := open(b)
	if err != nil {
		return err
	}
	failed := r.failure(root, "")
	if err := r.err(); err != nil {
		return err
	}
	return failed
}
