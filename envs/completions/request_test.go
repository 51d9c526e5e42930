package completions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

var limits = Limits{Temperature: 1, MaxTokens: 64}

// said is a request with further fields.
func said(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + fields + `}`
}

// after is a request whose history ends with these messages.
func after(messages string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"},` + messages + `]}`
}

const (
	oneTool   = `"tools":[{"type":"function","function":{"name":"add","description":"adds","parameters":{ "type":"object", "b":1.0, "a":[] }}}]`
	called    = `{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}]}`
	calledTwo = `{"role":"assistant","tool_calls":[{"id":"x","type":"function","index":0,"function":{"name":"add","arguments":""}},` +
		`{"id":"y","type":"function","index":1,"function":{"name":"","arguments":"no JSON"}}]}`
)

// plain is what most requests below are read as.
func plain(change func(*Request)) Request {
	r := Request{
		Model: "m", Messages: []Message{{Role: "user", Content: "hi", Calls: []ToolCall{}}}, Tools: []chat.Tool{}, ToolChoice: "none",
		Temperature: 1, MaxTokens: 64, Stop: []string{},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func TestReadRequest(t *testing.T) {
	add := chat.Tool{Name: "add", Description: "adds", Parameters: json.RawMessage(`{"type":"object","b":1.0,"a":[]}`)}
	bare := func(role, content string) Message { return Message{Role: role, Content: content, Calls: []ToolCall{}} }
	for _, c := range []struct {
		name, body string
		want       func(*Request)
	}{
		{"the least", said(""), nil},
		{"blanks", " \n" + said("") + "\t", nil},
		{"any model", strings.Replace(said(""), `"m"`, `""`, 1), func(r *Request) { r.Model = "" }},
		{"null is left out", said(`"temperature":null,"max_tokens":null,"stop":null,"tools":null,"tool_choice":null,"n":null,"stream":null,` +
			`"stream_options":null,"logprobs":null,"top_logprobs":null,"user":null,"metadata":null,"store":null,"parallel_tool_calls":null`), nil},
		{"roles", after(`{"role":"developer","content":"d"},{"role":"system","content":"s"},{"role":"assistant","content":"a"}`), func(r *Request) {
			r.Messages = append(r.Messages, bare("system", "d"), bare("system", "s"), bare("assistant", "a"))
		}},
		{"parts", after(`{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text"}]}`),
			func(r *Request) { r.Messages = append(r.Messages, bare("user", "a"), bare("user", "ab")) }},
		{"empty texts", after(`{"role":"assistant","content":""},{"role":"user","content":""}`), func(r *Request) {
			r.Messages = append(r.Messages, bare("assistant", ""), bare("user", ""))
		}},
		{"escapes", after(`{"role":"user","content":"\u00e9\ud83d\ude00\n\u0000"}`), func(r *Request) {
			r.Messages = append(r.Messages, bare("user", "é😀\n\x00"))
		}},
		{"half a surrogate pair", after(`{"role":"user","content":"\ud83d"}`), func(r *Request) {
			r.Messages = append(r.Messages, bare("user", "\ufffd"))
		}},
		{"as a client sends back what it got", after(`{"role":"assistant","content":"a","refusal":null,"audio":null,"function_call":null,` +
			`"tool_calls":null,"annotations":[],"name":null}`), func(r *Request) { r.Messages = append(r.Messages, bare("assistant", "a")) }},
		{"no calls", after(`{"role":"assistant","content":"a","tool_calls":[],"annotations":null}`), func(r *Request) {
			r.Messages = append(r.Messages, bare("assistant", "a"))
		}},
		{"an empty name", after(`{"role":"user","content":"a","name":""}`), func(r *Request) { r.Messages = append(r.Messages, bare("user", "a")) }},
		{"a call", after(called + `,{"role":"tool","tool_call_id":"x","content":"1"}`), func(r *Request) {
			r.Messages = append(r.Messages, Message{Role: "assistant", Calls: []ToolCall{{"x", "add", `{"a": 1}`}}},
				Message{Role: "tool", Content: "1", CallID: "x", Calls: []ToolCall{}})
		}},
		{"calls answered in another order", after(calledTwo + `,{"role":"tool","tool_call_id":"y","content":"1"},{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":"2"}]}`),
			func(r *Request) {
				r.Messages = append(r.Messages, Message{Role: "assistant", Calls: []ToolCall{{"x", "add", ""}, {"y", "", "no JSON"}}},
					Message{Role: "tool", Content: "1", CallID: "y", Calls: []ToolCall{}}, Message{Role: "tool", Content: "2", CallID: "x", Calls: []ToolCall{}})
			}},
		{"a call without an answer, and its id again", after(called + `,{"role":"user","content":"go on"},` + called), func(r *Request) {
			call := Message{Role: "assistant", Calls: []ToolCall{{"x", "add", `{"a": 1}`}}}
			r.Messages = append(r.Messages, call, bare("user", "go on"), call)
		}},
		{"a tool", said(oneTool), func(r *Request) { r.Tools, r.ToolChoice = []chat.Tool{add}, "auto" }},
		{"a tool that may not be called", said(oneTool + `,"tool_choice":"none"`), func(r *Request) { r.Tools = []chat.Tool{add} }},
		{"a tool, auto", said(oneTool + `,"tool_choice":"auto","parallel_tool_calls":true`), func(r *Request) {
			r.Tools, r.ToolChoice = []chat.Tool{add}, "auto"
		}},
		{"the least of a tool", said(`"tools":[{"type":"function","function":{"name":"a-B_9","strict":false,"parameters":null,"description":null}}]`), func(r *Request) {
			r.Tools, r.ToolChoice = []chat.Tool{{Name: "a-B_9", Parameters: json.RawMessage(noParameters)}}, "auto"
		}},
		{"a schema's texts", said(`"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","\u0064":"<\u003e\u00e9\/","e":null,"f":{}}}}]`), func(r *Request) {
			r.Tools, r.ToolChoice = []chat.Tool{{Name: "a", Parameters: json.RawMessage(`{"type":"object","d":"<>é/","e":null,"f":{}}`)}}, "auto"
		}},
		{"auto without tools", said(`"tools":[],"tool_choice":"auto"`), nil},
		{"temperature", said(`"temperature":0.5`), func(r *Request) { r.Temperature = 0.5 }},
		{"the spec's temperature", said(`"temperature":1.0`), nil},
		{"greedy", said(`"temperature":0`), func(r *Request) { r.Temperature = 0 }},
		{"greedy below zero", said(`"temperature":-0.0`), func(r *Request) { r.Temperature = 0 }},
		{"the least temperature", said(`"temperature":1e-2`), func(r *Request) { r.Temperature = 0.01 }},
		{"max_tokens", said(`"max_tokens":1`), func(r *Request) { r.MaxTokens = 1 }},
		{"max_completion_tokens", said(`"max_completion_tokens":64`), nil},
		{"both, equal", said(`"max_completion_tokens":3,"max_tokens":3`), func(r *Request) { r.MaxTokens = 3 }},
		{"stop", said(`"stop":"\n"`), func(r *Request) { r.Stop = []string{"\n"} }},
		{"stops", said(`"stop":["b","a","b","c"]`), func(r *Request) { r.Stop = []string{"a", "b", "c"} }},
		{"no stops", said(`"stop":[]`), nil},
		{"n", said(`"n":1`), nil},
		{"stream", said(`"stream":true`), func(r *Request) { r.Stream = true }},
		{"no stream", said(`"stream":false`), nil},
		{"usage", said(`"stream_options":{"include_usage":true},"stream":true`), func(r *Request) { r.Stream, r.Usage = true, true }},
		{"no usage", said(`"stream":true,"stream_options":{"include_usage":null}`), func(r *Request) { r.Stream = true }},
		{"logprobs", said(`"logprobs":true,"top_logprobs":0`), func(r *Request) { r.Logprobs = true }},
		{"ignored", said(`"user":"u","metadata":{"a":"b"},"store":false`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, refusal := ReadRequest([]byte(c.body), limits)
			require.Nil(t, refusal)
			require.Equal(t, plain(c.want), got)
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	tool := func(function string) string { return said(`"tools":[{"type":"function","function":` + function + `}]`) }
	fields := func(fields string) string { return after(`{"role":"user","content":"a",` + fields + `}`) }
	calling := func(calls string) string { return after(`{"role":"assistant","tool_calls":[` + calls + `]}`) }
	const ok = `"id":"x","type":"function"`
	for _, c := range []struct{ body, code, param, says string }{
		{``, CodeJSON, "", "unexpected end"},
		{`{`, CodeJSON, "", "unexpected end"},
		{`[]`, CodeType, "", "want an object"},
		{`null`, CodeType, "", "want an object"},
		{said("") + `{}`, CodeJSON, "", "after top-level value"},
		{said("") + "\x00", CodeJSON, "", "after top-level value"},
		{"\ufeff" + said(""), CodeJSON, "", "byte order mark"},
		{strings.Replace(said(""), "hi", "\xff", 1), CodeJSON, "", "not UTF-8"},
		{said(`"model":"m"`), CodeValue, "model", "twice"},
		{said(`"\u006dodel":"m"`), CodeValue, "model", "twice"},
		{fields(`"content":"b"`), CodeValue, "messages[1].content", "twice"},
		{tool(`{"name":"a","parameters":{"type":"object","type":"object"}}`), CodeValue, "tools[0].function.parameters.type", "twice"},
		{said(`"metadata":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 70)), CodeJSON, "", "levels"},
		{said(`"metadata":{"a":[` + strings.Repeat(`0,`, MaxValues) + `0]}`), CodeValue, "", "values"},
		{`{"messages":[{"role":"user","content":"hi"}]}`, CodeMissing, "model", "missing"},
		{`{"model":"m"}`, CodeMissing, "messages", "missing"},
		{`{"model":"m","messages":null}`, CodeMissing, "messages", "missing"},
		{`{"model":1,"messages":[{"role":"user","content":"hi"}]}`, CodeType, "model", "1"},
		{`{"model":"` + strings.Repeat("m", 257) + `","messages":[{"role":"user","content":"hi"}]}`, CodeValue, "model", "257 bytes"},

		// Fields that are not honoured, whatever their value.
		{said(`"seed":1`), CodeUnknown, "seed", "the run's seed"},
		{said(`"top_p":1`), CodeUnknown, "top_p", "whole distribution"},
		{said(`"top_k":-1`), CodeUnknown, "top_k", "whole distribution"},
		{said(`"frequency_penalty":0`), CodeUnknown, "frequency_penalty", "own distribution"},
		{said(`"presence_penalty":0`), CodeUnknown, "presence_penalty", "own distribution"},
		{said(`"logit_bias":null`), CodeUnknown, "logit_bias", "own distribution"},
		{said(`"response_format":{"type":"text"}`), CodeUnknown, "response_format", "no form"},
		{said(`"functions":[]`), CodeUnknown, "functions", "use tools"},
		{said(`"function_call":"none"`), CodeUnknown, "function_call", "use tool_choice"},
		{said(`"reasoning_effort":"low"`), CodeUnknown, "reasoning_effort", "Fields are: model, messages"},
		{said(`"service_tier":"auto"`), CodeUnknown, "service_tier", "not honoured"},
		{said(`"modalities":["text"]`), CodeUnknown, "modalities", "not honoured"},
		{said(`"temprature":1`), CodeUnknown, "temprature", `did you mean "temperature"?`},
		{said(`"Model":"m"`), CodeUnknown, "Model", `did you mean "model"?`},
		{said(`"a b":1`), CodeUnknown, `["a b"]`, "not honoured"},

		// Values.
		{said(`"temperature":1.01`), CodeUnsupported, "temperature", "want a number from 0 to 1, the run's"},
		{said(`"temperature":-1`), CodeUnsupported, "temperature", "-1"},
		{said(`"temperature":0.001`), CodeUnsupported, "temperature", "at least 0.01"},
		{said(`"temperature":"1"`), CodeType, "temperature", "want a number"},
		{said(`"temperature":1e999`), CodeType, "temperature", "want a number"},
		{said(`"max_tokens":65`), CodeUnsupported, "max_tokens", "want 1 to 64"},
		{said(`"max_tokens":0`), CodeUnsupported, "max_tokens", "want 1 to 64"},
		{said(`"max_tokens":1.0`), CodeType, "max_tokens", "want an integer"},
		{said(`"max_completion_tokens":99999999999999999999`), CodeType, "max_completion_tokens", "want an integer"},
		{said(`"max_completion_tokens":65`), CodeUnsupported, "max_completion_tokens", "want 1 to 64"},
		{said(`"max_tokens":1,"max_completion_tokens":2`), CodeValue, "max_completion_tokens", "differ"},
		{said(`"n":2`), CodeUnsupported, "n", "want 1"},
		{said(`"n":1.0`), CodeType, "n", "want an integer"},
		{said(`"stop":["a","b","c","d","e"]`), CodeValue, "stop", "at most 4"},
		{said(`"stop":""`), CodeValue, "stop", "empty"},
		{said(`"stop":["a",""]`), CodeValue, "stop[1]", "empty"},
		{said(`"stop":[null]`), CodeType, "stop[0]", "want a text"},
		{said(`"stop":"` + strings.Repeat("a", 257) + `"`), CodeValue, "stop", "257 bytes"},
		{said(`"stream":1`), CodeType, "stream", "true or false"},
		{said(`"stream_options":{"include_usage":true}`), CodeValue, "stream_options", "with stream"},
		{said(`"stream":true,"stream_options":1`), CodeType, "stream_options", "an object"},
		{said(`"stream":true,"stream_options":{"include_obfuscation":false}`), CodeUnknown, "stream_options.include_obfuscation", "not honoured"},
		{said(`"stream":true,"stream_options":{"include_usage":"yes"}`), CodeType, "stream_options.include_usage", "true or false"},
		{said(`"logprobs":5`), CodeType, "logprobs", "true or false"},
		{said(`"logprobs":true,"top_logprobs":1`), CodeUnsupported, "top_logprobs", "want 0"},
		{said(`"top_logprobs":"0"`), CodeType, "top_logprobs", "want an integer"},
		{said(`"store":true`), CodeUnsupported, "store", "want false"},
		{said(`"user":1`), CodeType, "user", "a text"},
		{said(`"metadata":[]`), CodeType, "metadata", "an object"},
		{said(`"parallel_tool_calls":false`), CodeUnsupported, "parallel_tool_calls", "want true"},
		{said(oneTool + `,"tool_choice":"required"`), CodeUnsupported, "tool_choice", `want "none" or "auto"`},
		{said(oneTool + `,"tool_choice":{"type":"function","function":{"name":"add"}}`), CodeUnsupported, "tool_choice", "an object"},

		// Tools.
		{said(`"tools":{}`), CodeType, "tools", "an array"},
		{said(`"tools":[1]`), CodeType, "tools[0]", "an object"},
		{said(`"tools":[` + strings.Repeat(`1,`, MaxTools) + `1]`), CodeValue, "tools", "at most 128"},
		{said(`"tools":[{"type":"custom","function":{"name":"a"}}]`), CodeUnsupported, "tools[0].type", `want "function"`},
		{said(`"tools":[{"function":{"name":"a"}}]`), CodeMissing, "tools[0].type", "missing"},
		{said(`"tools":[{"type":"function"}]`), CodeMissing, "tools[0].function", "missing"},
		{said(`"tools":[{"type":"function","function":{"name":"a"},"custom":{}}]`), CodeUnknown, "tools[0].custom", "not honoured"},
		{tool(`{"description":"a"}`), CodeMissing, "tools[0].function.name", "missing"},
		{tool(`{"name":"a b"}`), CodeValue, "tools[0].function.name", "letters"},
		{tool(`{"name":"` + strings.Repeat("a", 65) + `"}`), CodeValue, "tools[0].function.name", "letters"},
		{tool(`{"name":"a"}},{"type":"function","function":{"name":"a"}`), CodeValue, "tools[1].function.name", "another tool"},
		{tool(`{"name":"a","strict":true}`), CodeUnsupported, "tools[0].function.strict", "want false"},
		{tool(`{"name":"a","parameters":[]}`), CodeType, "tools[0].function.parameters", "an object"},
		{tool(`{"name":"a","parameters":{}}`), CodeValue, "tools[0].function.parameters.type", "object"},
		{tool(`{"name":"a","parameters":{"type":"array"}}`), CodeValue, "tools[0].function.parameters.type", "object"},
		{tool(`{"name":"a","description":1}`), CodeType, "tools[0].function.description", "a text"},
		{tool(`{"name":"a","parmeters":{}}`), CodeUnknown, "tools[0].function.parmeters", `did you mean "parameters"?`},

		// Messages.
		{`{"model":"m","messages":[]}`, CodeValue, "messages", "0 messages"},
		{`{"model":"m","messages":{}}`, CodeType, "messages", "an array"},
		{after(strings.Repeat(`1,`, MaxMessages) + `1`), CodeValue, "messages", "1 to 4096"},
		{after(`"hi"`), CodeType, "messages[1]", "an object"},
		{after(`{"content":"a"}`), CodeMissing, "messages[1].role", "missing"},
		{after(`{"role":"function","content":"a"}`), CodeValue, "messages[1].role", "system, developer"},
		{after(`{"role":null,"content":"a"}`), CodeType, "messages[1].role", "a text"},
		{after(`{"role":"user"}`), CodeMissing, "messages[1].content", "missing"},
		{after(`{"role":"assistant","content":null}`), CodeMissing, "messages[1].content", "missing"},
		{after(`{"role":"user","content":1}`), CodeType, "messages[1].content", "an array of parts"},
		{after(`{"role":"user","content":[]}`), CodeValue, "messages[1].content", "empty"},
		{after(`{"role":"user","content":["a"]}`), CodeType, "messages[1].content[0]", "an object"},
		{after(`{"role":"user","content":[{"type":"text"}]}`), CodeMissing, "messages[1].content[0].text", "missing"},
		{after(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}`), CodeUnknown, "messages[1].content[0].image_url", "not honoured"},
		{after(`{"role":"user","content":[{"type":"input_text","text":"a"}]}`), CodeUnsupported, "messages[1].content[0].type", `want "text"`},
		{fields(`"name":"bob"`), CodeUnsupported, "messages[1].name", "bob"},
		{fields(`"tool_calls":[]`), CodeUnknown, "messages[1].tool_calls", "role user"},
		{fields(`"tool_call_id":"x"`), CodeUnknown, "messages[1].tool_call_id", "role user"},
		{fields(`"reasoning":"x"`), CodeUnknown, "messages[1].reasoning", "not honoured"},
		{after(`{"role":"assistant","content":"a","refusal":"no"}`), CodeUnsupported, "messages[1].refusal", "want null"},
		{after(`{"role":"assistant","content":"a","annotations":[1]}`), CodeUnsupported, "messages[1].annotations", "want null"},
		{after(`{"role":"tool","content":"a"}`), CodeMissing, "messages[1].tool_call_id", "missing"},
		{after(`{"role":"tool","content":"a","tool_call_id":"x"}`), CodeValue, "messages[1].tool_call_id", "assistant's message before"},
		{after(called + `,{"role":"tool","content":"a","tool_call_id":"y"}`), CodeValue, "messages[2].tool_call_id", `"y"`},
		{after(called + `,{"role":"tool","content":"a","tool_call_id":"x"},{"role":"tool","content":"a","tool_call_id":"x"}`), CodeValue, "messages[3].tool_call_id", "no answer yet"},
		{after(called + `,{"role":"user","content":"a"},{"role":"tool","content":"a","tool_call_id":"x"}`), CodeValue, "messages[3].tool_call_id", "assistant's message before"},
		{after(`{"role":"assistant","tool_calls":{}}`), CodeType, "messages[1].tool_calls", "an array"},
		{after(`{"role":"assistant","tool_calls":[]}`), CodeMissing, "messages[1].content", "missing"},
		{calling(strings.Repeat(`1,`, MaxCalls) + `1`), CodeValue, "messages[1].tool_calls", "at most 128"},
		{calling(`1`), CodeType, "messages[1].tool_calls[0]", "an object"},
		{calling(`{` + ok + `}`), CodeMissing, "messages[1].tool_calls[0].function", "missing"},
		{calling(`{"type":"function","function":{"name":"a","arguments":""}}`), CodeMissing, "messages[1].tool_calls[0].id", "missing"},
		{calling(`{"id":"","type":"function","function":{"name":"a","arguments":""}}`), CodeValue, "messages[1].tool_calls[0].id", "empty"},
		{calling(`{"id":"x","function":{"name":"a","arguments":""}}`), CodeMissing, "messages[1].tool_calls[0].type", "missing"},
		{calling(`{` + ok + `,"function":{"name":"a","arguments":{}}}`), CodeType, "messages[1].tool_calls[0].function.arguments", "a text"},
		{calling(`{` + ok + `,"function":{"arguments":""}}`), CodeMissing, "messages[1].tool_calls[0].function.name", "missing"},
		{calling(`{` + ok + `,"index":1,"function":{"name":"a","arguments":""}}`), CodeValue, "messages[1].tool_calls[0].index", "want 0"},
		{calling(`{` + ok + `,"function":{"name":"a","arguments":""}},{` + ok + `,"function":{"name":"a","arguments":""}}`), CodeValue, "messages[1].tool_calls[1].id", "another call"},
		{calling(`{` + ok + `,"custom":{},"function":{"name":"a","arguments":""}}`), CodeUnknown, "messages[1].tool_calls[0].custom", "not honoured"},
	} {
		name := c.body
		if len(name) > 120 {
			name = name[:120]
		}
		t.Run(name, func(t *testing.T) {
			_, refusal := ReadRequest([]byte(c.body), limits)
			require.NotNil(t, refusal)
			require.Equal(t, 400, refusal.Status)
			require.Equal(t, c.code, refusal.Code)
			require.Equal(t, c.param, refusal.Param)
			require.Contains(t, refusal.Message, c.says)
			require.Contains(t, refusal.Message, c.param)
			var written struct{ Error map[string]any }
			require.NoError(t, json.Unmarshal(refusal.body(), &written))
			require.Equal(t, map[string]any{"message": refusal.Message, "type": "invalid_request_error", "param": orNull(c.param), "code": c.code}, written.Error)
		})
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func TestLargestRequest(t *testing.T) {
	body := said("")
	body = strings.Replace(body, "hi", strings.Repeat("a", MaxBody-len(body)+2), 1)
	require.Len(t, body, MaxBody)
	_, refusal := ReadRequest([]byte(body), limits)
	require.Nil(t, refusal)
	_, refusal = ReadRequest([]byte(body+" "), limits)
	require.Equal(t, 413, refusal.Status)
	require.Equal(t, CodeTooLarge, refusal.Code)
	require.Contains(t, refusal.Error(), "4194304")
}

// The count of values is an upper bound, give or take one: no body costs more memory than it says.
func TestValues(t *testing.T) {
	for body, want := range map[string]int{`1`: 1, `[1,2]`: 3, `{"a":1,"b":[]}`: 5, `{"a,:[{\"":"[\\"}`: 3} {
		require.InDelta(t, want, values([]byte(body)), 1, body)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limits      Limits
		temperature string
		ok          bool
	}{
		{Limits{Temperature: 0.7, MaxTokens: 1}, "0.7", true},
		{Limits{Temperature: 0.7, MaxTokens: 1}, "0.71", false},
		{Limits{Temperature: 0.7, MaxTokens: 1}, "0", true},
		{Limits{Temperature: 0, MaxTokens: 1}, "0", true},
		{Limits{Temperature: 0, MaxTokens: 1}, "0.01", false},
	} {
		require.NoError(t, c.limits.Check())
		_, refusal := ReadRequest([]byte(said(`"temperature":`+c.temperature)), c.limits)
		require.Equal(t, c.ok, refusal == nil, fmt.Sprint(c, refusal))
	}
	zero := 0.0
	for _, l := range []Limits{
		{}, {Temperature: -1, MaxTokens: 1}, {Temperature: zero / zero, MaxTokens: 1}, {Temperature: 1 / zero, MaxTokens: 1},
		{Temperature: 1},
	} {
		require.Error(t, l.Check(), fmt.Sprint(l))
	}
}
