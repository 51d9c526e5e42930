package calls

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// spaced writes JSON as Python's json.dumps(…, ensure_ascii=False) does, which is what transformers' tojson is: with a
// blank after commas and colons, or with lines indented by so many blanks. Keys keep their order, and numbers stay as
// they were written.
func spaced(n strict.Node, indent int) string {
	var b strings.Builder
	writeSpaced(&b, n, indent, "")
	return b.String()
}

func writeSpaced(b *strings.Builder, n strict.Node, indent int, margin string) {
	inner, first, between, last := "", "", ", ", ""
	if indent > 0 {
		inner = margin + strings.Repeat(" ", indent)
		first, between, last = "\n"+inner, ",\n"+inner, "\n"+margin
	}
	switch n.Kind() {
	case strict.Object:
		b.WriteByte('{')
		for i, m := range n.Members() {
			b.WriteString(pick(i == 0, first, between))
			b.WriteString(quote(m.Key))
			b.WriteString(": ")
			writeSpaced(b, m.Value, indent, inner)
		}
		b.WriteString(pick(len(n.Members()) > 0, last, ""))
		b.WriteByte('}')
	case strict.Array:
		b.WriteByte('[')
		for i, item := range n.Items() {
			b.WriteString(pick(i == 0, first, between))
			writeSpaced(b, item, indent, inner)
		}
		b.WriteString(pick(len(n.Items()) > 0, last, ""))
		b.WriteByte(']')
	case strict.String:
		text, _ := n.Text()
		b.WriteString(quote(text))
	default:
		b.WriteString(n.Raw())
	}
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// lineSeparators undoes two escapes of encoding/json that Python does not write. A backslash before one of them is
// itself escaped, and therefore part of a pair.
var lineSeparators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// quote is a text as a JSON string, as Python writes it.
func quote(text string) string { return lineSeparators.Replace(string(encode(text))) }

// closedThought is kept out of what calls say in JSON: Read leaves out the text before it.
var closedThought = strings.NewReplacer("</think>", `\u003c/think>`)

// object writes a call as a JSON object with the arguments under a key.
func (c Call) object(key string) string {
	arguments := c.Arguments
	if len(arguments) == 0 {
		arguments = none
	}
	n, err := strict.Parse(arguments, strict.Limits{})
	if err != nil {
		panic(fmt.Sprintf("calls: arguments of %s: %v", c.Name, err)) // Arguments are a JSON object
	}
	return closedThought.Replace(fmt.Sprintf(`{"name": %s, "%s": %s}`, quote(c.Name), key, spaced(n, 0)))
}

// good are the calls that can be written.
func good(calls []Call) []Call {
	var out []Call
	for _, c := range calls {
		if c.Wrong == "" {
			out = append(out, c)
		}
	}
	return out
}

// signature is a tool as chat templates get it, in JSON.
func signature(t chat.Tool, indent int) string {
	parameters := t.Parameters
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	text := fmt.Sprintf(`{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}`,
		encode(t.Name), encode(t.Description), parameters)
	n, err := strict.Parse([]byte(text), strict.Limits{})
	if err != nil {
		panic(fmt.Sprintf("calls: parameters of %s: %v", t.Name, err)) // NewChecker has read them
	}
	return spaced(n, indent)
}

// signatures are tools, each behind the text before.
func signatures(tools []chat.Tool, before string) string {
	var b strings.Builder
	for _, t := range tools {
		b.WriteString(before)
		b.WriteString(signature(t, 0))
	}
	return b.String()
}
