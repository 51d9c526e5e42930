package calls_test

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// A reply of a Qwen is read and held against the tools. What is wrong with a call is a sentence for the policy.
func ExampleChecker_Check() {
	tools := []chat.Tool{{
		Name:       "weather",
		Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}`),
	}}
	checker, err := calls.NewChecker(tools)
	if err != nil {
		fmt.Println(err)
		return
	}
	form, _ := calls.Lookup("hermes")
	found, rest := form.Read(`I look it up.
<tool_call>{"name": "weather", "arguments": {"city": "Graz"}}</tool_call>
<tool_call>{"name": "weather", "arguments": {"days": "two"}}</tool_call>`, tools)
	fmt.Println(rest)
	for _, call := range found {
		if call = checker.Check(call); call.Wrong != "" {
			fmt.Println("wrong:", call.Wrong)
			continue
		}
		fmt.Println(call.Action())
	}
	// Output:
	// I look it up.
	// call {"name":"weather","arguments":{"city":"Graz"}}
	// wrong: weather: argument "city" is missing; argument "days" is "two", want an integer
}
