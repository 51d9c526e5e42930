package calls

import (
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const (
	llama3Example = `{"name": ..., "parameters": {...}}`
	pythonTag     = "<|python_tag|>"
	noJSON        = "no JSON follows " + pythonTag
)

// llama3 is the form of Llama 3.1, 3.2 and 3.3: a reply that is an object of JSON, <|python_tag|> before it or not.
// Several are separated by ";" or line breaks. It is written as the templates write tool_calls, of which they take one,
// and read as vLLM's parser llama3_json and SGLang's llama3 read it.
var llama3 = Form{
	Name:    "llama3",
	Summary: "Llama 3.1 to 3.3: a reply that is an object of JSON",
	Speaks: func(template string) bool {
		return strings.Contains(template, "<|start_header_id|>ipython") || strings.Contains(template, `"parameters"`)
	},
	Read: readLlama3,
	Write: func(calls []Call) string {
		var texts []string
		for _, c := range good(calls) {
			texts = append(texts, c.object("parameters"))
		}
		return strings.Join(texts, "; ")
	},
	// The words of the templates of Llama 3.1 and 3.2, which have them before the user's first message.
	Describe: func(tools []chat.Tool) string {
		var b strings.Builder
		b.WriteString("Given the following functions, please respond with a JSON for a function call " +
			"with its proper arguments that best answers the given prompt.\n\n" +
			`Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}. ` +
			"Do not use variables.")
		for _, t := range tools {
			b.WriteString("\n\n" + signature(t, 4))
		}
		return b.String()
	},
	Result: toolResult,
}

var (
	// llama3Start finds JSON at the beginning of a reply, and the beginning of a call anywhere in it.
	llama3Start = regexp.MustCompile("^(?:\\s|```[a-zA-Z_]*)*[{\\[]|\\{\\s*[\"']name[\"']\\s*:")
	// llama3Next finds the beginning of a call behind a separator.
	llama3Next = regexp.MustCompile(`[;\n]\s*\{\s*["']name["']\s*:`)
	// llama3Attempt tells broken JSON that was to be a call from other text with a bracket before it.
	llama3Attempt = regexp.MustCompile(`^\[?\s*\{\s*["']?(?:name|type|function|parameters|arguments)["']?\s*[:=]`)
)

// readLlama3 reads a reply that has JSON at its beginning, behind <|python_tag|>, or that begins with a name. An object
// without any of a call's keys is a call only behind the tag: an answer may be JSON too.
func readLlama3(reply string, _ []chat.Tool) ([]Call, string) {
	f, text := begin(reply, llama3Example)
	start := len(text)
	if m := llama3Start.FindStringIndex(text); m != nil {
		start = m[0] + strings.IndexAny(text[m[0]:m[1]], "{[")
	}
	tagged := false
	if i := strings.Index(text, pythonTag); i >= 0 && i <= start {
		f.keep(text[:i])
		start, tagged = i+len(pythonTag), true
	} else {
		f.keep(text[:start])
	}
	for at := start; ; {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n;"))
		if after, ok := strings.CutPrefix(text[at:], pythonTag); ok {
			at, tagged = len(text)-len(after), true
			continue
		}
		if at == len(text) {
			if tagged {
				f.wrong(noJSON)
			}
			return f.result()
		}
		end, ok := f.llama3(text, at, tagged)
		if !ok {
			return f.result()
		}
		at = end
		// Only the first value is taken for a call because of the tag.
		tagged = false
	}
}

// llama3 reads what begins at a place and gives its end. It reports false if nothing more is to be read.
func (f *finding) llama3(text string, at int, tagged bool) (end int, ok bool) {
	rest := text[at:]
	length, fault := 0, noJSON
	value := rest[0] == '{' || rest[0] == '['
	if value {
		length, fault = span(rest[:min(len(rest), MaxBytes)])
	}
	if fault == "" {
		n, err := strict.Parse([]byte(rest[:length]), strict.Limits{Depth: maxDepth + wrapDepth})
		if err != nil || !tagged && !isLlama3(n) {
			f.keep(rest[:length])
			return at + length, true
		}
		if n.Kind() == strict.Array && len(n.Items()) == 0 {
			return at + length, f.wrong("the list of calls is empty")
		}
		return at + length, f.node(n)
	}
	end = len(text)
	if m := llama3Next.FindStringIndex(rest); m != nil {
		end = at + m[0]
	}
	switch {
	case !tagged && !(value && llama3Attempt.MatchString(rest)):
		f.keep(text[at:end])
		return end, true
	case end-at > MaxBytes:
		fault = tooLong
	}
	return end, f.wrong(fault)
}

// isLlama3 reports whether JSON has a key of a call.
func isLlama3(n strict.Node) bool {
	if items := n.Items(); len(items) > 0 {
		n = items[0]
	}
	for _, m := range n.Members() {
		switch m.Key {
		case "name", "parameters", "arguments":
			return true
		}
	}
	return false
}
