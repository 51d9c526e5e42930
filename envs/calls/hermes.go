package calls

import (
	"strings"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const hermesExample = `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`

// hermes is the form of Hermes 2 and 3, Qwen2.5 and Qwen3: an object of JSON in a tag, several one after the other. It
// is written as the templates of Qwen write tool_calls, and read as vLLM's parser hermes and SGLang's qwen25 read it.
var hermes = Form{
	Name:    "hermes",
	Summary: "Hermes 2 and 3, Qwen2.5, Qwen3: an object of JSON in <tool_call>",
	Speaks:  func(template string) bool { return strings.Contains(template, callOpening) },
	Read: func(reply string, _ []chat.Tool) ([]Call, string) {
		return readTagged(reply, hermesExample, false)
	},
	Write: func(calls []Call) string {
		var texts []string
		for _, c := range good(calls) {
			texts = append(texts, callOpening+"\n"+c.object("arguments")+"\n"+callClosing)
		}
		return strings.Join(texts, "\n")
	},
	// The words of the templates of Qwen2.5 and Qwen3.
	Describe: func(tools []chat.Tool) string {
		return "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
			"You are provided with function signatures within <tools></tools> XML tags:\n<tools>" +
			signatures(tools, "\n") + "\n</tools>\n\n" +
			"For each function call, return a json object with function name and arguments within " +
			"<tool_call></tool_call> XML tags:\n" +
			"<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
	},
	Result: toolResult,
}

// toolResult is an answer in the role that templates with tools have for it.
func toolResult(text string) chat.Message { return chat.Message{Role: "tool", Content: text} }
