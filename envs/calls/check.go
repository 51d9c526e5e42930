package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// ErrTool is the kind of an error about a tool that cannot be called: its name or its schema.
var ErrTool = errors.New("not a tool that can be called")

// validName is what chat.Tool allows.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Checker holds calls against the tools that there are. Several goroutines may use it.
type Checker struct {
	names []string
	tools map[string]*schema
}

// NewChecker compiles the schemas of tools. Errors are of kind ErrTool: a name that is not valid or stands twice, and
// Parameters that are no JSON Schema (draft 7 or 2020-12) of an object, that refer to something outside of themselves,
// or whose references run in a circle.
func NewChecker(tools []chat.Tool) (*Checker, error) {
	c := &Checker{tools: map[string]*schema{}}
	for _, t := range tools {
		if !validName.MatchString(t.Name) {
			return nil, fmt.Errorf("%w: name %s, want 1 to 64 letters, digits, dashes and underscores", ErrTool, strict.Quote(t.Name))
		}
		if c.tools[t.Name] != nil {
			return nil, fmt.Errorf("%w: two tools have the name %s", ErrTool, t.Name)
		}
		s, err := newSchema(t.Parameters)
		if err != nil {
			return nil, fmt.Errorf("%w: parameters of %s: %w", ErrTool, t.Name, err)
		}
		c.names = append(c.names, t.Name)
		c.tools[t.Name] = s
	}
	return c, nil
}

// Check gives a call that Read found, with Wrong if no tool can answer it: an unknown tool; arguments that are missing,
// unknown, or of the wrong type, and whatever else does not fit the schema. Missing ones come first, in the order of the
// schema's required, then the rest in that order, then other arguments by name.
//
// It is stricter than JSON Schema in three things, so that a tool may trust what it gets. An argument that the schema
// does not list is wrong unless the schema says additionalProperties. An integer has neither point nor exponent, and
// fits in 64 bits. A number fits in a float64.
func (c *Checker) Check(call Call) Call {
	if call.Wrong != "" {
		return call
	}
	s := c.tools[call.Name]
	if s == nil {
		call.Wrong = c.unknown(call.Name)
		return call
	}
	arguments := call.Arguments
	if len(arguments) == 0 {
		arguments = none
	}
	n, err := strict.Parse(arguments, strict.Limits{Depth: maxDepth})
	if err != nil || n.Kind() != strict.Object {
		call.Wrong = "the arguments must be a JSON object"
		return call
	}
	if problems := s.problems(n); len(problems) > 0 {
		call.Wrong = joinProblems(call.Name+": ", problems)
	}
	return call
}

func (c *Checker) unknown(name string) string {
	text := fmt.Sprintf("there is no tool %s", strict.Quote(name))
	if hint := strict.DidYouMean(name, c.names); hint != "" {
		return shorten(text+": "+hint, MaxWrong)
	}
	if len(c.names) == 0 {
		return text
	}
	return shorten(text+": the tools are "+strings.Join(c.names, ", "), MaxWrong)
}

// joinProblems are as many problems as a sentence holds, and how many more there are.
func joinProblems(start string, problems []string) string {
	const more = 16 // characters of what follows the last one
	text := start + shorten(problems[0], MaxWrong-len(start)-more)
	for i, p := range problems[1:] {
		if len([]rune(text))+len("; ")+len([]rune(p)) > MaxWrong-more {
			return fmt.Sprintf("%s; and %d more", text, len(problems)-1-i)
		}
		text += "; " + p
	}
	return text
}

// schema is the JSON Schema of a tool's arguments.
type schema struct {
	root *jsonschema.Schema
	// resolved validates, and loose does so without what the root requires: with it an argument is looked at alone.
	resolved, loose *jsonschema.Resolved
}

// The most of a schema.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
)

// drafts are the schemas' versions that the library knows, without the "#" that some write.
var drafts = []string{
	"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema",
}

func newSchema(parameters json.RawMessage) (*schema, error) {
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	n, err := strict.Parse(parameters, strict.Limits{Bytes: maxSchemaBytes, Depth: maxSchemaDepth})
	switch {
	case err != nil:
		return nil, err
	case n.Kind() != strict.Object:
		return nil, fmt.Errorf("found %s, want an object", n.Found())
	case len(n.Repeated("")) > 0:
		return nil, n.Repeated("").Err()
	}
	s := &schema{}
	if s.root, s.resolved, err = compile(parameters, func(*jsonschema.Schema) {}); err != nil {
		return nil, err
	}
	if s.root.Type != "object" {
		return nil, fmt.Errorf("type %s, want object", strict.Quote(s.root.Type))
	}
	_, s.loose, err = compile(parameters, func(root *jsonschema.Schema) { root.Required, root.MinProperties = nil, nil })
	return s, err
}

// compile reads a schema, changes it, and prepares it. The library panics on some broken schemas, which come from
// outside: that is an error.
func compile(parameters []byte, change func(*jsonschema.Schema)) (root *jsonschema.Schema, resolved *jsonschema.Resolved, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not a JSON Schema: %v", r)
		}
	}()
	root = &jsonschema.Schema{}
	if err := json.Unmarshal(parameters, root); err != nil {
		return nil, nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	if version := strings.TrimSuffix(root.Schema, "#"); version != "" {
		i := slices.Index(drafts, version)
		if i < 0 {
			return nil, nil, fmt.Errorf("$schema %s, want draft 7 or 2020-12", strict.Quote(root.Schema))
		}
		root.Schema = version
		if i < 2 {
			root.Schema += "#"
		}
	}
	if err := checkSchema(root); err != nil {
		return nil, nil, err
	}
	change(root)
	if resolved, err = root.Resolve(nil); err != nil {
		return nil, nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	return root, resolved, nil
}

// checkSchema looks at what the library has read, not at the text: the library also takes keywords with other capitals,
// as "$Ref".
func checkSchema(root *jsonschema.Schema) error {
	text, err := json.Marshal(root)
	if err != nil {
		return fmt.Errorf("not a JSON Schema: %w", err)
	}
	n, err := strict.Parse(text, strict.Limits{})
	if err != nil {
		return fmt.Errorf("not a JSON Schema: %w", err)
	}
	if err := checkTypes(n); err != nil {
		return err
	}
	return checkReferences(n)
}

// fits asks the library. Its words are not for policies: they depend on the order of a map.
func fits(resolved *jsonschema.Resolved, object string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	var value any
	return json.Unmarshal([]byte(object), &value) == nil && resolved.Validate(value) == nil
}
