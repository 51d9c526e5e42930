package completions

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// canonical is what the answer to a call depends on. The fields of these types are in the order of their names, so that
// they are written as canonical JSON (infra/store/canon) at once.
type canonical struct {
	MaxTokens   int                `json:"max_tokens"`
	Messages    []canonicalMessage `json:"messages"`
	Stop        []string           `json:"stop"`
	Temperature float64            `json:"temperature"`
	ToolChoice  string             `json:"tool_choice"`
	Tools       []canonicalTool    `json:"tools"`
}

type canonicalMessage struct {
	// Answers is the number of the call that a tool's message answers: its place among all calls of the history.
	Answers *int            `json:"answers,omitempty"`
	Calls   []canonicalCall `json:"calls"`
	Content string          `json:"content"`
	Role    string          `json:"role"`
}

type canonicalCall struct {
	Arguments string `json:"arguments"`
	Name      string `json:"name"`
}

type canonicalTool struct {
	Description string `json:"description"`
	Name        string `json:"name"`
	// Parameters are a text, in which the order of keys counts.
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
	return encode(c)
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
