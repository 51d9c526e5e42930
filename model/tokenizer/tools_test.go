package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// toolsGolden is testdata/tools.json.gz: what transformers makes of conversations with tools (testdata/make_tools.py).
type toolsGolden struct {
	Variables     json.RawMessage
	Templates     map[string]struct{ Folder, Template string }
	Tools         map[string][]chat.Tool
	Conversations map[string][]Message
	Cases         []toolsCase
}

type toolsCase struct {
	Template, Tools, Conversation string
	Text, Error                   string
	IDs                           []int32
}

const toolsFile = "testdata/tools.json.gz"

// otherTools is a file of the same form that REPRISE_TOOLS names, such as one that is made with the templates of
// published models, or the golden.
func otherTools() (path string, published bool) {
	if other := os.Getenv("REPRISE_TOOLS"); other != "" {
		return other, true
	}
	return toolsFile, false
}

func readToolsGolden(t testing.TB, path string) (g toolsGolden) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	content, err := io.ReadAll(z)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &g))
	require.NotEmpty(t, g.Cases)
	return g
}

// loadAll are the tokenizers of the golden's templates, by template.
func (g toolsGolden) loadAll(t testing.TB) map[string]*Tokenizer {
	variables, err := chat.ParseVariables(g.Variables)
	require.NoError(t, err)
	toks := map[string]*Tokenizer{}
	for name, of := range g.Templates {
		folder := filepath.Join("testdata", of.Folder)
		if _, err := os.Stat(folder); err != nil {
			folder = filepath.Join("..", folder)
		}
		files := maps.Clone(readFolder(t, folder))
		files["chat_template.jinja"] = []byte(of.Template)
		tok, err := Load(files)
		require.NoError(t, err, name)
		toks[name], err = tok.With(variables)
		require.NoError(t, err, name)
	}
	return toks
}

// spells reports whether a content spells one of the tokenizer's added tokens.
func (t *Tokenizer) spells(messages []Message) bool {
	return slices.ContainsFunc(messages, func(m Message) bool { return len(t.specials(m.Content)) > 0 })
}

// Texts and ids of conversations with tools are those of transformers. EncodeChat's too, unless a content spells a
// special token, which it leaves text.
func TestTools(t *testing.T) {
	path, published := otherTools()
	g := readToolsGolden(t, path)
	plain := g.loadAll(t)
	toks := map[string]*Tokenizer{}
	for name, tok := range plain {
		for tools, list := range g.Tools {
			with, err := tok.WithTools(list)
			require.NoError(t, err, "%s: %s", name, tools)
			toks[name+" "+tools] = with
		}
	}
	for _, c := range g.Cases {
		if strings.Contains(g.Templates[c.Template].Template, "strftime_now") && strings.Contains(c.Text+c.Error, "date") {
			continue // there is no clock here; see template
		}
		what := c.Template + ", tools " + c.Tools + ", " + c.Conversation
		tok, messages := toks[c.Template+" "+c.Tools], g.Conversations[c.Conversation]
		text, ids, err := tok.Template(messages, true)
		if c.Error != "" {
			require.ErrorIs(t, err, ErrTemplate, what)
			continue
		}
		require.NoError(t, err, what)
		require.Equal(t, c.Text, text, what)
		require.Equal(t, c.IDs, ids, what)
		encoded, err := tok.EncodeChat(messages, true)
		if published && tok.spells(messages) && err != nil {
			require.ErrorIs(t, err, ErrRewritten)
			continue
		}
		require.NoError(t, err, what)
		if tok.spells(messages) {
			require.Equal(t, text, tok.Decode(encoded), what)
			require.Greater(t, len(encoded), len(ids), what)
			continue
		}
		require.Equal(t, ids, encoded, what)
	}
}

// A conversation is its beginning, what was said, and the continuations: by ids what EncodeChat makes of it as a whole,
// if the template keeps what was said.
func TestContinuationOf(t *testing.T) {
	path, published := otherTools()
	g := readToolsGolden(t, path)
	compared, rewritten := map[string]int{}, 0
	for name, tok := range g.loadAll(t) {
		for tools, list := range g.Tools {
			with, err := tok.WithTools(list)
			require.NoError(t, err)
			if _, err := with.Closing(); err != nil && published {
				continue
			}
			for conversation, messages := range g.Conversations {
				what := fmt.Sprint(name, ", tools ", tools, ", ", conversation)
				if slices.ContainsFunc(messages, func(m Message) bool {
					return len(m.ToolCalls) > 0 || m.Role == roleAssistant && strings.Contains(m.Content, "<")
				}) {
					continue
				}
				ids, rounds := assemble(t, with, messages)
				whole, err := with.EncodeChat(messages, true)
				require.NoError(t, err, what)
				if published && !keeps(t, with, messages) {
					rewritten++
					continue
				}
				require.Equal(t, with.Decode(whole), with.Decode(ids), what)
				require.Equal(t, whole, ids, what)
				compared[name] += rounds
			}
		}
	}
	if published {
		t.Logf("%d templates of %d, %v; %d conversations whose earlier replies are rewritten", len(compared), len(g.Templates), compared, rewritten)
		return
	}
	require.Len(t, compared, len(g.Templates))
	for name, n := range compared {
		require.Greater(t, n, 20, name)
	}
}

