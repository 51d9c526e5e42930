package starlark

import (
	"encoding/json"
	"fmt"
	"strings"

	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
)

// MaxExpressions is the most expressions that one program is asked for; together they have at most MaxProgram bytes.
const MaxExpressions = 256

// Value is what an expression gave.
type Value struct {
	// JSON is its value; tuples and lists both are arrays.
	JSON json.RawMessage `json:"value,omitempty"`
	// Error is a sentence that says why there is none: the policy's failure.
	Error string `json:"error,omitempty"`
}

// expressionFile is the name of an expression in positions, so that errors name lines of the program alone.
const expressionFile = "expression"

// Evaluate runs a program and then evaluates expressions, which may use the names that it defined. They cannot change
// what the program left, so none depends on another. If the program succeeds, the answer's Text is a JSON list of Values,
// one an expression; if it fails, a sentence as of Run. What is printed is lost. All of Run's bounds hold, each expression
// has Steps of its own, and the values share the bytes of Output equally.
func (i Interpreter) Evaluate(program string, expressions []string) Answer {
	answer, names := i.execute(program, true)
	if answer.Failed {
		return answer
	}
	scope := starlark.StringDict{}
	for _, defined := range []starlark.StringDict{modules, names} {
		for name, value := range defined {
			scope[name] = value
		}
	}
	values := make([]Value, len(expressions))
	for at, expression := range expressions {
		values[at] = i.value(expression, scope, max(i.Output/len(expressions), 1))
	}
	text, err := json.Marshal(values)
	if err != nil { // what the interpreter encoded is no JSON
		return failure("", "the interpreter failed")
	}
	return Answer{Text: string(text)}
}

// value evaluates an expression. Its JSON has at most so many bytes.
func (i Interpreter) value(expression string, scope starlark.StringDict, most int) (out Value) {
	defer func() {
		if r := recover(); r != nil {
			out = Value{Error: "Error: the interpreter failed."}
		}
	}()
	printed := printed{most: i.Output, silent: true}
	thread, stopped := i.thread(&printed)
	value, err := starlark.EvalOptions(dialect, thread, expressionFile, expression, scope)
	if err == nil {
		value, err = starlark.Call(thread, starlarkjson.Module.Members["encode"], starlark.Tuple{value}, nil)
	}
	if a := i.outcome(&printed, *stopped, err); a.Failed {
		return Value{Error: cut(a.Text, max(most, maxMessage))}
	}
	text, _ := starlark.AsString(value)
	if len(text) > most {
		return Value{Error: fmt.Sprintf("Error: the value takes more than %d bytes.", most)}
	}
	return Value{JSON: json.RawMessage(strings.ToValidUTF8(text, "\uFFFD"))}
}
