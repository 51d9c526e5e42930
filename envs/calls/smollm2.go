package calls

import (
	"strings"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const smollm2Example = `<tool_call>[{"name": ..., "arguments": {...}}]</tool_call>`

// smollm2 is the form that SmolLM2-Instruct was trained with: all calls of a reply as one list of JSON in a tag, by
// instructions_function_calling.md of its model card. An empty list says that no tool is needed.
var smollm2 = Form{
	Name:    "smollm2",
	Summary: "SmolLM2: a list of JSON in <tool_call>",
	// The template takes no tools. It is known by the system message that it has by default.
	Speaks: func(template string) bool { return strings.Contains(template, "named SmolLM") },
	Read: func(reply string, _ []chat.Tool) ([]Call, string) {
		return readTagged(reply, smollm2Example, true)
	},
	Write: func(calls []Call) string {
		var texts []string
		for _, c := range good(calls) {
			texts = append(texts, c.object("arguments"))
		}
		return callOpening + "[" + strings.Join(texts, ", ") + "]" + callClosing
	},
	// The words of the model card, with its blanks at the ends of lines: the model was trained with them.
	Describe: func(tools []chat.Tool) string {
		return "You are an expert in composing functions. You are given a question and a set of possible functions. \n" +
			"Based on the question, you will need to make one or more function/tool calls to achieve the purpose. \n" +
			"If none of the functions can be used, point it out and refuse to answer. \n" +
			"If the given question lacks the parameters required by the function, also point it out.\n\n" +
			"You have access to the following tools:\n<tools>[" +
			strings.TrimPrefix(signatures(tools, ", "), ", ") + "]</tools>\n\n" +
			"The output MUST strictly adhere to the following format, and NO other text MUST be included.\n" +
			"The example format is as follows. Please make sure the parameter type is correct. " +
			"If no function call is needed, please make the tool calls an empty list '[]'.\n" +
			"<tool_call>[\n{\"name\": \"func_name1\", \"arguments\": {\"argument1\": \"value1\", \"argument2\": \"value2\"}},\n" +
			"... (more tool calls as required)\n]</tool_call>"
	},
	// The template has no role for answers. Ollama's template of SmolLM2 gives them to the user in this tag, as Qwen's do.
	Result: func(text string) chat.Message {
		return chat.Message{Role: "user", Content: "<tool_response>\n" + text + "\n</tool_response>"}
	},
}
