package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

// A check plays so many episodes at random, tries so many declared choices, and begins nothing of either
// after the time. It says how many there were.
const (
	randomEpisodes  = 256
	declaredChoices = 512
	measuringTime   = 10 * time.Second
)

// otherChances is how many members of a group a check begins beside the first.
const otherChances = 3

// beginnings compares the beginnings of one instance under several chances: the members of a group share
// their prompt. It also finds episodes that end before their first turn, which a run counts as broken.
func (c *checker) beginnings(paths []path) {
	problem := ""
	for i, p := range paths {
		asked := make([]Asked, otherChances)
		for k := range asked {
			chance := draw.Address{Purpose: draw.Chance, Group: int64(i), Member: int64(k + 1)}
			asked[k] = Asked{Instance: p.asked[0].Instance, Chance: Number(chance)}
		}
		got, err := c.second.Play(c.ctx, asked)
		for k, a := range got {
			if err == nil {
				err = a.Err
			}
			where := fmt.Sprintf("instance %d under the chances %d and %d", asked[k].Instance, p.asked[0].Chance, asked[k].Chance)
			switch {
			case problem != "" || err != nil:
			case a.Observation != p.answers[0].Observation:
				problem = fmt.Sprintf("%s begins with %s and %s; the beginning of an episode must come from the instance alone",
					where, strict.Quote(p.answers[0].Observation), strict.Quote(a.Observation))
			case a.Done:
				problem = where + ": the episode had ended before its first turn"
			}
		}
		if err != nil && problem == "" {
			problem = err.Error()
		}
	}
	c.add("a group's episodes begin alike, and none has ended at its beginning", problem, "")
}

// choices are the actions that an answer names, or else the description.
func (c *checker) choices(a Answer) []string {
	if a.Choices == nil {
		return c.first.Description.Actions
	}
	return a.Choices
}

// seen is what was met so far.
type seen struct {
	episodes, choices int
	observations      map[string]bool
	actions           map[string]bool
}

func (s *seen) add(answers ...Answer) {
	for _, a := range answers {
		s.observations[a.Observation] = true
		for _, step := range a.Steps {
			s.observations[step.Observation] = true
			s.actions[step.Action] = true
		}
	}
}

// measure plays on and compares the tokens of all that was met with what a run has room for.
func (c *checker) measure(paths []path) {
	s := &seen{observations: map[string]bool{}, actions: map[string]bool{}}
	for _, action := range c.first.Description.Actions {
		s.actions[action] = true
	}
	for _, p := range paths {
		s.episodes++
		s.add(p.answers...)
	}
	until := time.Now().Add(measuringTime)
	problem := ""
	if err := c.atRandom(s, until); err != nil {
		problem = err.Error()
	} else if err := c.declared(s, paths, until); err != nil {
		problem = err.Error()
	}
	c.add("more episodes", problem, fmt.Sprintf("%d episodes at random and %d declared choices", s.episodes, s.choices))
	c.widths(s)
}

// atRandom plays more episodes with actions drawn at random.
func (c *checker) atRandom(s *seen, until time.Time) error {
	for s.episodes < randomEpisodes && time.Now().Before(until) {
		paths, err := c.record(s.episodes, min(MaxEpisodes, randomEpisodes-s.episodes), until)
		if err != nil {
			return err
		}
		for _, p := range paths {
			s.add(p.answers...)
		}
		s.episodes += len(paths)
	}
	return nil
}

// declared tries each choice in the states of the recorded episodes, their beginnings first.
func (c *checker) declared(s *seen, paths []path, until time.Time) error {
	var asked []Asked
	for turn := 0; len(asked) < declaredChoices; turn++ {
		left := false
		for _, p := range paths {
			if turn+1 >= len(p.asked) || turn >= len(p.answers) {
				continue // nothing was played in that state
			}
			left = true
			state := p.asked[turn+1]
			for _, choice := range c.choices(p.answers[turn]) {
				state.Next = []string{choice}
				asked = append(asked, state)
			}
		}
		if !left {
			break
		}
	}
	for chunk := range slices.Chunk(asked[:min(len(asked), declaredChoices)], MaxEpisodes) {
		if time.Now().After(until) {
			break
		}
		answers, err := c.second.Play(c.ctx, chunk)
		if err != nil {
			return err
		}
		if err := firstOf(chunk, answers); err != nil {
			return err
		}
		s.add(answers...)
		s.choices += len(chunk)
	}
	return nil
}

// widths compares the observations with the widest ones of the description, as a run does: in tokens.
func (c *checker) widths(s *seen) {
	const part = "no observation is wider than widest"
	tok, d := c.options.Tokenizer, c.first.Description
	allowed, err := d.WidestTokens(tok)
	if err != nil {
		c.add(part, err.Error(), "")
		return
	}
	texts := slices.Sorted(maps.Keys(s.observations))
	tokens, wider := make(map[string]int, len(texts)), 0
	for _, text := range texts {
		if tokens[text], err = Tokens(tok, text); err != nil {
			c.add(part, err.Error(), "")
			return
		}
		if tokens[text] > allowed {
			wider++
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(tokens[b], tokens[a]) })
	widest := texts[0]
	note := fmt.Sprintf("%d tokens of %s are allowed, the widest met has %d and %d bytes: a margin of %d; %d different observations",
		allowed, c.options.Model, tokens[widest], len(widest), allowed-tokens[widest], len(texts))
	problem := ""
	if wider > 0 {
		problem = fmt.Sprintf("the observation %s has %d tokens, the widest of the description %d: add it to widest; %d of %d observations are wider, "+
			"and a run pauses once more than environment.broken_share of its episodes meet one",
			strict.Quote(widest), tokens[widest], allowed, wider, len(texts))
	}
	c.add(part, problem, note)
	if c.options.Prompts != nil && wider == 0 { // what is too wide has no room either
		met := Met{Widest: texts[:min(len(texts), MaxWidest)], Actions: slices.Sorted(maps.Keys(s.actions))}
		note, problem := c.options.Prompts(met)
		c.add("prompts and replies have room", problem, note)
	}
}
