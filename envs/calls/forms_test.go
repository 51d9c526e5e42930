package calls

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

func TestForms(t *testing.T) {
	require.Equal(t, []string{"hermes", "llama3", "smollm2", "search"}, Names())
	for _, f := range Forms {
		same, ok := Lookup(f.Name)
		require.True(t, ok)
		require.Equal(t, f.Summary, same.Summary)
		require.NotEmpty(t, f.Summary)
	}
	_, ok := Lookup("mistral")
	require.False(t, ok)

	for template, want := range map[string]string{
		`{{- '\n<tool_call>\n{"name": "' }}`:                       "hermes",
		`{%- if tools %}named SmolLM … <tool_call>`:                "hermes", // SmolLM3
		`{{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}`: "llama3",
		`{{- 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.' }}`: "llama3",
		`{{ 'You are a helpful AI assistant named SmolLM, trained by Hugging Face' }}`:                                     "smollm2",
		`{{ message.content }}`: "hermes",
		``:                      "hermes",
	} {
		require.Equal(t, want, For(template).Name, template)
	}
}

// What the templates of the families write for tool_calls. The JSON is json.dumps's of Python, ensure_ascii=False.
func TestWrite(t *testing.T) {
	calls := []Call{
		{Name: "search", Arguments: canonical(t, `{"query": "Zoë \"x\" | y\t\u0001\u2028\\u2028 <b>&</b> \u007f", "k": [1, 2.50, {"a": null}, [], {}]}`)},
		{Wrong: "not written"},
		{Name: "now", Arguments: canonical(t, `{}`)},
	}
	first := `"arguments": {"k": [1, 2.50, {"a": null}, [], {}], "query": "Zoë \"x\" | y\t\u0001` + "\u2028" + `\\u2028 <b>&</b> ` + "\u007f" + `"}`
	require.Equal(t, "<tool_call>\n{\"name\": \"search\", "+first+"}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
		hermes.Write(calls))
	require.Equal(t, `<tool_call>[{"name": "search", `+first+`}, {"name": "now", "arguments": {}}]</tool_call>`, smollm2.Write(calls))
	require.Equal(t, `{"name": "now", "parameters": {}}`, llama3.Write(calls[2:]))
	require.Equal(t, `{"name": "now", "parameters": {}}; {"name": "now", "parameters": {}}`,
		llama3.Write([]Call{{Name: "now"}, {Name: "now", Arguments: canonical(t, `{}`)}}))
	require.Equal(t, "<search> Ada | Bob </search>\n<search> x </search>", search.Write([]Call{
		{Name: "search", Arguments: canonical(t, `{"k": 3, "query": "Ada | Bob"}`)}, {Name: "search", Arguments: canonical(t, `{"query": "</search>x"}`)}}))
}

func canonical(t *testing.T, object string) json.RawMessage {
	t.Helper()
	c, err := Canonical([]byte(object))
	require.NoError(t, err)
	return c
}

// TestRoundTrip writes random calls and reads them again: the same calls, and nothing left.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "Zoë", `"`, `\`, "\n", "\u2028", "|", " || ", "{", "}", "]", ",", ";", "</tool_call>", "<tool_call>", "</think>", "<think>", "😀",
		"```", "<|python_tag|>", `{"name":`, "\ufeff", "\ufffd", "'", "//", "&quot;", " ", "\x00"}
	text := func() string {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(8); {
		case n == 0 && depth < 4:
			return []any{value(depth + 1), value(depth + 1)}
		case n == 1 && depth < 4:
			return map[string]any{text(): value(depth + 1), text(): value(depth + 1)}
		case n == 2:
			return r.NormFloat64()
		case n == 3:
			return r.IntN(1000) - 500
		case n == 4:
			return []any{true, false, nil}[r.IntN(3)]
		}
		return text()
	}
	for _, f := range Forms {
		for range 500 {
			var calls []Call
			for range 1 + r.IntN(3) {
				arguments := map[string]any{}
				for range r.IntN(3) {
					arguments[text()] = value(0)
				}
				c := Call{Name: "tool-" + fmt.Sprint(r.IntN(9))}
				if f.Name == "search" {
					c.Name = "search"
					query := strings.TrimSpace(strings.ReplaceAll(text(), "</think>", ""))
					if query == "" {
						query = "x"
					}
					arguments = map[string]any{"query": query}
				}
				b, err := json.Marshal(arguments)
				require.NoError(t, err)
				c.Arguments = canonical(t, string(b))
				calls = append(calls, c)
			}
			written := f.Write(calls)
			again, rest := f.Read(written, tools)
			require.Equal(t, calls, again, "%s: %s", f.Name, written)
			require.Empty(t, rest)
			// A thought and an answer around change nothing.
			again, rest = f.Read("<think>a </think>"+written+"\n<answer>4</answer>", tools)
			require.Equal(t, calls, again, "%s: %s", f.Name, written)
			require.Equal(t, "<answer>4</answer>", rest)
		}
	}
}

