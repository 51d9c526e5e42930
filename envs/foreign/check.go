package foreign

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

// Finding is the outcome of one part of a check.
type Finding struct {
	// Part is what was checked, in a few words.
	Part string `json:"part"`
	// Problem is empty if the part passed; otherwise it says what is wrong and what to do.
	Problem string `json:"problem,omitempty"`
	// Note is a figure to know; may be empty.
	Note string `json:"note,omitempty"`
}

// illegalAction is the illegal action of a check. No environment names an action so.
const illegalAction = "no such action 7f3a91"

// CheckOptions say how much a check asks, and what it measures with.
type CheckOptions struct {
	// Instances is how many episodes are recorded and asked about again, 1 to MaxEpisodes.
	Instances int
	// Turns is how many turns are timed, at most; 0 is none.
	Turns int
	// Tokenizer is the run's, and Model is what it is called in notes. Observations are as wide for the
	// check as they are for a run with this tokenizer.
	Tokenizer envs.Tokenizer
	Model     string
	// Prompts compares what was met with what a run has room for; nil compares nothing.
	Prompts func(Met) (note, problem string)
	// Report gets each finding as soon as it is known; may be nil.
	Report func(Finding)
}

// Met is what a check saw of an environment.
type Met struct {
	// Widest are observations, those with most tokens first, at most MaxWidest.
	Widest []string
	// Actions are the names of all actions that were legal anywhere, sorted.
	Actions []string
}

// Check asks first and second, two processes of one environment, about some instances
// and compares their answers: twice, in the other process, in reverse order, one by one,
// and from every prefix of their actions. It plays more episodes to see how wide observations are.
// An error is a server that could not be asked at all; what it does wrong are findings.
func Check(ctx context.Context, first, second *Server, o CheckOptions) ([]Finding, error) {
	c := checker{ctx: ctx, first: first, second: second, options: o}
	if o.Instances < 1 || o.Instances > MaxEpisodes {
		return nil, fmt.Errorf("check an environment: %d instances, want 1 to %d", o.Instances, MaxEpisodes)
	}
	c.described()
	paths, err := c.record(0, o.Instances, time.Time{})
	if err != nil {
		c.add("play", err.Error(), "")
		return c.findings, ctx.Err()
	}
	steps, took := 0, c.took
	for _, p := range paths {
		steps += len(p.played)
	}
	if steps == 0 {
		c.add("play", "no action of any instance was legal; the description's actions or the choices must name legal actions", "")
		return c.findings, nil
	}
	c.add("play", "", fmt.Sprintf("%d instances, %d actions, %.1f ms an action", o.Instances, steps, float64(took.Microseconds())/1000/float64(steps)))
	c.repeated(paths)
	c.prefixes(paths)
	c.illegal(paths)
	c.beginnings(paths)
	c.seeds(paths)
	c.measure(paths)
	if o.Turns > 0 {
		c.turns(o.Turns)
	}
	return c.findings, ctx.Err()
}

type checker struct {
	ctx           context.Context
	first, second *Server
	options       CheckOptions
	findings      []Finding
	took          time.Duration
}

// path is an episode as it was recorded: what was asked at each turn and what was answered.
type path struct {
	asked   []Asked
	answers []Answer
	played  []string
}

func (c *checker) add(part, problem, note string) {
	f := Finding{Part: part, Problem: problem, Note: note}
	c.findings = append(c.findings, f)
	if c.options.Report != nil && c.ctx.Err() == nil {
		c.options.Report(f)
	}
}

// described compares the descriptions of the two processes.
func (c *checker) described() {
	problem := ""
	if !reflect.DeepEqual(c.first.Description, c.second.Description) {
		problem = "two processes describe the environment differently; a description must depend on the options alone"
	}
	c.add("describe", problem, fmt.Sprintf("version %s", strict.Quote(c.first.Description.Version)))
}

