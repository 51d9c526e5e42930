package judge

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/strict"
)

// maxModel is the most bytes of a model's name that are kept.
const maxModel = 200

// ReadAnswer reads the body of an answer of the chat-completions protocol: the text of its first choice, and the model. Other
// fields are not read. A choice whose content is null, as of a model that wrote reasoning alone, has an empty reply. The
// error is of kind ErrAnswer.
func ReadAnswer(body []byte) (Answer, error) {
	root, err := strict.Parse(body, strict.Limits{Bytes: MaxAnswer, Depth: answerDepth})
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if root.Kind() != strict.Object {
		return Answer{}, fmt.Errorf("%w: it is %s, want an object with choices", ErrAnswer, root.Found())
	}
	choices := member(root, "choices")
	if choices.Kind() != strict.Array || len(choices.Items()) == 0 {
		return Answer{}, fmt.Errorf("%w: it has no choices, want an array with one at least", ErrAnswer)
	}
	content := member(member(choices.Items()[0], "message"), "content")
	reply, ok := content.Text()
	if !ok && content.Kind() != strict.Null {
		return Answer{}, fmt.Errorf("%w: choices[0].message.content is no string", ErrAnswer)
	}
	model, _ := member(root, "model").Text()
	return Answer{Model: beginning(clean(model)), Reply: end(clean(reply))}, nil
}

// said is what the body of an error says: its error.message, or its text.
func said(body []byte) string {
	root, err := strict.Parse(body, strict.Limits{Bytes: MaxAnswer, Depth: answerDepth})
	if err == nil {
		if message, ok := member(member(root, "error"), "message").Text(); ok {
			return message
		}
	}
	return strings.TrimSpace(clean(string(body)))
}

// missing is what an object has at a key that it does not have.
var missing = strict.NewObject()

// member is what an object has at a key, the last if there are several.
func member(n strict.Node, key string) strict.Node {
	found := missing
	if n.Kind() != strict.Object {
		return found
	}
	for _, m := range n.Members() {
		if m.Key == key {
			found = m.Value
		}
	}
	return found
}

// clean is a text that may be stored: valid UTF-8 without U+0000.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// beginning is at most maxModel bytes of a text.
func beginning(text string) string {
	if len(text) <= maxModel {
		return text
	}
	return strings.ToValidUTF8(text[:maxModel], "")
}

// end is the last MaxReply bytes of a text.
func end(text string) string {
	from := max(len(text)-MaxReply, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
