package starlark

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
)

// Question is what is asked of a process that runs programs.
type Question struct {
	Program string `json:"program"`
	Limits  Limits `json:"limits"`
	// Expressions are evaluated after the program: see Evaluate. Without any, the answer is what the program prints.
	Expressions []string `json:"expressions,omitempty"`
}

// Ask is the question as an outside tool gets it, of the kind Name.
func (q Question) Ask() envs.ToolQuestion {
	body, err := json.Marshal(q)
	if err != nil {
		panic(fmt.Sprintf("starlark: encode a question: %v", err)) // texts and numbers
	}
	return envs.ToolQuestion{Kind: Name, Body: body}
}

// ReadQuestion reads what Ask wrote.
func ReadQuestion(asked envs.ToolQuestion) (Question, error) {
	var q Question
	if err := json.Unmarshal(asked.Body, &q); err != nil {
		return q, fmt.Errorf("read the question to %s: %w", asked.Kind, err)
	}
	return q, nil
}
