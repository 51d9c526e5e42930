package completions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Why an answer ended.
const (
	// FinishStop: the policy ended its turn, or wrote a text at which to stop.
	FinishStop = "stop"
	// FinishLength: as many tokens were sampled as the call allows.
	FinishLength = "length"
	// FinishToolCalls: the policy ended its turn and called tools in it.
	FinishToolCalls = "tool_calls"
)

// Completion is the answer to a call. What a client gets is a function of it, of the call's address and of how the
// client asked for it (stream, logprobs).
type Completion struct {
	// Text is the reply without its calls.
	Text string `json:"text"`
	// Calls are the calls of tools, without ids.
	Calls []ToolCall `json:"calls"`
	// Finish is FinishStop, FinishLength or FinishToolCalls.
	Finish string `json:"finish"`
	// Tokens are all sampled tokens in their order, those of calls too. A client gets them if it asks for logprobs.
	Tokens []Token `json:"tokens"`
	// PromptTokens and CompletionTokens are how many the prompt had and how many were sampled.
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	// Created is the time that the answer names, in seconds since 1970. A fixed one, as 0, keeps answers equal.
	Created int64 `json:"created"`
}

// Token is a sampled token.
type Token struct {
	// Bytes are what it writes; nil for a special token.
	Bytes []byte `json:"bytes"`
	// Text is how it is shown. If it is empty, it is Bytes, with U+FFFD for what is no UTF-8.
	Text string `json:"text,omitempty"`
	// Logprob is the natural logarithm of the probability with which it was sampled; finite.
	Logprob float64 `json:"logprob"`
}

// ErrCompletion is the kind of the error about an answer that no client can be given.
var ErrCompletion = errors.New("not an answer to a call")

// Check reports what OpenAI's form cannot say. The error is of kind ErrCompletion.
func (c Completion) Check() error {
	switch c.Finish {
	case FinishStop:
		if len(c.Calls) > 0 {
			return fmt.Errorf("%w: it ends with %q and has %d calls", ErrCompletion, c.Finish, len(c.Calls))
		}
	case FinishToolCalls:
		if len(c.Calls) == 0 {
			return fmt.Errorf("%w: it ends with %q and has no calls", ErrCompletion, c.Finish)
		}
	case FinishLength:
	default:
		return fmt.Errorf("%w: it ends with %q", ErrCompletion, c.Finish)
	}
	if len(c.Calls) > MaxCalls {
		return fmt.Errorf("%w: %d calls, want at most %d", ErrCompletion, len(c.Calls), MaxCalls)
	}
	for i, t := range c.Tokens {
		if math.IsNaN(t.Logprob) || math.IsInf(t.Logprob, 0) {
			return fmt.Errorf("%w: token %d has the log-probability %v", ErrCompletion, i, t.Logprob)
		}
	}
	return nil
}

// ID is the id of the answer to the call at an address.
func ID(address string) string { return "chatcmpl-" + prefix(address, idDigits) }

// CallID is the id of the call of a tool with an index, in the answer to the call at an address.
func CallID(address string, index int) string {
	sum := sha256.Sum256([]byte(address + " " + strconv.Itoa(index)))
	return "call_" + prefix(hex.EncodeToString(sum[:]), idDigits)
}

// idDigits is how many hexadecimal digits an id has.
const idDigits = 24

func prefix(s string, n int) string { return s[:min(n, len(s))] }

// answer is a completion in OpenAI's form; chunks of a stream have Delta in place of Message.
type answer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   any      `json:"usage,omitempty"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      any       `json:"message,omitempty"`
	Delta        any       `json:"delta,omitempty"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

type reply struct {
	Role      string      `json:"role"`
	Content   *string     `json:"content"`
	Refusal   *string     `json:"refusal"`
	ToolCalls []replyCall `json:"tool_calls,omitempty"`
}

type replyCall struct {
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function replyFunction `json:"function"`
}

type replyFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type logprobs struct {
	Content []logprob `json:"content"`
	Refusal []logprob `json:"refusal"`
}

type logprob struct {
	Token       string    `json:"token"`
	Logprob     float64   `json:"logprob"`
	Bytes       []int     `json:"bytes"`
	TopLogprobs []logprob `json:"top_logprobs"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Body is the answer to a call without stream, in JSON. The completion passes Check.
func (c Completion) Body(address, model string, r Request) []byte {
	message := reply{Role: "assistant"}
	if c.Text != "" || len(c.Calls) == 0 {
		message.Content = &c.Text
	}
	for i, call := range c.Calls {
		message.ToolCalls = append(message.ToolCalls, replyCall{
			ID: CallID(address, i), Type: "function", Function: replyFunction{call.Name, call.Arguments},
		})
	}
	one := choice{Message: message, FinishReason: &c.Finish}
	if r.Logprobs {
		one.Logprobs = &logprobs{Content: shown(c.Tokens)}
	}
	return encode(answer{
		ID: ID(address), Object: "chat.completion", Created: c.Created, Model: model, Choices: []choice{one}, Usage: c.usage(),
	})
}

func (c Completion) usage() usage {
	return usage{c.PromptTokens, c.CompletionTokens, c.PromptTokens + c.CompletionTokens}
}

// shown are tokens in OpenAI's form; not nil.
func shown(tokens []Token) []logprob {
	out := make([]logprob, len(tokens))
	for i, t := range tokens {
		text := t.Text
		if text == "" {
			text = string(t.Bytes)
		}
		out[i] = logprob{Token: strings.ToValidUTF8(text, "\ufffd"), Logprob: t.Logprob, TopLogprobs: []logprob{}}
		if t.Bytes != nil {
			out[i].Bytes = make([]int, len(t.Bytes))
			for k, b := range t.Bytes {
				out[i].Bytes[k] = int(b)
			}
		}
	}
	return out
}
