package agent

import (
	"time"

	"github.com/reprise-rl/reprise/envs/completions"
)

// Episode is one that is not over.
type Episode struct {
	// Name is unique in its rollout.
	Name string
	Task Task
	// Answers are the answers so far, by the addresses of the calls.
	Answers map[string]completions.Completion
}

// Question asks for calls of a rollout's episodes.
type Question struct {
	// Agent is the agent's name, Rollout that of the rollout: another one ends what is left of the one before.
	Agent, Rollout string
	Limits         completions.Limits
	// Episodes are all that are not over.
	Episodes []Episode
	// Admit refuses calls that cannot be answered, as one whose prompt is too long.
	Admit func(completions.Call) *completions.Refusal
	// Wait is how long to wait if no episode calls or ends, and Gather how long for further episodes once one has.
	Wait, Gather time.Duration
	// Silence is how long an agent may do something else between an answer and its next call or its end.
	Silence time.Duration
}

// End is how an episode ended.
type End struct {
	Episode string
	Result
	// Calls are the addresses of the calls whose answers the agent got, sorted.
	Calls []string
}

// Round is what came of a question: at most one call an episode, in the order of the question.
type Round struct {
	Calls []completions.Call
	Ends  []End
}
