package completions

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

func read(t testing.TB, body string) Request {
	t.Helper()
	r, refusal := ReadRequest([]byte(body), limits)
	if refusal != nil {
		t.Fatal(refusal, body)
	}
	return r
}

// What means the same has the same address.
func TestEqualAddresses(t *testing.T) {
	answered := after(called + `,{"role":"tool","tool_call_id":"x","content":"1"}`)
	for _, same := range [][]string{
		{
			said(""), strings.Replace(said(""), `"m"`, `"other"`, 1), said(`"stream":true,"stream_options":{"include_usage":true}`),
			said(`"logprobs":true`), said(`"user":"u"`), said(`"temperature":1`), said(`"max_tokens":64`), said(`"max_completion_tokens":64`),
			said(`"stop":[]`), said(`"tools":[]`), said(`"tool_choice":"auto"`), said(`"n":1`),
			`{"messages":[{"content":[{"type":"text","text":"h\u0069"}],"role":"user"}],"model":"m"}`,
		},
		{after(`{"role":"developer","content":"a"}`), after(`{"role":"system","content":"a"}`)},
		{after(`{"role":"assistant","content":"a"}`), after(`{"role":"assistant","content":"a","tool_calls":[]}`)},
		{answered, strings.ReplaceAll(answered, `"x"`, `"another id"`), strings.Replace(answered, "null", `""`, 1)},
		{said(`"stop":["a","b"]`), said(`"stop":["b","a","a"]`)},
		{said(oneTool), said(strings.ReplaceAll(oneTool, " ", "")), said(oneTool + `,"tool_choice":"auto"`)},
	} {
		for _, body := range same {
			require.Equal(t, Address(read(t, same[0]), 3), Address(read(t, body), 3), body)
		}
	}
}

// What may have another answer has another address.
func TestDifferentAddresses(t *testing.T) {
	seen := map[string]string{}
	two := after(calledTwo + `,{"role":"tool","tool_call_id":"x","content":"1"}`)
	for _, body := range []string{
		said(""), strings.Replace(said(""), "hi", "ho", 1), strings.Replace(said(""), "user", "system", 1), after(`{"role":"user","content":""}`),
		after(`{"role":"assistant","content":""}`), said(`"temperature":0.5`), said(`"max_tokens":63`), said(`"stop":"a"`), said(`"stop":["a","b"]`),
		said(oneTool), said(oneTool + `,"tool_choice":"none"`), said(strings.Replace(oneTool, "adds", "subtracts", 1)),
		said(strings.Replace(oneTool, "1.0", "1", 1)), said(strings.Replace(oneTool, `"b":1.0, "a":[]`, `"a":[], "b":1.0`, 1)),
		after(called), after(strings.Replace(called, `\"a\": 1`, `\"a\":1`, 1)), two, strings.Replace(two, `_id":"x"`, `_id":"y"`, 1),
	} {
		a := Address(read(t, body), 0)
		require.Len(t, a, 64)
		require.Empty(t, seen[a], body)
		seen[a] = body
		require.NotEqual(t, a, Address(read(t, body), 1))
	}
}

// Recorded answers are found by these addresses: a change of the canonical form loses them.
func TestPinnedAddress(t *testing.T) {
	r := read(t, `{"model":"m",`+oneTool+`,"stop":"é<","temperature":0.5,"messages":[{"role":"user","content":"a\u0008\u2028"},`+called+
		`,{"role":"tool","tool_call_id":"x","content":"1"}]}`)
	require.Equal(t, `{"max_tokens":64,"messages":[{"calls":[],"content":"a\b\u2028","role":"user"},`+
		`{"calls":[{"arguments":"{\"a\": 1}","name":"add"}],"content":"","role":"assistant"},{"answers":0,"calls":[],"content":"1","role":"tool"}],`+
		`"stop":["é<"],"temperature":0.5,"tool_choice":"auto","tools":[{"description":"adds","name":"add","parameters":"{\"type\":\"object\",\"b\":1.0,\"a\":[]}"}]}`,
		string(r.Canonical()))
	require.Equal(t, "96970bafb0a76e6bd26f2ca29acfda80c78e889b57008fb3e56ebf5ad07b9e60", Address(r, 2))
}