func TestResult(t *testing.T) {
	require.Equal(t, chat.Message{Role: "tool", Content: "4\n"}, hermes.Result("4\n"))
	require.Equal(t, chat.Message{Role: "tool", Content: "4"}, llama3.Result("4"))
	require.Equal(t, chat.Message{Role: "user", Content: "<tool_response>\n4\n</tool_response>"}, smollm2.Result("4"))
	require.Equal(t, chat.Message{Role: "user", Content: "<information>4</information>"}, search.Result("\n4\n"))
}

func TestDescribe(t *testing.T) {
	two := []chat.Tool{
		{Name: "now", Description: "The time – \"now\".", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
		{Name: "add", Description: "Adds.", Parameters: json.RawMessage(
			`{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["b"]}`)},
	}
	now := `{"type": "function", "function": {"name": "now", "description": "The time – \"now\".", "parameters": {"type": "object", "properties": {}}}}`
	add := `{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", ` +
		`"properties": {"b": {"type": "number"}, "a": {"type": "number"}}, "required": ["b"]}}}`
	require.Contains(t, hermes.Describe(two), "within <tools></tools> XML tags:\n<tools>\n"+now+"\n"+add+"\n</tools>\n\nFor each function call, ")
	require.Contains(t, smollm2.Describe(two), "a set of possible functions. \nBased on")
	require.Contains(t, smollm2.Describe(two), "<tools>["+now+", "+add+"]</tools>\n\nThe output MUST")
	require.True(t, strings.HasSuffix(llama3.Describe(two[:1]), `Do not use variables.

{
    "type": "function",
    "function": {
        "name": "now",
        "description": "The time – \"now\".",
        "parameters": {
            "type": "object",
            "properties": {}
        }
    }
}`), llama3.Describe(two[:1]))
	require.Contains(t, search.Describe(two), "by <search> query </search> and")
	require.Contains(t, hermes.Describe([]chat.Tool{{Name: "now"}}), `"parameters": {"type": "object", "properties": {}}}`)

	// Each form reads the example that it gives.
	for _, f := range []Form{hermes, smollm2} {
		example := f.Describe(two)[strings.LastIndex(f.Describe(two), callOpening):]
		example = strings.NewReplacer("<function-name>", `"now"`, "<args-json-object>", "{}", ",\n... (more tool calls as required)", "").Replace(example)
		found, _ := f.Read(example, two)
		require.Len(t, found, 1)
		require.Empty(t, found[0].Wrong, f.Name)
	}
}

func TestSearch(t *testing.T) {
	call, ok := Search([]chat.Tool{tools[2], tools[1], tools[0]}, "a lamp")
	require.True(t, ok)
	require.Equal(t, Call{Name: "search", Arguments: json.RawMessage(`{"query":"a lamp"}`)}, call)
	number := chat.Tool{Name: "n", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	_, ok = Search([]chat.Tool{tools[1], number, {Name: "broken", Parameters: json.RawMessage(`{`)}, {Name: "none"}}, "a lamp")
	require.False(t, ok)

	found, _ := search.Read("<search>a</search>", tools[1:])
	require.Equal(t, []Call{{Wrong: "no tool here takes a query, so that <search> cannot be used"}}, found)
}

// TestSpan holds the words about broken JSON that the table of broken calls has not.
func TestSpan(t *testing.T) {
	for text, want := range map[string]string{
		``: cutOff, ` `: cutOff, `{"a"`: cutOff, `{"a":`: cutOff, `{"a": tru`: cutOff, `{"a": 1.`: cutOff, `"\`: cutOff, `"\u00`: cutOff, `[1`: cutOff,
		`[1,]`:                              `a comma stands before "]"`,
		`[1 2]`:                             `the JSON has "2" where a comma or "]" belongs`,
		`[1.e3]`:                            `"1.e3" is not a number in JSON`,
		`[1e+]`:                             `"1e+" is not a number in JSON`,
		`[1e+-1]`:                           `"1e+-1" is not a number in JSON`,
		`[--1]`:                             `"--1" is not a number in JSON`,
		`[.5]`:                              `the JSON has ".5" where a value belongs`,
		`[truely]`:                          `the JSON has "truely" where a value belongs`,
		`[True]`:                            `JSON takes true, not True`,
		`[undefined]`:                       `JSON takes null, not undefined`,
		`{"a": 1; "b"`:                      `the JSON has ";" where a comma or "}" belongs`,
		"[\"a\x01\"]":                       `a string has a raw line break or control character: escape it, as in \n`,
		`["\x"]`:                            `JSON has no escape "\\x"`,
		`["\u12g4"]`:                        `four hexadecimal digits follow \u in JSON`,
		`/* a */ {}`:                        `JSON has no comments`,
		`[-Infinity]`:                       `JSON takes numbers, not -Infinity`,
		`[Infinity]`:                        `JSON takes numbers, not Infinity`,
		"[\xff]":                            `the JSON has "\xff" where a value belongs`,
		`{ñ: 1}`:                            `the JSON has "ñ" where a key belongs`,
		`{"a" = 1}`:                         `the JSON has "=" where a colon belongs`,
		`[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaé]`: `the JSON has "aaaaaaaaaaaaaaaaaaaa" where a value belongs`,
	} {
		_, fault := span(text)
		require.Equal(t, want, fault, text)
	}
	for text, want := range map[string]int{` {"a": [1, -0.5e-3, true]} x`: 26, `[]]`: 2, "null\n": 4, `"a\"b" "`: 6, `-1`: 2} {
		end, fault := span(text)
		require.Empty(t, fault)
		require.Equal(t, want, end, text)
	}
}

func brackets(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func FuzzSpan(f *testing.F) {
	for _, row := range broken {
		if len(row.reply) < 1000 {
			f.Add(row.reply)
		}
	}
	for _, seed := range []string{`[1e5, -0, 0.0]`, `01`, `-`, `{"a":{}}`, `"\ud800"`, "\"\u007f\"", `[[]]`, `{"":""}`, brackets(maxDepth + wrapDepth + 1), brackets(maxDepth + wrapDepth + 2)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end, fault := span(text)
		require.LessOrEqual(t, end, len(text))
		_, err := strict.Parse([]byte(strings.Trim(text, " \t\r\n")), strict.Limits{Depth: maxDepth + wrapDepth})
		whole := fault == "" && strings.Trim(text[end:], " \t\r\n") == ""
		require.Equal(t, err == nil, whole, "%q: %v, %s", text, err, fault)
	})
}

func fuzzForm(f *testing.F, name string) {
	form, _ := Lookup(name)
	checker, err := NewChecker(tools)
	require.NoError(f, err)
	for _, row := range broken {
		if row.form == name && len(row.reply) < 1000 {
			f.Add(row.reply)
		}
	}
	f.Fuzz(func(t *testing.T, reply string) {
		found, rest := form.Read(reply, tools)
		require.LessOrEqual(t, len(found), MaxCalls+1)
		require.Equal(t, strings.TrimSpace(rest), rest)
		var good []Call
		for _, c := range found {
			requireSound(t, c)
			requireSound(t, checker.Check(c))
			if c.Wrong == "" {
				good = append(good, c)
			}
		}
		if len(good) == 0 || len(good) > MaxCalls {
			return
		}
		again, left := form.Read(form.Write(good), tools)
		if name == "search" && slices.ContainsFunc(good, func(c Call) bool { return strings.Contains(string(c.Arguments), "think>") }) {
			return // it cannot be written
		}
		require.Equal(t, good, again)
		require.Empty(t, left)
	})
}

func FuzzHermes(f *testing.F)  { fuzzForm(f, "hermes") }
func FuzzLlama3(f *testing.F)  { fuzzForm(f, "llama3") }
func FuzzSmollm2(f *testing.F) { fuzzForm(f, "smollm2") }
func FuzzSearch(f *testing.F)  { fuzzForm(f, "search") }

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":1,"a":{"d":[1, 2.50],"c":"|"}}`, `{"a":1,"a":2}`, `[]`, `{"a":"\ud800"}`, `{"a":1e999}`, "\ufeff{}", `{"\u0061":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Canonical(text)
		if err != nil {
			require.Nil(t, c)
			return
		}
		again, err := Canonical(c)
		require.NoError(t, err)
		require.Equal(t, string(c), string(again))
		require.NotContains(t, string(c), "|")
		requireSound(t, Call{Name: "x", Arguments: c})
	})
}

func FuzzReadAction(f *testing.F) {
	for _, seed := range []string{`call {}`, `call {"name":"a","arguments":{"b":1}}`, `call {"wrong":"x"}`, `call {"arguments":[]}`, `call [`, `up`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadAction(text)
		if err != nil {
			require.ErrorIs(t, err, ErrAction)
			return
		}
		again, err := ReadAction(c.Action())
		require.NoError(t, err)
		require.Equal(t, c.Action(), again.Action())
	})
}

func BenchmarkReadAndCheck(b *testing.B) {
	checker, err := NewChecker(tools)
	require.NoError(b, err)
	reply := "<think>I look it up.</think>" + tag(`{"name": "weather", "arguments": {"town": "Ulm", "unit": "c", "days": [1, 2], "at": {"lat": 1, "lon": 2}}}`)
	for b.Loop() {
		found, _ := hermes.Read(reply, tools)
		if c := checker.Check(found[0]); c.Wrong != "" {
			b.Fatal(c.Wrong)
		}
	}
}