// record plays n instances in the first process, from the one with a number on, each to its end or
// to a time, with actions drawn by address. A zero time is none.
func (c *checker) record(from, n int, until time.Time) ([]path, error) {
	start := time.Now()
	paths := make([]path, n)
	for i := range paths {
		paths[i].asked = []Asked{{
			Instance: Number(draw.Address{Purpose: draw.Instance, Group: int64(from + i)}),
			Chance:   Number(draw.Address{Purpose: draw.Chance, Group: int64(from + i)}),
		}}
	}
	for {
		var batch []Asked
		var of []int
		for i, p := range paths {
			if len(p.answers) < len(p.asked) {
				batch, of = append(batch, p.asked[len(p.asked)-1]), append(of, i)
			}
		}
		if len(batch) == 0 || !until.IsZero() && time.Now().After(until) {
			c.took = time.Since(start)
			return paths, nil
		}
		answers, err := c.first.Play(c.ctx, batch)
		if err != nil {
			return nil, err
		}
		if err := firstOf(batch, answers); err != nil {
			return nil, err
		}
		for k, a := range answers {
			c.extend(&paths[of[k]], a, from+of[k])
		}
	}
}

// firstOf is the first error of answers, with its question and how many others there are; nil if there is none.
func firstOf(asked []Asked, answers []Answer) error {
	var err error
	failed, where := 0, ""
	for k, a := range answers {
		if a.Err == nil {
			continue
		}
		if failed++; err == nil {
			err = a.Err
			where = fmt.Sprintf("instance %d after the actions %q, asked %q", asked[k].Instance, asked[k].Played, asked[k].Next)
		}
	}
	if failed > 1 {
		where = fmt.Sprintf("%d of %d instances, first %s", failed, len(answers), where)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// extend records an answer and asks for the next action, if there is one.
func (c *checker) extend(p *path, a Answer, instance int) {
	last := p.asked[len(p.asked)-1]
	p.answers = append(p.answers, a)
	for _, s := range a.Steps {
		p.played = append(p.played, s.Action)
	}
	choices := c.choices(a)
	if a.Done || len(choices) == 0 || len(p.asked) > c.first.Description.MaxActions {
		return
	}
	pick := draw.Address{Purpose: draw.Sample, Group: int64(instance), Turn: int64(len(p.asked))}
	p.asked = append(p.asked, Asked{
		Instance: last.Instance, Chance: last.Chance, Played: slices.Clone(p.played), Chain: a.Chain,
		Next: []string{choices[pick.Below(len(choices))]},
	})
}

// ask asks a server and says in words how its answers differ from the recorded ones.
func (c *checker) ask(s *Server, asked []Asked, want []Answer) string {
	got, err := s.Play(c.ctx, asked)
	if err != nil {
		return err.Error()
	}
	for i := range got {
		if problem := differs(asked[i], want[i], got[i]); problem != "" {
			return problem
		}
	}
	return ""
}

// differs says how an answer differs from the recorded one; "" if it does not.
func differs(asked Asked, want, got Answer) string {
	where := fmt.Sprintf("instance %d after the actions %q", asked.Instance, append(slices.Clone(asked.Played), asked.Next...))
	switch {
	case got.Err != nil:
		return where + ": " + got.Err.Error()
	case got.Observation != want.Observation:
		return fmt.Sprintf("%s: the observation was %s, then %s", where, strict.Quote(want.Observation), strict.Quote(got.Observation))
	case !reflect.DeepEqual(got, want):
		return where + ": the answers differ in choices, steps, reward, done or success"
	}
	return ""
}

const deterministic = "; all that is random must come from instance and chance, and nothing may be kept from one request to the next"

// repeated asks for the same answers again.
func (c *checker) repeated(paths []path) {
	var asked []Asked
	var want []Answer
	for _, p := range paths {
		asked, want = append(asked, p.asked[len(p.answers)-1]), append(want, p.answers[len(p.answers)-1])
	}
	reversed, backwards := slices.Clone(asked), slices.Clone(want)
	slices.Reverse(reversed)
	slices.Reverse(backwards)
	for _, way := range []struct {
		part string
		ask  func() string
	}{
		{"the same answers twice", func() string { return c.ask(c.first, asked, want) }},
		{"the same answers from another process", func() string { return c.ask(c.second, asked, want) }},
		{"the same answers in another order", func() string { return c.ask(c.first, reversed, backwards) }},
		{"the same answers one by one", func() string {
			for i := range asked {
				if problem := c.ask(c.second, asked[i:i+1], want[i:i+1]); problem != "" {
					return problem
				}
			}
			return ""
		}},
	} {
		problem := way.ask()
		if problem != "" {
			problem += deterministic
		}
		c.add(way.part, problem, "")
	}
}

// prefixes asks for every turn again, each with the actions before it.
func (c *checker) prefixes(paths []path) {
	problem := ""
	for _, p := range paths {
		for t := range p.answers {
			if problem == "" {
				if problem = c.ask(c.second, p.asked[t:t+1], p.answers[t:t+1]); problem != "" {
					problem += deterministic
				}
			}
		}
	}
	c.add("every turn replayed from the actions before it", problem, "")

	// A wrong chain must be found: otherwise drift goes unseen.
	for _, p := range paths {
		if len(p.played) == 0 {
			continue
		}
		asked := p.asked[1]
		asked.Chain, asked.Next = Begin("another beginning"), nil
		problem := ""
		if got, err := c.first.Play(c.ctx, []Asked{asked}); err != nil {
			problem = err.Error()
		} else if !errors.Is(got[0].Err, ErrDrift) {
			problem = "a chain that is not the episode's was taken; replay the actions played, compare the chain and answer drift"
		}
		c.add("a chain of another episode is answered with drift", problem, "")
		return
	}
}

// illegal plays an empty action and one that no environment has. Both must be invalid where
// the description names the actions.
func (c *checker) illegal(paths []path) {
	begin := paths[0].answers[0]
	if begin.Done {
		return
	}
	asked := paths[0].asked[0]
	asked.Chain = begin.Chain
	problem := ""
	for _, text := range []string{"", illegalAction} {
		asked.Next = []string{text}
		got, err := c.first.Play(c.ctx, []Asked{asked})
		switch {
		case problem != "":
		case err != nil:
			problem = fmt.Sprintf("the action %q: %s", text, err)
		case got[0].Err != nil:
			problem = fmt.Sprintf("the action %q: %s; an action that is not legal is counted in invalid", text, got[0].Err)
		case got[0].Invalid == 0 && c.first.Description.Actions != nil:
			problem = fmt.Sprintf("the action %q was executed; an action that is not legal is counted in invalid and changes nothing", text)
		case got[0].Invalid == 1 && got[0].Observation != begin.Observation:
			problem = fmt.Sprintf("the action %q was invalid and changed the observation", text)
		}
	}
	c.add("illegal and empty actions are counted and change nothing", problem, "")
}

// seeds looks for a difference between instances.
func (c *checker) seeds(paths []path) {
	if c.first.Description.Instances == 1 || len(paths) < 2 {
		return
	}
	// Instances are compared under the same actions: those of the first.
	asked := make([]Asked, len(paths))
	for i, p := range paths {
		asked[i] = p.asked[0]
	}
	var seen [][]Answer
	for _, one := range asked {
		seen = append(seen, c.under(one, paths[0].played))
	}
	problem := "every instance and chance gives the same episode; a description with instances other than 1 promises different ones"
	for _, answers := range seen[1:] {
		if !reflect.DeepEqual(answers, seen[0]) {
			problem = ""
		}
	}
	c.add("instances differ", problem, "")
}

// under plays an episode with given actions, as far as it goes.
func (c *checker) under(asked Asked, actions []string) []Answer {
	var answers []Answer
	for i := 0; ; i++ {
		got, err := c.first.Play(c.ctx, []Asked{asked})
		if err != nil || got[0].Err != nil {
			return answers
		}
		answers = append(answers, got[0])
		if i == len(actions) || got[0].Done {
			return answers
		}
		for _, s := range got[0].Steps {
			asked.Played = append(slices.Clone(asked.Played), s.Action)
		}
		asked.Chain, asked.Next = got[0].Chain, []string{actions[i]}
	}
}
