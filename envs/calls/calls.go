// Package calls reads calls of tools in the texts of policies, and writes them: a form a family of models, a file a
// form. It asks no tool and knows no environment.
//
// A call travels as an action of an episode: a text that names tool and arguments in one canonical way, so that
// recorded actions are enough to know what was called. See Call.Action.
package calls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Call is one call of a reply, or what stood where one was tried.
type Call struct {
	// Name of the tool.
	Name string `json:"name,omitempty"`
	// Arguments are a JSON object in canonical form; see Canonical.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Wrong says why this is not a call that a tool can answer, in a sentence for the policy: broken JSON, an unknown
	// tool, a missing argument. Name and Arguments may be empty then. "" for a good call.
	Wrong string `json:"wrong,omitempty"`
}

// Form is how models of a family write calls and get answers.
type Form struct {
	// Name is the value of rollout.tool_calls.
	Name string
	// Summary says for people whose form it is.
	Summary string
	// Speaks reports whether a chat template is of the family.
	Speaks func(template string) bool
	// Read finds the calls of a reply in their order. rest is the reply without them, in which an answer may stand.
	// tools are those that may be called: <search> has a query and no name. Read never fails: what cannot be read
	// is a Call with Wrong.
	Read func(reply string, tools []chat.Tool) (found []Call, rest string)
	// Write writes calls as a reply has them.
	Write func([]Call) string
	// Describe tells a policy whose chat template takes no tools about them: what they are, and how they are called.
	Describe func([]chat.Tool) string
	// Result is the message with which the answer to a call comes back.
	Result func(text string) chat.Message
}

// mark begins the action of a call.
const mark = "call "

// Action is the call as an action of an episode: `call {"name":…,"arguments":…}`. It contains no "|", so that it
// is no separator of actions.
func (c Call) Action() string {
	return mark + bars(encode(c))
}

// IsAction reports whether an action is a call, exactly as Action writes it.
func IsAction(text string) bool {
	if !strings.HasPrefix(text, mark+"{") {
		return false
	}
	c, err := ReadAction(text)
	return err == nil && c.Action() == text
}

// ErrAction is the kind of the error about an action that is no call.
var ErrAction = errors.New("not the action of a call")

// ReadAction reads what Action wrote. Errors are of kind ErrAction.
func ReadAction(text string) (Call, error) {
	var c Call
	rest, ok := strings.CutPrefix(text, mark)
	if !ok {
		return Call{}, fmt.Errorf("%w: %s", ErrAction, strict.Quote(text))
	}
	if err := json.Unmarshal([]byte(rest), &c); err != nil {
		return Call{}, fmt.Errorf("%w: %s: %w", ErrAction, strict.Quote(text), err)
	}
	return c, nil
}

// maxDepth is the most objects and arrays in each other of arguments.
const maxDepth = 32

// Canonical is a JSON object without blanks, with its keys in the order of their bytes and with numbers as they were
// written. A key that stands twice is an error, as is anything but an object.
func Canonical(object []byte) (json.RawMessage, error) {
	n, err := strict.Parse(object, strict.Limits{Depth: maxDepth})
	if err != nil {
		return nil, err
	}
	if n.Kind() != strict.Object {
		return nil, fmt.Errorf("found %s, want an object", n.Found())
	}
	var b bytes.Buffer
	if err := write(&b, n); err != nil {
		return nil, err
	}
	return json.RawMessage(bars(b.Bytes())), nil
}

func write(b *bytes.Buffer, n strict.Node) error {
	switch n.Kind() {
	case strict.Object:
		members := slices.Clone(n.Written())
		slices.SortStableFunc(members, func(x, y strict.Member) int { return strings.Compare(x.Key, y.Key) })
		b.WriteByte('{')
		for i, m := range members {
			if m.Again {
				return fmt.Errorf("%s stands twice", strict.Quote(m.Key))
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(encode(m.Key))
			b.WriteByte(':')
			if err := write(b, m.Value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case strict.Array:
		b.WriteByte('[')
		for i, item := range n.Items() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case strict.String:
		text, _ := n.Text()
		b.Write(encode(text))
	default:
		b.WriteString(n.Raw())
	}
	return nil
}

// JSON is a value as JSON without blanks, with no more escapes than JSON needs.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// encode is JSON of texts, and of arguments that were JSON.
func encode(v any) []byte {
	b, err := JSON(v)
	if err != nil {
		panic(fmt.Sprintf("calls: encode %v: %v", v, err))
	}
	return b
}

// bars writes each "|" of a JSON text as an escape: it stands only in texts.
func bars(b []byte) string { return strings.ReplaceAll(string(b), "|", `\u007c`) }
