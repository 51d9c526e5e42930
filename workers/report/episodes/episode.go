package episodes

// Rollout is what was read of one rollout.
type Rollout struct {
	// Episodes are in the order of their rows: group by group, member by member.
	Episodes []Episode
	// Missing says what could not be read, in a fixed order.
	Missing []Missing
}

// Missing is a table or a file that could not be read.
type Missing struct {
	// Key is the object's.
	Key string
	// The role of the object in the rollout, and what cannot be shown without it.
	What string
	// Err is of kind store.ErrNotFound, ErrAltered, ErrInvalid or ErrTooLarge.
	Err error
}

// Episode is a member's whole trajectory.
type Episode struct {
	// Row is group × group size + member.
	Row, Group, Member int
	// Environment is the label of what was played; StateKey names the initial
	// state: equal keys are equal states, whatever the iteration.
	Environment, StateKey string
	// Reward is the sum of the environment's rewards, Return with the penalties and the
	// rewards in parts.
	Reward, Return float64
	// Success: the task was solved. Valid: every turn had an executable action.
	// Truncated: a limit cut a turn or the episode. Selected: the update learned
	// from the group.
	Success, Valid, Truncated, Selected bool
	Turns                               []Turn
}

// Turn is one generation and the environment's answer.
type Turn struct {
	// Prompt is the text that the context gained before the sample: the whole
	// prompt at turn 1 and, with Restart, later too.
	Prompt  string
	Restart bool
	// Before and After are the boards: the environment's texts of the state.
	// Empty if they could not be read.
	Before, After string
	// Text is what was sampled, Tokens its parts in order: the texts of the tokens
	// together are Text. Without a tokenizer there is Text, of the step table, and
	// the tokens have no texts.
	Text   string
	Tokens []Token
	// Actions are the executed actions in their canonical form, joined by " || ".
	Actions string
	// Reward is the environment's, Penalty the protocol's.
	Reward, Penalty float64
	// Parts are what the spec's rewards gave beside them, in the spec's order.
	Parts []Part
	// Executed, Effective and Invalid count actions: executed, of these effective,
	// and written but not legal.
	Executed, Effective, Invalid int
	// StateKey names the state after the turn.
	StateKey string
}

// Part is what a module of the spec's rewards gave to a turn. Its weight × value is in the
// episode's return.
type Part struct {
	Name          string
	Weight, Value float64
}

// Token is one sampled token.
type Token struct {
	ID int32
	// Text is the token's text; a character made of several tokens is the text of the
	// last one.
	Text string
	// LogProb is the sampler's, in nats: of the policy and temperature it was drawn with.
	LogProb float32
	// Advantage is what the update multiplied its ratio by. HasAdvantage is false
	// if the update did not learn from the episode.
	Advantage    float32
	HasAdvantage bool
}

// Advantage is the mean advantage of the sampled tokens; false if there are none.
func (e *Episode) Advantage() (mean float64, ok bool) {
	n := 0
	for _, t := range e.Turns {
		for _, k := range t.Tokens {
			if k.HasAdvantage {
				mean += float64(k.Advantage)
				n++
			}
		}
	}
	if n == 0 {
		return 0, false
	}
	return mean / float64(n), true
}
