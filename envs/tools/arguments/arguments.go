// Package arguments reads and writes the arguments of calls that are one text, as most tools in Go have them.
package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Text is the text that a JSON object has under a name; not ok if it has none, or two.
func Text(object json.RawMessage, name string) (text string, ok bool) {
	n, err := strict.Parse(object, strict.Limits{})
	if err != nil {
		return "", false
	}
	for _, m := range n.Written() {
		switch {
		case m.Key != name:
		case m.Again:
			return "", false
		default:
			text, ok = m.Value.Text()
		}
	}
	return text, ok
}

// Of is the JSON object {name: text}.
func Of(name, text string) json.RawMessage {
	return json.RawMessage("{" + encode(name) + ":" + encode(text) + "}")
}

// Schema is the JSON Schema of an object that has one text under a name, and no more.
func Schema(name, description string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + encode(name) + `:{"type":"string","description":` + encode(description) +
		`}},"required":[` + encode(name) + `]}`)
}

// encode is a text as JSON, with no more escapes than JSON needs.
func encode(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(fmt.Sprintf("arguments: encode %q: %v", text, err)) // every text can be encoded
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}
