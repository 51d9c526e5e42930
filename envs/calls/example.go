package calls

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Example gives arguments that show how a tool is called: its required fields, with "…" in the place of texts.
func Example(tool chat.Tool) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if len(tool.Parameters) > 0 {
		if err := json.Unmarshal(tool.Parameters, &schema); err != nil {
			return nil, fmt.Errorf("parameters of tool %s: %w", tool.Name, err)
		}
	}
	arguments := map[string]any{}
	for _, name := range schema.Required {
		p := schema.Properties[name]
		switch {
		case len(p.Enum) > 0:
			arguments[name] = p.Enum[0]
		case p.Type == "integer" || p.Type == "number":
			arguments[name] = 1
		case p.Type == "boolean":
			arguments[name] = true
		case p.Type == "array":
			arguments[name] = []any{}
		case p.Type == "object":
			arguments[name] = map[string]any{}
		default:
			arguments[name] = "…"
		}
	}
	return Canonical(encode(arguments))
}
