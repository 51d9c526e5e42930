package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/model/tokenizer/jinja"
)

// ErrTools is the kind of errors about tools that a chat template cannot be given.
var ErrTools = errors.New("tools of the chat template")

const (
	maxTools     = 128
	maxToolBytes = 64 << 10 // of a tool's name, description and parameters together
	maxToolDepth = 32       // objects and arrays in each other
)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// WithTools is the tokenizer whose chat template is given these tools, in their order, as transformers'
// apply_chat_template(tools=…) gives them: {"type":"function","function":{"name","description","parameters"}}, with the
// keys of parameters in the order in which they are written. No tools are the template's none. What EncodeChat,
// Continuation, ContinuationOf and Rewrites give then has the tools. They have no effect if the template does not
// read them: see TakesTools.
//
// Descriptions and schemas come from outside: a tool is refused if one of its texts, keys included, contains the text of
// a special or added token of the tokenizer. Errors are of kind ErrTools and name the tool and the token, or
// ErrNoTemplate.
func (t *Tokenizer) WithTools(tools []chat.Tool) (*Tokenizer, error) {
	switch {
	case t.template == nil && len(tools) > 0:
		return nil, ErrNoTemplate
	case t.template == nil || len(tools) == 0 && len(t.template.tools) == 0:
		return t, nil
	case len(tools) > maxTools:
		return nil, fmt.Errorf("%w: %d, at most %d are read", ErrTools, len(tools), maxTools)
	}
	var values []any
	for i, tool := range tools {
		value, err := t.toolValue(tool)
		if err != nil {
			return nil, fmt.Errorf("%w: tool %d, %s: %w", ErrTools, i+1, strict.Quote(tool.Name), err)
		}
		values = append(values, value)
	}
	return t.derived(func(with *template) { with.tools = values }), nil
}

// TakesTools reports whether the chat template shows tools to the model: whether a tool's name stands in a rendered
// prompt. False if there is no template, or it fails.
func (t *Tokenizer) TakesTools() bool {
	if t.template == nil {
		return false
	}
	const name = "a_tool_to_see_where_tools_stand"
	value, err := t.toolValue(chat.Tool{Name: name, Description: "…", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)})
	if err != nil {
		return false
	}
	with := *t.template
	with.tools = []any{value}
	for _, opening := range openings {
		masked, _ := mask(opening)
		if text, err := with.render(masked, true); err == nil && strings.Contains(text, name) {
			return true
		}
	}
	return false
}

// toolValue is a tool as a template gets it.
func (t *Tokenizer) toolValue(tool chat.Tool) (any, error) {
	if n := len(tool.Name) + len(tool.Description) + len(tool.Parameters); n > maxToolBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", n, maxToolBytes)
	}
	if !toolName.MatchString(tool.Name) {
		return nil, errors.New("its name is not 1 to 64 letters, digits, dashes and underscores")
	}
	if err := t.plain("name", tool.Name); err != nil {
		return nil, err
	}
	if err := t.plain("description", tool.Description); err != nil {
		return nil, err
	}
	schema, err := strict.Parse(tool.Parameters, strict.Limits{Depth: maxToolDepth})
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if schema.Kind() != strict.Object {
		return nil, fmt.Errorf("parameters: found %s, want an object", schema.Found())
	}
	parameters, err := jsonValue("parameters", schema, t.plain)
	if err != nil {
		return nil, err
	}
	return jinja.Map{
		{Key: "type", Value: "function"},
		{Key: "function", Value: jinja.Map{
			{Key: "name", Value: tool.Name},
			{Key: "description", Value: lossyUTF8(tool.Description)},
			{Key: "parameters", Value: parameters},
		}},
	}, nil
}

// plain returns an error if a text contains an added token. at says where the text stands.
func (t *Tokenizer) plain(at, text string) error {
	if ids := t.specials(lossyUTF8(text)); len(ids) > 0 {
		return fmt.Errorf("%s contains the text of the token %q", at, t.text[ids[0]])
	}
	return nil
}

// toolCalls are a message's calls as a template gets them. Text that is not a list of JSON objects is an error.
func toolCalls(written json.RawMessage) (any, error) {
	return readCalls(written, func(string, string) error { return nil })
}

// checkCalls returns an error if a text of a message's calls contains an added token.
func (t *Tokenizer) checkCalls(m Message) error {
	if len(m.ToolCalls) == 0 {
		return nil
	}
	_, err := readCalls(m.ToolCalls, t.plain)
	return err
}

func readCalls(written json.RawMessage, check func(at, text string) error) (any, error) {
	n, err := strict.Parse(written, strict.Limits{Depth: maxToolDepth})
	if err != nil {
		return nil, fmt.Errorf("tool_calls: %w", err)
	}
	if n.Kind() != strict.Array {
		return nil, fmt.Errorf("tool_calls: found %s, want a list", n.Found())
	}
	return jsonValue("tool_calls", n, check)
}

// jsonValue is a JSON value as Python's json.loads has it, for a template. It fails where check does for a text or a
// key, for a key that stands twice, and for a number that does not fit into 64 bits.
func jsonValue(at string, n strict.Node, check func(at, text string) error) (any, error) {
	switch n.Kind() {
	case strict.Object:
		values := jinja.Map{}
		for _, m := range n.Written() {
			inside := strict.Join(at, m.Key)
			if m.Again {
				return nil, fmt.Errorf("%s stands twice", inside)
			}
			if err := check("a key of "+at, m.Key); err != nil {
				return nil, err
			}
			value, err := jsonValue(inside, m.Value, check)
			if err != nil {
				return nil, err
			}
			values = append(values, jinja.Pair{Key: m.Key, Value: value})
		}
		return values, nil
	case strict.Array:
		values := []any{}
		for i, item := range n.Items() {
			value, err := jsonValue(strict.Index(at, i), item, check)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		return values, nil
	case strict.String:
		text, _ := n.Text()
		return text, check(at, text)
	case strict.Bool:
		truth, _ := n.Truth()
		return truth, nil
	case strict.Number:
		if n.IsInteger() {
			if i, ok := n.Integer(); ok {
				return i, nil
			}
		} else if f, ok := n.Float(); ok {
			return f, nil
		}
		return nil, fmt.Errorf("%s: the number %s does not fit into 64 bits", at, n.Found())
	}
	return nil, nil
}
