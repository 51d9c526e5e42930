package mcp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Answer is what a tool says.
type Answer struct {
	// Text goes back to the policy: at most MaxText bytes and a line that says what was cut.
	Text string
	// Failed says that the tool could not do what it was asked: it says so, or the server does not know the tool or its
	// arguments. That is the policy's failure and no error of the run.
	Failed bool
}

// answerOf is a tool's result as text: its texts, and those of the resources in it, joined by line breaks, with a line for
// what is no text. A result without content is its structured content: JSON without blanks, the keys in the order of their
// bytes and numbers as they were written.
func answerOf(r *sdk.CallToolResult) (Answer, error) {
	if r.NeedsInput() {
		return Answer{Text: "The tool asks for the input of a person or of a model, which it does not get here.", Failed: true}, nil
	}
	parts := make([]string, 0, len(r.Content))
	for _, c := range r.Content {
		parts = append(parts, textOf(c))
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		text, err := structuredText(r.StructuredContent)
		if err != nil {
			return Answer{}, fmt.Errorf("%w: its structured content: %w", ErrAnswer, err)
		}
		parts = append(parts, text)
	}
	return Answer{Text: cut(strings.Join(parts, "\n")), Failed: r.IsError}, nil
}

// textOf is one content as text.
func textOf(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return leftOut("image", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return leftOut("audio", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[link to %s, %s]", c.URI, c.Name)
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return "[resource, left out]"
		case c.Resource.Blob != nil:
			return leftOut("resource "+c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
		}
		return c.Resource.Text
	}
	return "[content of another kind, left out]"
}

// leftOut is the line in place of bytes.
func leftOut(what, mime string, n int) string {
	if mime != "" {
		what += ", " + mime
	}
	return fmt.Sprintf("[%s, %d bytes, left out]", what, n)
}

// cut bounds a text, and says what was cut.
func cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for end > MaxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[cut: %d of %d bytes are shown]", text[:end], end, len(text))
}

// refusal is what a server's protocol error about a call means. A server that does not know the tool, does not take the
// arguments or failed while it worked has answered the policy; any other error says that client and server do not
// understand each other.
func refusal(e *jsonrpc.Error) (Answer, error) {
	switch e.Code {
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound:
		return Answer{}, fmt.Errorf("%w: it refuses the call with error %d: %s", ErrAnswer, e.Code, cut(e.Message))
	}
	return Answer{Text: cut(fmt.Sprintf("Error %d: %s", e.Code, e.Message)), Failed: true}, nil
}