// written is a request as a client would send it: parts and blanks in one of several ways that mean the same.
func written(r Request, rng *rand.Rand) []byte {
	messages := []any{}
	for _, m := range r.Messages {
		out := map[string]any{"role": m.Role, "content": m.Content}
		if rng.IntN(2) == 0 {
			out["content"] = []any{map[string]any{"type": "text", "text": m.Content}}
		}
		if m.Role == "tool" {
			out["tool_call_id"] = "again " + m.CallID
		}
		calls := []any{}
		for _, c := range m.Calls {
			calls = append(calls, map[string]any{"id": "again " + c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
		}
		if len(calls) > 0 || m.Role == "assistant" && rng.IntN(2) == 0 {
			out["tool_calls"] = calls
		}
		messages = append(messages, out)
	}
	tools := []any{}
	for _, tool := range r.Tools {
		tools = append(tools, map[string]any{"type": "function", "function": tool})
	}
	body := map[string]any{
		"model": "another", "messages": messages, "tools": tools, "tool_choice": r.ToolChoice, "temperature": r.Temperature,
		"max_completion_tokens": r.MaxTokens, "stop": r.Stop,
	}
	indent := strings.Repeat(" ", rng.IntN(3))
	b, err := json.MarshalIndent(body, "", indent)
	if err != nil {
		panic(err)
	}
	return b
}

func seeds(f *testing.F) {
	for _, body := range []string{
		said(""), said(oneTool), after(called + `,{"role":"tool","tool_call_id":"x","content":"1"}`), after(calledTwo), said(`"seed":1`),
		said(`"stop":["b","a"],"temperature":0.5,"max_tokens":3,"stream":true,"stream_options":{"include_usage":true},"logprobs":true`),
		after(`{"role":"user","content":[{"type":"text","text":"\ud83d"},{"type":"text","text":"b"}]}`), "{", "[[", said("") + "x",
	} {
		f.Add([]byte(body))
	}
}

// Whatever comes is read within its limits or refused with a status and words that are JSON.
func FuzzReadRequest(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, refusal := ReadRequest(body, limits)
		if refusal != nil {
			require.Contains(t, []int{400, 413}, refusal.Status)
			require.NotEmpty(t, refusal.Message)
			require.True(t, json.Valid(refusal.body()))
			return
		}
		require.NotEmpty(t, r.Messages)
		require.GreaterOrEqual(t, r.Temperature, 0.0)
		require.LessOrEqual(t, r.Temperature, limits.Temperature)
		require.True(t, r.MaxTokens >= 1 && r.MaxTokens <= limits.MaxTokens)
		require.LessOrEqual(t, len(r.Stop), MaxStops)
		for _, tool := range r.Tools {
			require.True(t, json.Valid(tool.Parameters))
		}
	})
}

// A request that is written in another way that means the same has the same address; what is read twice is the same.
func FuzzAddress(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, refusal := ReadRequest(body, limits)
		if refusal != nil {
			return
		}
		rng := rand.New(rand.NewPCG(uint64(len(body)), 1))
		again, refusal := ReadRequest(written(r, rng), limits)
		if refusal != nil && (refusal.Status == 413 || refusal.Param == "" || strings.HasSuffix(refusal.Param, "id")) {
			return // longer than the one that was read
		}
		require.Nil(t, refusal)
		require.Equal(t, string(r.Canonical()), string(again.Canonical()))
		form, err := canon.Format(r.Canonical())
		require.NoError(t, err)
		require.Equal(t, string(form), string(r.Canonical()), "it is canonical JSON")
		require.Equal(t, Address(r, 1), Address(again, 1))
	})
}
