package calls

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

var update = flag.Bool("update", false, "write testdata/broken.txt")

// tools are what the replies of the tests may call.
var tools = []chat.Tool{
	{Name: "search", Description: "Find documents.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"query":{"type":"string","description":"what to look for"},"k":{"type":"integer","minimum":1,"maximum":20}},"required":["query"]}`)},
	{Name: "weather", Description: "The weather of a town – today.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"town":{"type":"string"},"unit":{"type":"string","enum":["c","f"]},"days":{"type":"array","items":{"type":"integer"}},` +
			`"at":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}},"required":["town","unit"]}`)},
	{Name: "now", Description: "The time.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
}

func bad(kind, form, reply string) (row struct{ kind, form, reply string }) {
	row.kind, row.form, row.reply = kind, form, reply
	return row
}

// tag is a reply with one <tool_call>.
func tag(json string) string { return "<tool_call>\n" + json + "\n</tool_call>" }

var broken = []struct{ kind, form, reply string }{
	// Good calls, and what is read although it is not quite right.
	bad("a good call", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada"}}`)),
	bad("text before and after", "hermes", "I look it up.\n"+tag(`{"name": "now", "arguments": {}}`)+"\n<answer>4</answer>"),
	bad("several calls", "hermes", tag(`{"name": "now", "arguments": {}}`)+"\n"+tag(`{"name": "search", "arguments": {"query": "x"}}`)),
	bad("two calls without a break between", "hermes", `<tool_call>{"name":"now"}</tool_call><tool_call>{"name":"now"}</tool_call>`),
	bad("no closing tag at the end", "hermes", "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"Ada\"}}\n"),
	bad("no arguments", "hermes", tag(`{"name": "now"}`)),
	bad("arguments null", "hermes", tag(`{"name": "now", "arguments": null}`)),
	bad("arguments an empty text", "hermes", tag(`{"name": "now", "arguments": ""}`)),
	bad("arguments as text", "hermes", tag(`{"name": "search", "arguments": "{\"query\": \"Ada\", \"k\": 2}"}`)),
	bad("parameters for arguments", "hermes", tag(`{"name": "search", "parameters": {"query": "Ada"}}`)),
	bad("a list where an object is wanted", "hermes", tag(`[{"name": "now"}, {"name": "search", "arguments": {"query": "x"}}]`)),
	bad("a fence in the tag", "hermes", "<tool_call>```json\n{\"name\": \"now\"}\n```</tool_call>"),
	bad("a call inside a code fence", "hermes", "So:\n```xml\n"+tag(`{"name": "now"}`)+"\n```\nDone."),
	bad("CRLF", "hermes", "<tool_call>\r\n{\"name\": \"now\",\r\n\"arguments\": {}}\r\n</tool_call>\r\n"),
	bad("keys that nobody reads", "hermes", tag(`{"type": "function", "id": 7, "name": "now", "arguments": {}}`)),
	bad("escapes and surrogates", "hermes", tag(`{"name": "s\u0065arch", "arguments": {"query": "\ud83d\ude00 \u00e9 \ud83d"}}`)),
	bad("bars in arguments", "hermes", tag(`{"name": "search", "arguments": {"query": "a || b | c"}}`)),
	bad("a closing tag in a text", "hermes", tag(`{"name": "search", "arguments": {"query": "</tool_call> <tool_call>"}}`)),
	bad("a call in a thought", "hermes", "<think>First "+tag(`{"name": "now"}`)+"</think>\n"+tag(`{"name": "search", "arguments": {"query": "x"}}`)),
	bad("two thoughts", "hermes", "a</think>"+tag(`{"name": "now"}`)+"</think>"+tag(`{"name": "search", "arguments": {"query": "x"}}`)),
	bad("a call in a thought that has no end", "hermes", "<think>First "+tag(`{"name": "now"}`)),
	bad("a call after the answer", "hermes", "<answer>4</answer>"+tag(`{"name": "now"}`)),
	bad("no call", "hermes", " <answer>4</answer>\n"),
	bad("no call, a code block without text", "hermes", "```\n```"),
	// Broken tags.
	bad("an empty tag", "hermes", "<tool_call></tool_call>"),
	bad("a tag of blanks", "hermes", "<tool_call>\n \n</tool_call>"),
	bad("only the opening tag", "hermes", "Now <tool_call>"),
	bad("only the closing tag", "hermes", `{"name": "now"}`+"\n</tool_call>"),
	bad("a tag in a tag", "hermes", "<tool_call><tool_call>"+`{"name": "now"}`+"</tool_call></tool_call> and"),
	bad("not closed before the next", "hermes", `<tool_call>{"name": "now"}<tool_call>{"name": "now"}</tool_call>`),
	bad("capital letters", "hermes", `<TOOL_CALL>{"name": "now"}</TOOL_CALL>`),
	bad("capital letters at the end", "hermes", `<tool_call>{"name": "now"}</Tool_call>!`),
	bad("text before the JSON", "hermes", tag(`I call {"name": "now"}`)),
	bad("text after the JSON", "hermes", tag(`{"name": "now"} please`)),
	bad("text after the JSON, no closing tag", "hermes", `<tool_call>{"name": "now"} I wait.`),
	bad("two objects in a tag", "hermes", tag(`{"name": "now"}`+"\n"+`{"name": "now"}`)),
	bad("no JSON", "hermes", tag(`search(query="Ada")`)),
	bad("XML of another family", "hermes", tag("<function=search>\n<parameter=query>\nAda\n</parameter>\n</function>")),
	// Broken JSON.
	bad("cut off", "hermes", `<tool_call>{"name": "search", "arguments": {"que`),
	bad("cut off, closed", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada"}`)),
	bad("cut off, then a good one", "hermes", `<tool_call>{"name": "search", "argu`+"\n"+tag(`{"name": "now"}`)),
	bad("a trailing comma", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada",}}`)),
	bad("single quotes", "hermes", tag(`{'name': 'search', 'arguments': {'query': 'Ada'}}`)),
	bad("a comment", "hermes", tag(`{"name": "now", // the time`+"\n"+`"arguments": {}}`)),
	bad("a key twice", "hermes", tag(`{"name": "search", "arguments": {"query": "a", "query": "b"}}`)),
	bad("a name twice", "hermes", tag(`{"name": "now", "name": "search"}`)),
	bad("NaN", "hermes", tag(`{"name": "search", "arguments": {"query": "a", "k": NaN}}`)),
	bad("−Infinity", "hermes", tag(`{"name": "search", "arguments": {"query": "a", "k": -Infinity}}`)),
	bad("None", "hermes", tag(`{"name": "search", "arguments": None}`)),
	bad("a zero before a number", "hermes", tag(`{"name": "search", "arguments": {"query": "a", "k": 007}}`)),
	bad("a key without quotes", "hermes", tag(`{name: "now"}`)),
	bad("no colon", "hermes", tag(`{"name" "now"}`)),
	bad("no comma", "hermes", tag(`{"name": "now" "arguments": {}}`)),
	bad("a line break in a text", "hermes", tag("{\"name\": \"search\", \"arguments\": {\"query\": \"a\nb\"}}")),
	bad("an escape that is none", "hermes", tag(`{"name": "search", "arguments": {"query": "\d+"}}`)),
	bad("half an escape", "hermes", tag(`{"name": "search", "arguments": {"query": "\u12"}}`)),
	bad("HTML's quotes", "hermes", tag(`{&quot;name&quot;: &quot;now&quot;}`)),
	bad("typographic quotes", "hermes", tag(`{“name”: “now”}`)),
	bad("a byte order mark", "hermes", "<tool_call>\ufeff{\"name\": \"now\"}</tool_call>"),
	bad("NUL", "hermes", tag("{\"name\": \"now\x00\"}")),
	bad("NUL outside of a text", "hermes", tag("{\x00\"name\": \"now\"}")),
	bad("bytes that are no UTF-8", "hermes", tag("{\"name\": \"search\", \"arguments\": {\"query\": \"\xff\xfe\"}}")),
	bad("too deep", "hermes", tag(`{"name": "search", "arguments": {"query": `+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`}}`)),
	bad("one level too deep", "hermes", tag(`{"name": "search", "arguments": `+strings.Repeat(`{"a":`, 33)+"{}"+strings.Repeat("}", 33)+`}`)),
	bad("too long", "hermes", tag(`{"name": "search", "arguments": {"query": "`+strings.Repeat("a", MaxBytes)+`"}}`)),
	bad("too many calls", "hermes", strings.Repeat(tag(`{"name": "now"}`), MaxCalls+2)+"<answer>4</answer>"),
	// JSON that is no call.
	bad("a number in the tag", "hermes", tag(`42`)),
	bad("an empty list", "hermes", tag(`[]`)),
	bad("a list of lists", "hermes", tag(`[[{"name": "now"}]]`)),
	bad("no name", "hermes", tag(`{"arguments": {"query": "Ada"}}`)),
	bad("an empty name", "hermes", tag(`{"name": "", "arguments": {}}`)),
	bad("a name that is no text", "hermes", tag(`{"name": ["search"], "arguments": {}}`)),
	bad("a name that is long", "hermes", tag(`{"name": "`+strings.Repeat("é", 65)+`"}`)),
	bad("arguments and parameters", "hermes", tag(`{"name": "now", "arguments": {}, "parameters": {}}`)),
	bad("arguments as array", "hermes", tag(`{"name": "search", "arguments": ["Ada"]}`)),
	bad("arguments as a number", "hermes", tag(`{"name": "search", "arguments": 3}`)),
	bad("arguments as text that is no JSON", "hermes", tag(`{"name": "search", "arguments": "Ada"}`)),
	bad("arguments as text that is no object", "hermes", tag(`{"name": "search", "arguments": "[1]"}`)),
	// Calls that no tool answers.
	bad("an unknown tool", "hermes", tag(`{"name": "translate", "arguments": {}}`)),
	bad("a misspelt tool", "hermes", tag(`{"name": "Serach", "arguments": {"query": "Ada"}}`)),
	bad("a name with a line break", "hermes", tag(`{"name": "now\n", "arguments": {}}`)),
	bad("a missing argument", "hermes", tag(`{"name": "search", "arguments": {"k": 3}}`)),
	bad("two missing arguments", "hermes", tag(`{"name": "weather"}`)),
	bad("an extra argument", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada", "quary": "x"}}`)),
	bad("an extra argument of none", "hermes", tag(`{"name": "now", "arguments": {"zone": "utc"}}`)),
	bad("a wrong type", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada", "k": "3"}}`)),
	bad("null for a text", "hermes", tag(`{"name": "search", "arguments": {"query": null}}`)),
	bad("not in the enum", "hermes", tag(`{"name": "weather", "arguments": {"town": "Ulm", "unit": "kelvin"}}`)),
	bad("a point in an integer", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada", "k": 3.0}}`)),
	bad("a huge integer", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada", "k": 123456789012345678901234567890}}`)),
	bad("a huge number", "hermes", tag(`{"name": "weather", "arguments": {"town": "Ulm", "unit": "c", "at": {"lat": 1e999, "lon": 1}}}`)),
	bad("out of range", "hermes", tag(`{"name": "search", "arguments": {"query": "Ada", "k": 21}}`)),
	bad("deep inside", "hermes", tag(`{"name": "weather", "arguments": {"town": "Ulm", "unit": "c", "days": [1, "2"], "at": {"lat": 1, "long": 2}}}`)),
	bad("many problems", "hermes", tag(`{"name": "weather", "arguments": {"z": 1, "y": 1, "x": 1, "w": 1, "v": 1, "u": 1, "t": 1, "days": "all"}}`)),
	// Llama 3.
	bad("a good call", "llama3", `{"name": "search", "parameters": {"query": "Ada"}}`),
	bad("behind the tag", "llama3", `<|python_tag|>{"name": "search", "parameters": {"query": "Ada"}}`),
	bad("several by semicolons", "llama3", `<|python_tag|>{"name": "now", "parameters": {}}; {"name": "now", "arguments": {}};{"name": "now"}`),
	bad("several by line breaks", "llama3", `{"name": "now"}`+"\n"+`{"name": "search", "parameters": {"query": "x"}}`),
	bad("each behind the tag", "llama3", `<|python_tag|>{"name": "now"}<|python_tag|>{"name": "now"}`),
	bad("a list", "llama3", `[{"name": "now"}, {"name": "now"}]`),
	bad("in a code fence", "llama3", "```json\n{\"name\": \"now\"}\n```"),
	bad("text before and after", "llama3", "I look it up: {\"name\": \"now\"} and wait."),
	bad("arguments as text", "llama3", `{"name": "search", "parameters": "{\"query\": \"Ada\"}"}`),
	bad("type function", "llama3", `{"type": "function", "name": "now", "parameters": {}}`),
	bad("in a thought", "llama3", `<think>{"name": "now"}</think>{"name": "search", "parameters": {"query": "x"}}`),
	bad("the tag in a text", "llama3", `{"name": "search", "parameters": {"query": "<|python_tag|>{"}}`),
	bad("an answer in JSON", "llama3", `{"answer": 4}`),
	bad("an answer with a list", "llama3", `[1, 2]`),
	bad("an answer with a bracket", "llama3", `{x | x > 0} is a set`),
	bad("no call", "llama3", `The answer is {4}.`),
	bad("cut off", "llama3", `{"name": "search", "parameters": {"query": "Ad`),
	bad("cut off behind text", "llama3", `I call {"name": "search", "parameters": {"query": "Ad`),
	bad("single quotes", "llama3", `{'name': 'search', 'parameters': {'query': 'Ada'}}`),
	bad("a trailing comma", "llama3", `{"name": "search", "parameters": {"query": "Ada",}}`),
	bad("broken, then a good one", "llama3", `{"name": "search", "parameters": {"query": Ada}}; {"name": "now"}`),
	bad("Python behind the tag", "llama3", `<|python_tag|>brave_search.call(query="Ada")`),
	bad("nothing behind the tag", "llama3", `<|python_tag|>`),
	bad("an object without name behind the tag", "llama3", `<|python_tag|>{"query": "Ada"}`),
	bad("no name", "llama3", `{"parameters": {"query": "Ada"}}`),
	bad("an empty list behind the tag", "llama3", `<|python_tag|>[]`),
	bad("a name without quotes", "llama3", `{name: "now"}`),
	bad("too long", "llama3", `{"name": "search", "parameters": {"query": "`+strings.Repeat("a", MaxBytes)+`"}}`),
	bad("too many calls", "llama3", strings.Repeat(`{"name": "now"};`, MaxCalls+2)),
	bad("HTML's quotes", "llama3", `{&quot;name&quot;: &quot;now&quot;}`),
	// SmolLM2.
	bad("a good call", "smollm2", `<tool_call>[{"name": "search", "arguments": {"query": "Ada"}}]</tool_call>`),
	bad("several calls", "smollm2", "<tool_call>[\n{\"name\": \"now\", \"arguments\": {}},\n{\"name\": \"now\", \"arguments\": {}}\n]</tool_call>"),
	bad("an object where a list is wanted", "smollm2", `<tool_call>{"name": "now", "arguments": {}}</tool_call>`),
	bad("no call by an empty list", "smollm2", "<tool_call>[ ]</tool_call> I cannot."),
	bad("one of two is broken", "smollm2", `<tool_call>[{"name": "now"}, {"arguments": {}}]</tool_call>`),
	bad("what the example says in words", "smollm2", "<tool_call>[\n{\"name\": \"now\", \"arguments\": {}},\n... (more tool calls as required)\n]</tool_call>"),
	bad("no comma between", "smollm2", `<tool_call>[{"name": "now"} {"name": "now"}]</tool_call>`),
	bad("not closed", "smollm2", `<tool_call>[{"name": "now"}`),
	bad("a closing bracket too many", "smollm2", `<tool_call>[{"name": "now"}]]</tool_call>`),
	bad("too many calls in a list", "smollm2", "<tool_call>["+strings.Repeat(`{"name": "now"},`, MaxCalls+1)+`{"name": "now"}]</tool_call>x`),
	// Search-R1.
	bad("a good call", "search", "I need more. <search> Ada Lovelace </search>"),
	bad("several queries", "search", "<search>a</search><search>b</search>"),
	bad("quotes and brackets", "search", `<search>"a" {b} | c \ </search>`),
	bad("after a thought", "search", "<search>plan</search></think><search>a</search>"),
	bad("not closed", "search", "<search>Ada Love"),
	bad("not closed before the next", "search", "<search>Ada <search>Ada</search>"),
	bad("only closed", "search", "Ada</search>"),
	bad("an empty query", "search", "<search> </search>"),
	bad("capital letters", "search", "<Search>Ada</Search>"),
	bad("bytes that are no UTF-8", "search", "<search>\xff</search>"),
	bad("too long", "search", "<search>"+strings.Repeat("a", MaxBytes+1)+"</search>"),
	bad("too many", "search", strings.Repeat("<search>a</search>", MaxCalls+1)+"<answer>4</answer>"),
	bad("no call", "search", "<answer>4</answer>"),
}

// TestBroken reads and checks broken calls of all forms and compares with testdata/broken.txt, which a person has read.
func TestBroken(t *testing.T) {
	checker, err := NewChecker(tools)
	require.NoError(t, err)
	var b strings.Builder
	seen := map[string]bool{}
	for _, row := range broken {
		require.False(t, seen[row.form+row.kind], "%s: %s stands twice", row.form, row.kind)
		seen[row.form+row.kind] = true
		form, ok := Lookup(row.form)
		require.True(t, ok)
		found, rest := form.Read(row.reply, tools)
		fmt.Fprintf(&b, "== %s: %s\n%s\n", row.form, row.kind, shown(row.reply))
		times := 0
		for i, c := range found {
			c = checker.Check(c)
			requireSound(t, c)
			text := fmt.Sprintf("-> %s %s\n", c.Name, c.Arguments)
			if c.Wrong != "" {
				text = fmt.Sprintf("-> wrong: %s\n", c.Wrong)
			}
			if times++; i+1 < len(found) && sameCall(found[i+1], found[i]) {
				continue
			}
			if times > 2 {
				text = fmt.Sprintf("%d times %s", times, text)
			} else {
				text = strings.Repeat(text, times)
			}
			b.WriteString(text)
			times = 0
		}
		if rest != "" {
			fmt.Fprintf(&b, "rest: %s\n", shown(rest))
		}
	}
	path := filepath.Join("testdata", "broken.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./envs/calls -update writes %s", path)
}

func sameCall(a, b Call) bool {
	return a.Name == b.Name && string(a.Arguments) == string(b.Arguments) && a.Wrong == b.Wrong
}

// shown is a text in one line that can be read.
func shown(text string) string {
	if len(text) > 400 {
		return fmt.Sprintf("%q … %q, %d bytes", text[:60], text[len(text)-40:], len(text))
	}
	return strings.Trim(fmt.Sprintf("%+q", text), `"`)
}

// requireSound holds what every call of Read and Check holds.
func requireSound(t *testing.T, c Call) {
	t.Helper()
	require.True(t, utf8.ValidString(c.Wrong), "%q", c.Wrong)
	require.LessOrEqual(t, utf8.RuneCountInString(c.Wrong), MaxWrong, c.Wrong)
	require.NotContains(t, c.Wrong, "\n")
	if c.Wrong == "" {
		require.NotEmpty(t, c.Name)
	}
	if c.Arguments != nil {
		canonical, err := Canonical(c.Arguments)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(c.Arguments))
	} else {
		require.NotEmpty(t, c.Wrong)
	}
	action := c.Action()
	require.True(t, IsAction(action))
	require.NotContains(t, action, "|")
	require.NotContains(t, action, "\n")
	again, err := ReadAction(action)
	require.NoError(t, err)
	require.Equal(t, c, again)
}