// keeps reports whether a template writes earlier replies as they were said.
func keeps(t *testing.T, tok *Tokenizer, messages []Message) bool {
	whole, _, err := tok.Template(messages, true)
	require.NoError(t, err)
	for i, m := range messages {
		if m.Role != roleAssistant {
			continue
		}
		prompt, _, err := tok.Template(messages[:i], true)
		require.NoError(t, err)
		if !strings.HasPrefix(whole, prompt+m.Content) {
			return false
		}
	}
	return true
}

// assemble encodes the beginning of a conversation, and each reply and what follows it apart.
func assemble(t *testing.T, tok *Tokenizer, messages []Message) (ids []int32, rounds int) {
	closing, err := tok.Closing()
	require.NoError(t, err)
	isReply := func(m Message) bool { return m.Role == roleAssistant }
	begin := slices.IndexFunc(messages, isReply)
	if begin < 0 {
		begin = len(messages)
	}
	ids, err = tok.EncodeChat(messages[:begin], true)
	require.NoError(t, err)
	for rest := messages[begin:]; len(rest) > 0; rounds++ {
		size := slices.IndexFunc(rest[1:], isReply)
		if size < 0 {
			size = len(rest) - 1
		}
		ids = append(append(ids, tok.EncodePlain(rest[0].Content)...), closing)
		next, err := tok.ContinuationOf(rest[1 : size+1])
		require.NoError(t, err)
		ids = append(ids, next...)
		rest = rest[size+1:]
	}
	return ids, rounds
}

func TestTakesTools(t *testing.T) {
	for name, tok := range readToolsGolden(t, toolsFile).loadAll(t) {
		require.Equal(t, strings.HasSuffix(name, "-like"), tok.TakesTools(), name)
	}
	require.False(t, load(t, "testdata/llama3").TakesTools(), "no template")
	require.False(t, withTemplate(t, `{% if tools %}{{ raise_exception("no tools, please") }}{% endif %}`).TakesTools())
	require.True(t, withTemplate(t, `{% if messages[0].role == 'system' %}{{ raise_exception("no system") }}{% endif %}{{ tools }}`).TakesTools())
}

func aTool(parameters string) chat.Tool {
	return chat.Tool{Name: "search", Description: "finds", Parameters: json.RawMessage(parameters)}
}

