package judge

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// maxModel is the most bytes of a model's name that are kept.
const maxModel = 200

// readAnswer reads the body of an answer of the chat-completions protocol: the text of its first choice, and the model. Other
// fields are not read. A choice whose content is null, as of a model that wrote reasoning alone, has an empty reply. The
// error is of kind ErrAnswer.
func readAnswer(body []byte) (Answer, error) {
	root, err := strict.Parse(body, strict.Limits{Bytes: maxAnswer, Depth: answerDepth})
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
	model, reply = clean(model), clean(reply)
	return Answer{ // without the part of a character that a cut leaves
		Model: strings.ToValidUTF8(model[:min(len(model), maxModel)], ""),
		Reply: strings.ToValidUTF8(reply[max(len(reply)-maxReply, 0):], ""),
	}, nil
}

// said is what the body of an error says: its error.message, or its text.
func said(body []byte) string {
	root, err := strict.Parse(body, strict.Limits{Bytes: maxAnswer, Depth: answerDepth})
	if err == nil {
		if message, ok := member(member(root, "error"), "message").Text(); ok {
			return message
		}
	}
	return strings.TrimSpace(clean(string(body)))
}

// member is what an object has at a key; an empty object where there is none.
func member(n strict.Node, key string) strict.Node {
	for _, m := range n.Members() {
		if m.Key == key {
			return m.Value
		}
	}
	return strict.NewObject()
}

// clean is a text that may be stored: valid UTF-8 without U+0000.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
