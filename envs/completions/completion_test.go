package completions

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const at = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestBody(t *testing.T) {
	c := Completion{
		Text: "é<", Finish: FinishStop, PromptTokens: 5, CompletionTokens: 2,
		Tokens: []Token{{Bytes: []byte("\xc3"), Logprob: -0.5}, {Bytes: []byte("\xa9<"), Text: "…", Logprob: -1e-7}, {Text: "<|end|>", Logprob: 0}},
	}
	require.NoError(t, c.Check())
	require.Equal(t, `{"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion","created":0,"model":"policy","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":"é<","refusal":null},"logprobs":null,"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, string(c.Body(at, "policy", Request{})))
	require.Contains(t, string(c.Body(at, "policy", Request{Logprobs: true})), `"logprobs":{"content":[`+
		`{"token":"`+"\ufffd"+`","logprob":-0.5,"bytes":[195],"top_logprobs":[]},{"token":"…","logprob":-1e-7,"bytes":[169,60],"top_logprobs":[]},`+
		`{"token":"<|end|>","logprob":0,"bytes":null,"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"}]`)

	c = Completion{Calls: []ToolCall{{Name: "add", Arguments: `{"a":1}`}, {Name: "add", Arguments: ``}}, Finish: FinishToolCalls, Created: 7}
	require.NoError(t, c.Check())
	require.NotEqual(t, CallID(at, 0), CallID(at, 1))
	require.Regexp(t, "^call_[0-9a-f]{24}$", CallID(at, 0))
	require.Equal(t, `{"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion","created":7,"model":"","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[`+
		`{"id":"`+CallID(at, 0)+`","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},`+
		`{"id":"`+CallID(at, 1)+`","type":"function","function":{"name":"add","arguments":""}}]},"logprobs":null,"finish_reason":"tool_calls"}],`+
		`"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, string(c.Body(at, "", Request{})))
	require.Contains(t, string(Completion{Finish: FinishLength}.Body(at, "", Request{Logprobs: true})),
		`"content":"","refusal":null},"logprobs":{"content":[],"refusal":null},"finish_reason":"length"`)
}

func TestCheck(t *testing.T) {
	call := []ToolCall{{Name: "a"}}
	for _, c := range []Completion{{Finish: FinishStop}, {Finish: FinishLength}, {Finish: FinishLength, Calls: call}, {Finish: FinishToolCalls, Calls: call}} {
		require.NoError(t, c.Check())
	}
	for _, c := range []Completion{
		{}, {Finish: "content_filter"}, {Finish: FinishStop, Calls: call}, {Finish: FinishToolCalls},
		{Finish: FinishToolCalls, Calls: make([]ToolCall, MaxCalls+1)},
		{Finish: FinishStop, Tokens: []Token{{Logprob: math.NaN()}}}, {Finish: FinishStop, Tokens: []Token{{}, {Logprob: math.Inf(-1)}}},
	} {
		require.ErrorIs(t, c.Check(), ErrCompletion)
	}
}

// streamed is what a client puts together from a stream.
type streamed struct {
	text, finish string
	calls        []ToolCall
	tokens       []logprob
	usage        *usage
	usages       int // chunks that have the field
	longest      int // the bytes of the longest event
	comments     int
}

// gather reads a stream as a client does.
func gather(t testing.TB, stream string) streamed {
	t.Helper()
	var out streamed
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	require.Equal(t, "data: [DONE]", events[len(events)-1])
	for _, event := range events[:len(events)-1] {
		if strings.HasPrefix(event, ":") {
			out.comments++
			continue
		}
		data, ok := strings.CutPrefix(event, "data: ")
		require.True(t, ok)
		require.NotContains(t, data, "\n")
		out.longest = max(out.longest, len(data))
		var chunk struct {
			ID, Object string
			Choices    []struct {
				Delta struct {
					Role, Content string
					ToolCalls     []struct {
						Index    int
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Logprobs     *logprobs
				FinishReason *string `json:"finish_reason"`
			}
			Usage json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(data), &chunk))
		require.Equal(t, ID(at), chunk.ID)
		require.Equal(t, "chat.completion.chunk", chunk.Object)
		require.Empty(t, out.usage, "usage comes last")
		if chunk.Usage != nil {
			out.usages++
			require.NoError(t, json.Unmarshal(chunk.Usage, &out.usage))
		}
		if out.usage != nil {
			require.Empty(t, chunk.Choices)
			continue
		}
		require.Len(t, chunk.Choices, 1)
		require.Empty(t, out.finish, "the reason comes after all else")
		one := chunk.Choices[0]
		out.text += one.Delta.Content
		for _, call := range one.Delta.ToolCalls {
			if call.ID != "" {
				require.Len(t, out.calls, call.Index)
				require.Equal(t, "function", call.Type)
				out.calls = append(out.calls, ToolCall{ID: call.ID, Name: call.Function.Name})
			}
			out.calls[call.Index].Arguments += call.Function.Arguments
		}
		if one.Logprobs != nil {
			out.tokens = append(out.tokens, one.Logprobs.Content...)
		}
		if one.FinishReason != nil {
			out.finish = *one.FinishReason
		}
	}
	return out
}

func TestStream(t *testing.T) {
	long := strings.Repeat("é😀", 3000)
	tokens := make([]Token, 1000)
	for i := range tokens {
		tokens[i] = Token{Bytes: []byte{byte(i)}, Logprob: -float64(i)}
	}
	for _, c := range []Completion{
		{Finish: FinishStop}, {Text: "a\n\ndata: b\r", Finish: FinishStop}, {Text: long, Finish: FinishLength, Tokens: tokens},
		{Text: "I add", Calls: []ToolCall{{Name: "add", Arguments: long}, {Name: "b", Arguments: ""}}, Finish: FinishToolCalls, Tokens: tokens[:3]},
		{Calls: []ToolCall{{Name: "add", Arguments: "{}"}}, Finish: FinishToolCalls, Tokens: tokens, PromptTokens: 3, CompletionTokens: 1000},
	} {
		require.NoError(t, c.Check())
		for _, r := range []Request{{}, {Logprobs: true}, {Usage: true}, {Logprobs: true, Usage: true}} {
			got := gather(t, string(c.Stream(at, "policy", r)))
			require.Equal(t, c.Text, got.text)
			require.Equal(t, c.Finish, got.finish)
			require.Less(t, got.longest, 16<<10)
			require.Len(t, got.calls, len(c.Calls))
			for i, call := range c.Calls {
				require.Equal(t, ToolCall{CallID(at, i), call.Name, call.Arguments}, got.calls[i])
			}
			if r.Logprobs {
				require.Equal(t, len(c.Tokens), len(got.tokens))
				if len(c.Tokens) > 0 {
					require.Equal(t, shown(c.Tokens), got.tokens)
				}
			} else {
				require.Empty(t, got.tokens)
			}
			if r.Usage {
				require.Equal(t, c.usage(), *got.usage)
			} else {
				require.Zero(t, got.usages, "a chunk without usage has no such field")
			}
		}
	}
}

// The first events, byte by byte.
func TestStreamIsPinned(t *testing.T) {
	head := `data: {"id":"` + ID(at) + `","object":"chat.completion.chunk","created":0,"model":"p","choices":[`
	require.Equal(t, head+`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n"+
		head+`{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n"+
		head+`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`+"\n\n"+
		head+`],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`+"\n\ndata: [DONE]\n\n",
		string(Completion{Text: "a", Finish: FinishStop, PromptTokens: 1, CompletionTokens: 2}.Stream(at, "p", Request{Usage: true})))
}

func TestPieces(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("😀", 2000), "a" + strings.Repeat("😀", 2000), "ab" + strings.Repeat("é", 5000), strings.Repeat("\x80", 5000)} {
		cut := pieces(text)
		require.Equal(t, text, strings.Join(cut, ""))
		for _, piece := range cut {
			require.LessOrEqual(t, len(piece), chunkBytes)
			require.Equal(t, utf8.ValidString(text), utf8.ValidString(piece))
		}
	}
}