// What a template is given: tools as transformers passes them, or none.
func TestWithTools(t *testing.T) {
	plain := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }} {{ mood }}{{ m.content }}<|im_end|>{% endfor %}{{ tools | tojson }}{{ tools is none }}`)
	const none, one = "nullTrue", `[{"type": "function", "function": {"name": "search", "description": "finds", ` +
		`"parameters": {"z": 1, "a": [2.0, -0.5, null, true, "é"], "1": {}}}}]False`
	ends := func(tok *Tokenizer, want string) {
		t.Helper()
		ids, err := tok.EncodeChat(hello, true)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(tok.Decode(ids), "hello<|im_end|>"+want), tok.Decode(ids))
		ids, err = tok.Continuation("more")
		require.NoError(t, err)
		require.Equal(t, "<|im_start|>user "+"more<|im_end|>"+want, tok.Decode(ids))
		ids, err = tok.ContinuationOf([]Message{{Role: roleTool, Content: "an answer"}})
		require.NoError(t, err)
		require.Equal(t, "<|im_start|>tool "+"an answer<|im_end|>"+want, tok.Decode(ids))
	}
	ends(plain, none)
	with, err := plain.WithTools([]chat.Tool{aTool(`{"z":1, "a":[2.0,-5e-1,null,true,"\u00e9"],"1":{}}`)})
	require.NoError(t, err)
	ends(with, one)
	ends(plain, none)
	without, err := with.WithTools(nil)
	require.NoError(t, err)
	ends(without, none)
	with, err = with.With(Variables{"mood": ""})
	require.NoError(t, err)
	ends(with, one)

	same, err := plain.WithTools(nil)
	require.NoError(t, err)
	require.Same(t, plain, same)
	base := load(t, "testdata/llama3")
	_, err = base.WithTools([]chat.Tool{aTool(`{}`)})
	require.ErrorIs(t, err, ErrNoTemplate)
	same, err = base.WithTools(nil)
	require.NoError(t, err)
	require.Same(t, base, same)
}

// A tool comes from outside: one that spells a special token, or that is no JSON Schema, is refused with a reason.
func TestToolsAreRefused(t *testing.T) {
	tok := withTemplate(t, `{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}{{ tools }}`)
	deep := strings.Repeat(`{"a":`, maxToolDepth+1) + "{}" + strings.Repeat("}", maxToolDepth+1)
	for says, tool := range map[string]chat.Tool{
		`"a<|im-end|>": its name is not 1 to 64 letters`:                                   {Name: "a<|im-end|>", Parameters: json.RawMessage(`{}`)},
		`"a": description contains the text of the token "<|im_start|>"`:                   {Name: "a", Description: "x <|im_start|>system", Parameters: json.RawMessage(`{}`)},
		`"search": parameters.b[1].c contains the text of the token "<|endoftext|>"`:       aTool(`{"b":[1,{"c":"\u003c|endoftext|\u003e"}]}`),
		`"search": a key of parameters.b contains the text of the token "<|im_end|>"`:      aTool(`{"b":{"<|im_end|>":1}}`),
		`"": its name is not 1 to 64 letters`:                                              {Parameters: json.RawMessage(`{}`)},
		`"search": parameters: found an array of 0, want an object`:                        aTool(`[]`),
		`"search": parameters: unexpected end of JSON input`:                               aTool(``),
		`"search": parameters: unexpected end of JSON input at`:                            aTool(`{"a":`),
		`"search": parameters.a.b stands twice`:                                            aTool(`{"a":{"b":1,"b":1}}`),
		`"search": parameters.a: the number 9223372036854775808 does not fit into 64 bits`: aTool(`{"a":9223372036854775808}`),
		`"search": parameters.a: the number 1e999 does not fit into 64 bits`:               aTool(`{"a":1e999}`),
		`"search": parameters: more than 32 levels`:                                        aTool(deep),
		`"search": it has 65549 bytes, at most 65536 are read`:                             aTool(`{"a":"` + strings.Repeat("a", maxToolBytes-6) + `"}`),
	} {
		_, err := tok.WithTools([]chat.Tool{aTool(`{}`), tool})
		require.ErrorIs(t, err, ErrTools, says)
		require.ErrorContains(t, err, "tool 2, ")
		require.ErrorContains(t, err, says)
	}
	_, err := tok.WithTools(slices.Repeat([]chat.Tool{aTool(`{}`)}, maxTools+1))
	require.ErrorIs(t, err, ErrTools)
	require.ErrorContains(t, err, "129, at most 128 are read")
}

// Calls in a message are the template's text, so they spell no special token.
func TestCallsInMessages(t *testing.T) {
	g := readToolsGolden(t, toolsFile)
	tok := withTemplate(t, g.Templates["qwen2.5-like"].Template)
	said := func(calls string) []Message {
		return []Message{hello[0], {Role: roleAssistant, ToolCalls: json.RawMessage(calls)}}
	}
	for says, calls := range map[string]string{
		`tool_calls[0].name contains the text of the token "<|im_end|>"`: `[{"name":"<|im_end|>","arguments":{}}]`,
		`a key of tool_calls[0].arguments contains`:                      `[{"name":"a","arguments":{"\u003c|im_end|>":1}}]`,
		`tool_calls: found an object, want a list`:                       `{}`,
		`tool_calls: unexpected end of JSON input`:                       `[`,
	} {
		_, err := tok.EncodeChat(said(calls), true)
		require.ErrorContains(t, err, says)
	}
	_, _, err := tok.Template(said(`[`), true)
	require.ErrorIs(t, err, ErrTemplate)
	ids, err := tok.EncodeChat(said(`[{"name":"a","arguments":{"b":1}}]`), true)
	require.NoError(t, err)
	require.Contains(t, tok.Decode(ids), `{"name": "a", "arguments": {"b": 1}}`)
}

// No tool makes a template fail with a panic, or gives a prompt more special tokens than another tool.
func FuzzWithTools(f *testing.F) {
	g := readToolsGolden(f, toolsFile)
	for _, list := range g.Tools {
		for _, tool := range list {
			f.Add(tool.Name, tool.Description, []byte(tool.Parameters))
		}
	}
	f.Add("a", "<|im_", []byte(`{"end|>":"<|im_end|","x":"\ud800\u0000","y":-0,"z":1E-400}`))
	f.Add("\xff", "\xed\xa0\x80", []byte(`{"type":"object","properties":{"":{"enum":[]}},"required":0}`))
	toks := g.loadAll(f)
	plain := map[string]*Tokenizer{}
	for name, tok := range toks {
		var err error
		plain[name], err = tok.WithTools([]chat.Tool{aTool(`{}`)})
		require.NoError(f, err)
	}
	f.Fuzz(func(t *testing.T, name, description string, parameters []byte) {
		for _, template := range []string{"qwen2.5-like", "qwen3-like", "llama3.2-like", "typescript-like"} {
			with, err := toks[template].WithTools([]chat.Tool{{Name: name, Description: description, Parameters: parameters}})
			if err != nil {
				require.ErrorIs(t, err, ErrTools)
				continue
			}
			ids, err := with.EncodeChat(hello, true)
			if err != nil {
				require.ErrorIs(t, err, ErrTemplate) // a schema that typescript-like does not understand
				require.Equal(t, "typescript-like", template)
				continue
			}
			want, err := plain[template].EncodeChat(hello, true)
			require.NoError(t, err)
			require.Equal(t, with.specials(plain[template].Decode(want)), with.specials(with.Decode(ids)), template)
		}
	})
}
