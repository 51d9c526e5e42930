package completions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// canonical is what the answer to a call depends on.
type canonical struct {
	Messages    []canonicalMessage `json:"messages"`
	Tools       []canonicalTool    `json:"tools"`
	ToolChoice  string             `json:"tool_choice"`
	Temperature float64            `json:"temperature"`
	MaxTokens   int                `json:"max_tokens"`
	Stop        []string           `json:"stop"`
}

type canonicalMessage struct {
	Role    string          `json:"role"`
	Content string          `json:"content"`
	Calls   []canonicalCall `json:"calls"`
	// Answers is the number of the call that a tool's message answers: its place among all calls of the history.
	Answers *int `json:"answers,omitempty"`
}

type canonicalCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type canonicalTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters are a text, so that canonical JSON keeps the order of their keys.
	Parameters string `json:"parameters"`
}

// Canonical is what the answer to a call depends on, as canonical JSON: requests that mean the same have the same
// bytes. It has messages, tools, tool_choice, temperature, max_tokens and stop. The ids of calls are not in it, because an
// agent may draw its own: a tool's message has the number of the call that it answers.
func (r Request) Canonical() []byte {
	c := canonical{
		Messages: make([]canonicalMessage, len(r.Messages)), Tools: make([]canonicalTool, len(r.Tools)),
		ToolChoice: r.ToolChoice, Temperature: r.Temperature, MaxTokens: r.MaxTokens, Stop: append([]string{}, r.Stop...),
	}
	calls, numbers := 0, map[string]int{}
	for i, m := range r.Messages {
		out := canonicalMessage{Role: m.Role, Content: m.Content, Calls: make([]canonicalCall, len(m.Calls))}
		for k, call := range m.Calls {
			out.Calls[k] = canonicalCall{Name: call.Name, Arguments: call.Arguments}
			numbers[call.ID] = calls
			calls++
		}
		if m.Role == "tool" {
			number := numbers[m.CallID]
			out.Answers = &number
		}
		c.Messages[i] = out
	}
	for i, tool := range r.Tools {
		c.Tools[i] = canonicalTool{Name: tool.Name, Description: tool.Description, Parameters: string(tool.Parameters)}
	}
	b, err := canon.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("completions: canonical request: %v", err)) // texts and finite numbers: ReadRequest
	}
	return b
}

// Address is the address of a call in its episode: 64 hexadecimal digits. again is how often an equal request came before.
func Address(r Request, again int) string {
	return address(sha256.Sum256(r.Canonical()), again)
}

// address is the SHA-256 of the digest of the canonical request, in hexadecimal digits, a space and again in decimal digits.
func address(content [sha256.Size]byte, again int) string {
	sum := sha256.Sum256([]byte(hex.EncodeToString(content[:]) + " " + strconv.Itoa(again)))
	return hex.EncodeToString(sum[:])
}
