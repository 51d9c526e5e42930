package completions

import (
	"bytes"
	"unicode/utf8"
)

// A chunk has at most so many bytes of text, and so many tokens: some clients read lines of 64 KiB at most.
const (
	chunkBytes  = 2048
	chunkTokens = 64
)

// done ends a stream.
const done = "[DONE]"

// delta is what a chunk adds to the message.
type delta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

type callDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function functionDelta `json:"function"`
}

type functionDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// Stream is the answer to a call with stream: server-sent events, up to the one that says [DONE]. The completion passes
// Check.
//
// The first chunk has the role. Those that follow have the text, then a call of a tool after the other. With logprobs
// each chunk has some of the tokens; they are in order, but a chunk's tokens need not be those of its text. The last
// chunk has the finish_reason; the usage, if it was asked for, comes in one more without choices.
func (c Completion) Stream(address, model string, r Request) []byte {
	var b bytes.Buffer
	chunk := answer{ID: ID(address), Object: "chat.completion.chunk", Created: c.Created, Model: model}
	if r.Usage {
		chunk.Usage = (*usage)(nil) // null, in all but the last
	}
	tokens := c.Tokens
	write := func(d delta, finish *string) {
		one := choice{Delta: d, FinishReason: finish}
		if n := min(len(tokens), chunkTokens); r.Logprobs && n > 0 && d.Role == "" && finish == nil {
			one.Logprobs = &logprobs{Content: shown(tokens[:n])}
			tokens = tokens[n:]
		}
		chunk.Choices = []choice{one}
		event(&b, encode(chunk))
	}
	first := delta{Role: "assistant"}
	if len(c.Calls) == 0 {
		first.Content = new(string)
	}
	write(first, nil)
	for _, piece := range pieces(c.Text) {
		write(delta{Content: &piece}, nil)
	}
	for i, call := range c.Calls {
		write(delta{ToolCalls: []callDelta{{
			Index: i, ID: CallID(address, i), Type: "function", Function: functionDelta{Name: call.Name},
		}}}, nil)
		for _, piece := range pieces(call.Arguments) {
			write(delta{ToolCalls: []callDelta{{Index: i, Function: functionDelta{Arguments: piece}}}}, nil)
		}
	}
	for r.Logprobs && len(tokens) > 0 {
		write(delta{}, nil)
	}
	write(delta{}, &c.Finish)
	if r.Usage {
		u := c.usage()
		chunk.Choices, chunk.Usage = []choice{}, &u
		event(&b, encode(chunk))
	}
	event(&b, []byte(done))
	return b.Bytes()
}

// event writes a server-sent event.
func event(b *bytes.Buffer, data []byte) {
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
}

// pieces cuts a text between characters.
func pieces(text string) []string {
	var out []string
	for len(text) > 0 {
		n := min(len(text), chunkBytes)
		for n < len(text) && n > chunkBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}
